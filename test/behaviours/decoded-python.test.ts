import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { until } from '../../src/platform/process/test-wait.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
/** Debian's, which has grpcio. */
const PYTHON = '/usr/bin/python3'

type Line = { readonly kind: string; readonly slot: number } & Record<string, unknown>

test('a client in Python reads transactions and entries of shreds with the proto files alone', async () => {
  await using home = await temporaryFolder()
  const protos = ['geyser.proto', 'solana-storage.proto', 'shredstream.proto']
  await run('protoc', ['-I', join(ROOT, 'proto'), `--python_out=${home.path}`, ...protos])
  writeFileSync(home.file('sluice.toml'), '[products.shreds-decoded]\nstatus = "preview"\n')
  await using running = serve({
    cwd: home.path,
    env: { SLUICE_LOCALNET__ENABLED: undefined, SLUICE_LOCALNET__CONSENSUS: 'tower', SLUICE_SENDER__ENABLED: 'false' },
  })
  await running.line(/"msg":"started"/)
  const command = async (...words: string[]) => {
    const { code, stdout, stderr } = await sluice(words, { cwd: home.path })
    assert.equal(code, 0, stderr)
    return stdout
  }
  await command('customer', 'add', 'acme')
  const products = ['--products', 'bundle,shreds-decoded', '--print-token', '--json']
  const made = await command('sub', 'create', 'early', '--customer', 'acme', '--plan', 'build', ...products)
  const { token } = JSON.parse(made) as { token: string }
  const rpc = `http://${await running.address('rpc')}`
  await until('the token is valid', async () => (await fetch(`${rpc}/v1/whoami`, { headers: { 'x-token': token } })).ok)

  const client = join(ROOT, 'examples/decoded/decoded.py')
  const { stdout } = await run(PYTHON, [client, home.path], {
    env: { ...process.env, SLUICE_GRPC: await running.address('grpc'), SLUICE_TOKEN: token },
    timeout: 240_000,
  })
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
  const of = (kind: string) => lines.filter((line) => line.kind === kind)
  assert.equal(of('done').length, 1)
  assert.deepEqual(
    of('pong').map(({ id }) => id),
    [7],
  )
  assert.ok(of('slot').length > 0, 'slots were announced')
  const transactions = of('transaction')
  assert.ok(transactions.length > 40)
  assert.deepEqual(transactions.at(-1)?.['filters'], ['votes'], 'the filters were replaced')
  assert.equal(transactions.at(-1)?.['is_vote'], true)
  for (const slot of new Set(transactions.map((line) => line.slot))) {
    const block = new Set(await signaturesOf(rpc, token, slot))
    for (const line of transactions.filter((each) => each.slot === slot))
      assert.ok(block.has(encodeBase58(Buffer.from(String(line['signature']), 'hex'))), `slot ${slot}`)
  }
  assert.equal(of('entries').length, 5)
  for (const { count, digest } of of('entries')) {
    assert.ok(Number(count) > 0)
    assert.notEqual(digest, '0'.repeat(64))
  }
})

async function signaturesOf(url: string, token: string, slot: number): Promise<string[]> {
  const config = { transactionDetails: 'signatures', commitment: 'confirmed', maxSupportedTransactionVersion: 1 }
  let signatures: string[] | undefined
  await until('the block is confirmed', async () => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'x-token': token, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getBlock', params: [slot, config] }),
    })
    signatures = ((await response.json()) as { result?: { signatures: string[] } }).result?.signatures
    return signatures !== undefined
  })
  return signatures ?? []
}
