import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluice } from '../support/cli/run.ts'
import { sendTransactionBody } from '../support/sender/load.ts'
import { NODE_BLOCKHASH } from '../support/sender/node.ts'
import { startSenderNode, startSenderProcess } from '../support/sender/process.ts'
import { post, type ReceiptBody, signatureOf, TIP_ACCOUNTS, tipped, walletOf } from '../support/sender/start.ts'

const receiptOf = async (url: string, wire: Uint8Array) => {
  const response = await fetch(`${url}/v1/transactions/${signatureOf(wire)}?wait=10`)
  return { status: response.status, body: (await response.json()) as ReceiptBody }
}

test('sluice sender accepts, sends and follows standalone, serves tip stats, and keeps accepted transactions after a kill', async () => {
  await using node = await startSenderNode()
  using state = makeTestFolder()
  const landed = tipped(walletOf(1), NODE_BLOCKHASH, 'alone')
  // The node reports this one as landed with a delay, after the process was killed.
  const underway = tipped(walletOf(1), NODE_BLOCKHASH, 'under way')
  {
    await using sender = await startSenderProcess(node.url, '', state.path)
    assert.deepEqual((await post(sender.url, { jsonrpc: '2.0', id: 1, method: 'getTipAccounts' })).result, TIP_ACCOUNTS)
    assert.equal((await post(sender.url, sendTransactionBody(landed))).result, signatureOf(landed))
    assert.equal((await receiptOf(sender.url, landed)).body.state, 'landed')
    const stats = await sluice(['tip', 'stats', '--state', state.path, '--json'])
    assert.equal((JSON.parse(stats.stdout) as { accepted: number }).accepted, 1, stats.stderr)
    const asked = ['--state', state.path, '--json']
    const status = JSON.parse((await sluice(['status', ...asked])).stdout) as { state: string; store: string }
    assert.deepEqual([status.state, status.store], ['ok', 'none'])
    const top = JSON.parse((await sluice(['top', ...asked])).stdout) as { sender: { accepted: number } }
    assert.equal(top.sender.accepted, 1)
    assert.match((await sluice(['logs', 'tail', ...asked])).stdout, /"msg":"started"/)
    assert.match(await sender.metrics(), /^sluice_sender_received_total\{result="accepted"\} 1$/m)
    assert.equal((await post(sender.url, sendTransactionBody(underway))).result, signatureOf(underway))
    assert.equal(await sender.served.stop('SIGKILL'), null)
  }
  await using sender = await startSenderProcess(node.url, '[log]\nlevel = "debug"', state.path)
  await sender.served.line(/"accepted":[1-9].*"msg":"the code was warmed up"/)
  assert.equal((await receiptOf(sender.url, landed)).body.state, 'landed')
  assert.equal((await receiptOf(sender.url, underway)).status, 200)
  // The process finds it on the chain.
  await until('it is found', async () => (await receiptOf(sender.url, underway)).body.state === 'landed')
  assert.equal(await sender.served.stop('SIGTERM'), 0)
})

test('standalone it reloads its nodes, and keeps them where the file has none', async () => {
  await using node = await startSenderNode()
  await using sender = await startSenderProcess(node.url, '')
  const file = join(sender.folder, 'sluice.toml')
  const config = readFileSync(file, 'utf8')
  const run = (...words: string[]) => sluice([...words, '--state', join(sender.folder, 'state')])
  writeFileSync(file, config.replace('name = "node"', 'name = "renamed"'))
  const reloaded = await run('reload')
  assert.equal(reloaded.code, 0, reloaded.stderr)
  assert.match(reloaded.stderr, /node renamed is added/)
  assert.match(reloaded.stderr, /node node is removed/)
  writeFileSync(file, config.replace(/\[\[upstreams\.nodes\]\][^[]*/, ''))
  const refused = await run('reload')
  assert.equal(refused.code, 78, refused.stderr)
  assert.match(refused.stderr, /needs an upstream node/)
  assert.match((await run('upstream', 'list')).stdout, /renamed/)
})

test('standalone without an upstream node fails to start and names the option to set', async () => {
  using folder = makeTestFolder()
  const { code, stderr, stdout } = await sluice(['sender', '--state', folder.file('state')], { cwd: folder.path })
  assert.equal(code, 78, stdout + stderr)
  assert.match(stderr, /upstreams\.nodes/)
})
