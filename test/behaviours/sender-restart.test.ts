import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { AppendFile } from '../../src/platform/files/append.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { fund, nodeOf, signatureOf, startTestSender, tipped, walletOf } from '../support/sender/start.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

test('a restart loses no accepted transaction silently', async () => {
  using folder = makeTestFolder()
  // Long slots, so that the blockhash outlives two restarts on a busy machine.
  await using localnet = await startQuickLocalnet({ slotMs: 200 })
  await fund(localnet, encodeBase58(walletOf(0).publicKey), 10_000_000_000n)
  // Accepts transactions and never responds: they stay pending.
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
    // The journal has the line before the response is sent.
    const journal = readFileSync(folder.file('journal-0'), 'utf8')
    for (const wire of wires) assert.match(journal, new RegExp(`^accepted ${signatureOf(wire)} \\d+ $`, 'm'))
  }
  appendFileSync(folder.file('journal-0'), 'accepted torn')
  await using after = await startTestSender({ folder: folder.path, nodes: [nodeOf(localnet)], rpc, upstreams: true })
  for (const wire of wires) {
    const { status, body } = await after.receipt(signatureOf(wire))
    assert.deepEqual([status, body.state], [200, 'unknown'])
    assert.match(body.message ?? '', /restarted/)
  }
  const known = (await after.receipt(signatureOf(landed))).body
  assert.deepEqual([known.state, typeof known.landed?.slot], ['landed', 'number'])

  // The client may send it again as a new transaction.
  assert.equal((await after.send(lost)).result, signatureOf(lost))
  assert.equal((await after.receipt(signatureOf(lost), '?wait=20')).body.state, 'landed')
  // A transaction that reached the chain on another path is found there.
  assert.ok((await localnet.chain.submit(late)).ok)
  await until('it is found', () => after.sender.stats().landed === 2)
  assert.equal((await after.receipt(signatureOf(late))).body.state, 'landed')
})

test('a transaction without a response before a crash has no receipt afterwards and may be sent again', async () => {
  using folder = makeTestFolder()
  const arrived: string[] = []
  const node = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += String(chunk)))
    request.on('end', () => {
      arrived.push((JSON.parse(text) as { params: [string] }).params[0])
      response.end('{"jsonrpc":"2.0","id":1,"result":"ok"}')
    })
  })
  node.listen(0, '127.0.0.1')
  await once(node, 'listening')
  using _closing = { [Symbol.dispose]: () => node.close().closeAllConnections() }
  const url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`
  const given = { folder: folder.path, relays: [{ name: 'node', url, allowPrivate: true }], upstreams: false }
  const wire = tipped(walletOf(0), encodeBase58(new Uint8Array(32).fill(3)), 'unanswered')
  const base64 = Buffer.from(wire).toString('base64')
  const stuck = Promise.withResolvers<never>()
  {
    // The journal write never completes, so the journal is unchanged when the process dies.
    const disk = (file: AppendFile): AppendFile => ({ ...file, writeAt: () => stuck.promise })
    await using before = await startTestSender({ ...given, disk })
    let hasResponded = false
    const reply = before.send(wire).finally(() => (hasResponded = true))
    await until('it is sent: the disk delays the response, not the transaction', () => arrived.length > 0)
    assert.equal(hasResponded, false, 'no response before the journal write completes')
    assert.equal(readFileSync(folder.file('journal-0'), 'utf8'), '')
    stuck.reject(new Error('the process is gone'))
    const { error } = await reply
    assert.deepEqual(
      [error?.data['reason'], error?.data['sent']],
      ['journal', true],
      'the response reports the failed journal write',
    )
  }
  const sentBefore = arrived.length
  await using after = await startTestSender(given)
  const { status, body } = await after.receipt(signatureOf(wire))
  assert.equal(status, 404)
  assert.match(body.message ?? '', /the last 50000 \(receiptsMax\).*without a response may have been sent/)
  assert.equal((await after.send(wire)).result, signatureOf(wire))
  await until('it is sent again', () => arrived.length > sentBefore)
  // The chain executes the same signature only once.
  assert.deepEqual([...new Set(arrived)], [base64])
  assert.equal((await after.receipt(signatureOf(wire))).status, 200)
})
