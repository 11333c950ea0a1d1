import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { test } from 'node:test'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import {
  fund,
  MIN_TIP,
  nodeOf,
  signatureOf,
  startTestSender,
  TIP_ACCOUNTS,
  tipped,
  walletOf,
} from '../support/sender/start.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

/** Tips of landed transactions are counted for good, once, over restarts of the sender. */

type Row = { tip_lamports: number; landed: number; accepted: number; offered_lamports: number } & Record<
  string,
  unknown
>

async function revenue(state: string, ...flags: string[]): Promise<Row[]> {
  const done = await sluiceHere(['tip', 'revenue', '--json', '--state', state, ...flags], {})
  assert.equal(done.code, 0, done.stderr)
  return JSON.parse(done.stdout) as Row[]
}

test('tips that landed before and after restarts are counted once', async () => {
  using state = makeTestFolder()
  const folder = state.file('sender')
  mkdirSync(folder)
  assert.deepEqual(await revenue(state.path), [], 'before the sender has run')
  await using localnet = await startQuickLocalnet({ slotMs: 200 })
  for (const address of [encodeBase58(walletOf(0).publicKey), ...TIP_ACCOUNTS])
    await fund(localnet, address, 10_000_000_000n)
  const send = async (memo: string, lamports: bigint, upstreams = true) => {
    const wire = tipped(walletOf(0), localnet.chain.latestBlockhash('processed').blockhash, memo, lamports)
    await using sender = await startTestSender({
      folder,
      nodes: [nodeOf(localnet)],
      upstreams,
      ...(upstreams ? {} : { rpc: [{ name: 'none', url: 'http://127.0.0.1:9', allowPrivate: true }] }),
    })
    assert.equal((await sender.send(wire)).result, signatureOf(wire))
    if (upstreams)
      await until('it is confirmed', async () => {
        const { landed } = (await sender.receipt(signatureOf(wire))).body
        return landed !== null && landed.confirmation !== 'processed'
      })
    return wire
  }
  await send('one', MIN_TIP)
  await send('two', MIN_TIP * 3n)
  assert.deepEqual(
    (await revenue(state.path, '--by', 'total')).map(({ landed, tip_lamports }) => [landed, tip_lamports]),
    [[2, Number(MIN_TIP * 4n)]],
  )
  // Accepted, not sent by anyone: offered, not received. Then it lands on another way, while the sender does not run.
  const late = await send('late', MIN_TIP * 5n, false)
  const [open] = await revenue(state.path, '--by', 'account')
  assert.deepEqual(
    [open?.['account'], open?.accepted, open?.landed, open?.offered_lamports, open?.tip_lamports],
    [TIP_ACCOUNTS[0], 3, 2, Number(MIN_TIP * 9n), Number(MIN_TIP * 4n)],
  )
  assert.ok((await localnet.chain.submit(late)).ok)
  for (let restart = 0; restart < 2; restart++) {
    await using sender = await startTestSender({ folder, nodes: [nodeOf(localnet)], upstreams: true })
    await until('it is found', async () => {
      const { landed } = (await sender.receipt(signatureOf(late))).body
      return landed !== null
    })
    await until('it is counted', async () => (await revenue(state.path, '--by', 'total'))[0]?.landed === 3)
  }
  const [all] = await revenue(state.path, '--by', 'payer')
  assert.deepEqual([all?.['payer'], all?.tip_lamports], [encodeBase58(walletOf(0).publicKey), Number(MIN_TIP * 9n)])
  const table = await sluiceHere(['tip', 'revenue', '--state', state.path], {})
  assert.match(table.stdout, /^DAY\s+TIPS\s+LANDED/)
  assert.match(table.stdout, /0\.009000000 SOL/)
  const wrong = await sluiceHere(
    ['tip', 'revenue', '--since', '2027-01-02', '--until', '2027-01-01', '--state', state.path],
    {},
  )
  assert.match(wrong.stderr, /--until is before --since/)
})
