import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { makeTestFolder } from '../../src/host/test-folder.ts'
import { until } from '../../src/host/test-wait.ts'
import { encodeBase58 } from '../../src/solana/base58.ts'
import { startQuickLocalnet } from '../support/localnet.ts'
import { nodeOf, signatureOf, startTestSender, tipped, walletOf } from '../support/sender.ts'

test('a restart loses no accepted transaction silently', async () => {
  using folder = makeTestFolder()
  await using localnet = await startQuickLocalnet()
  await localnet.chain.airdrop(encodeBase58(walletOf(0).publicKey), 10_000_000_000n)
  // Takes transactions and never answers: they stay on their way.
  const silent = createServer(() => {})
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  using _closing = { [Symbol.dispose]: () => silent.close().closeAllConnections() }
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const rpc = [{ name: 'silent', url, allowPrivate: true }]
  const blockhash = () => localnet.chain.latestBlockhash('processed').blockhash
  const wires = ['a', 'b', 'c'].map((memo) => tipped(walletOf(0), blockhash(), memo))
  const landed = tipped(walletOf(0), blockhash(), 'landed before')
  const [lost, , late] = wires as [Uint8Array, Uint8Array, Uint8Array]
  {
    await using before = await startTestSender({ folder: folder.path, nodes: [nodeOf(localnet)], rpc, upstreams: true })
    assert.equal((await before.send(landed)).text, `{"jsonrpc":"2.0","result":"${signatureOf(landed)}","id":1}`)
    assert.equal((await before.receipt(signatureOf(landed), '?wait=20')).body.state, 'landed')
  }
  {
    await using before = await startTestSender({
      folder: folder.path,
      nodes: [nodeOf(localnet)],
      rpc,
      upstreams: false,
    })
    for (const wire of wires) assert.equal((await before.send(wire)).result, signatureOf(wire))
    // The answer was given: by then the journal has the line, whatever happens to the process.
    const journal = readFileSync(folder.file('journal-0'), 'utf8')
    for (const wire of wires) assert.match(journal, new RegExp(`^accepted ${signatureOf(wire)} \\d+ $`, 'm'))
  }
  appendFileSync(folder.file('journal-0'), 'accepted torn')
  await using after = await startTestSender({ folder: folder.path, nodes: [nodeOf(localnet)], rpc, upstreams: true })
  for (const wire of wires) {
    const { status, body } = await after.receipt(signatureOf(wire))
    assert.deepEqual([status, body.state], [200, 'unknown'])
    assert.match(body.says ?? '', /restarted/)
  }
  const known = (await after.receipt(signatureOf(landed))).body
  assert.deepEqual([known.state, typeof known.landed?.slot], ['landed', 'number'])

  // The client may send it again, and then it is a transaction like any other.
  assert.equal((await after.send(lost)).result, signatureOf(lost))
  assert.equal((await after.receipt(signatureOf(lost), '?wait=20')).body.state, 'landed')
  // One that got to the chain by another way is found there.
  assert.ok((await localnet.chain.submit(late)).ok)
  await until('it is found', () => after.sender.stats().landed === 2)
  assert.equal((await after.receipt(signatureOf(late))).body.state, 'landed')
})
