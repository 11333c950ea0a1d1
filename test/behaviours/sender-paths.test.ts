import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { hasPeer, startQuicPeer } from '../support/sender/quic-peer.ts'
import { fund, nodeOf, signatureOf, startTestSender, tipped, walletOf } from '../support/sender/start.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

const NOWHERE = 'http://127.0.0.1:9'

async function startChain() {
  const localnet = await startQuickLocalnet()
  await fund(localnet, encodeBase58(walletOf(0).publicKey), 10_000_000_000n)
  return localnet
}

/** Forwards to localnet's RPC, except for methods about leaders. */
async function startNodeWithLeader(rpcPort: number, leader: { identity: string; tpuQuic: string }) {
  const message: Record<string, unknown> = {
    getClusterNodes: [
      { pubkey: leader.identity, tpuQuic: leader.tpuQuic },
      { pubkey: 'x', tpuQuic: 'not an address' },
    ],
    getSlotLeaders: Array.from({ length: 1000 }, () => leader.identity),
  }
  const server = createServer((request, response) => void respond(request, response))
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const { method, id } = JSON.parse(body) as { method: string; id: unknown }
    response.setHeader('content-type', 'application/json')
    if (method in message) {
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: message[method] }))
      return
    }
    const upstream = await fetch(`http://127.0.0.1:${rpcPort}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    })
    response.end(await upstream.text())
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

test('several paths at once: one that is down does not delay the others, and the receipt lists each response', async () => {
  await using localnet = await startChain()
  const url = `http://127.0.0.1:${localnet.rpc.port}`
  await using sender = await startTestSender({
    nodes: [nodeOf(localnet)],
    upstreams: false,
    quic: { enabled: false },
    rpc: [{ name: 'dead', url: NOWHERE, allowPrivate: true }],
    relays: [{ name: 'relay', url, allowPrivate: true }],
  })
  const wire = tipped(walletOf(0), localnet.chain.latestBlockhash('processed').blockhash, 'two paths')
  assert.equal((await sender.send(wire)).result, signatureOf(wire))
  const { body } = await sender.receipt(signatureOf(wire), '?wait=20')
  assert.equal(body.state, 'landed')
  await until(
    'both paths have a response',
    async () => (await sender.receipt(signatureOf(wire))).body.attempts.length === 2,
  )
  const { attempts } = (await sender.receipt(signatureOf(wire))).body
  assert.deepEqual(
    new Map(attempts.map(({ path, response }) => [path, response])),
    new Map([
      ['relay', 'taken'],
      ['dead', 'failed'],
    ]),
  )
  assert.deepEqual(
    sender.sender.stats().paths.map(({ path, taken, landed }) => [path, taken, landed]),
    [
      ['dead', 0, 0],
      ['relay', 1, 1],
    ],
  )
})

test('re-sends a transaction that does not land until it expires; the receipt has the block height', async () => {
  await using localnet = await startChain()
  // Accepts transactions and drops them.
  const sink = createServer((request, response) => {
    request.resume()
    response.end('{"jsonrpc":"2.0","id":1,"result":"ok"}')
  })
  sink.listen(0, '127.0.0.1')
  await once(sink, 'listening')
  using _closing = { [Symbol.dispose]: () => sink.close().closeAllConnections() }
  await using sender = await startTestSender({
    nodes: [nodeOf(localnet)],
    upstreams: false,
    resendMs: 300,
    relays: [{ name: 'sink', url: `http://127.0.0.1:${(sink.address() as AddressInfo).port}`, allowPrivate: true }],
  })
  const wire = tipped(walletOf(0), localnet.chain.latestBlockhash('processed').blockhash, 'never lands')
  await sender.send(wire)
  let { body } = await sender.receipt(signatureOf(wire), '?wait=60')
  // With slots of 400 ms a blockhash is valid for a minute.
  if (body.state === 'sent') ({ body } = await sender.receipt(signatureOf(wire), '?wait=60'))
  assert.equal(body.state, 'expired')
  assert.ok((body.expired_at_height ?? 0) > 150, String(body.expired_at_height))
  assert.equal(body.tip?.moved, false)
  assert.ok((body.attempts[0]?.times ?? 0) >= 3)
  const { expired, pending } = sender.sender.stats()
  assert.deepEqual([expired, pending], [1, 0])
})

test('sends to the leader over QUIC and to the node', { skip: !hasPeer('deno') && 'no deno' }, async () => {
  await using localnet = await startChain()
  await using leader = await startQuicPeer('deno')
  const identity = encodeBase58(leader.publicKey)
  await using node = await startNodeWithLeader(localnet.rpc.port, { identity, tpuQuic: `127.0.0.1:${leader.port}` })
  await using sender = await startTestSender({
    nodes: [{ ...nodeOf(localnet), rpc: node.url }],
    quic: { allowPrivate: true },
  })
  const isUp = () =>
    sender.sender.paths().some(({ path, isOpen, message }) => path === 'quic' && isOpen && message.startsWith('1 '))
  await until('the connection to the next leader is open', isUp, 30_000)
  const blockhash = () => localnet.chain.latestBlockhash('processed').blockhash
  const wire = tipped(walletOf(0), blockhash(), 'by quic')
  await sender.send(wire)
  const quicResponse = async (signature: string) =>
    (await sender.receipt(signature)).body.attempts.find(({ path }) => path === 'quic')?.response
  await until('the leader has it', async () => (await quicResponse(signatureOf(wire))) === 'taken')
  assert.equal((await leader.report()).bytes, wire.length, 'one stream with exactly its bytes')
  const attempt = (await sender.receipt(signatureOf(wire))).body.attempts.find(({ path }) => path === 'quic')
  assert.equal(attempt?.to, identity)
  assert.equal((await sender.receipt(signatureOf(wire), '?wait=20')).body.state, 'landed')
  assert.equal(sender.registry.value('sluice_sender_attempts_total', { path: 'quic', response: 'taken' }), 1)

  await leader.kill()
  const next = tipped(walletOf(0), blockhash(), 'the leader is gone')
  await sender.send(next)
  assert.equal(
    (await sender.receipt(signatureOf(next), '?wait=20')).body.state,
    'landed',
    'the node delivers all the same',
  )
})

test('a relay that a leader announces as its address gets the transaction, though its certificate has another key', {
  skip: !hasPeer('deno') && 'no deno',
}, async () => {
  await using localnet = await startChain()
  await using relay = await startQuicPeer('deno')
  const identity = encodeBase58(walletOf(9).publicKey)
  await using node = await startNodeWithLeader(localnet.rpc.port, { identity, tpuQuic: `127.0.0.1:${relay.port}` })
  await using sender = await startTestSender({
    nodes: [{ ...nodeOf(localnet), rpc: node.url }],
    quic: { allowPrivate: true },
  })
  const isUp = () => sender.sender.paths().some(({ path, message }) => path === 'quic' && message.startsWith('1 '))
  await until('the relay is connected', isUp, 30_000)
  const wire = tipped(walletOf(0), localnet.chain.latestBlockhash('processed').blockhash, 'by a relay')
  await sender.send(wire)
  const attempt = async () =>
    (await sender.receipt(signatureOf(wire))).body.attempts.find(({ path }) => path === 'quic')
  await until('the relay has it', async () => (await attempt())?.response === 'taken')
  assert.equal((await attempt())?.to, identity, 'the receipt names the leader')
  assert.equal((await relay.report()).bytes, wire.length)
})
