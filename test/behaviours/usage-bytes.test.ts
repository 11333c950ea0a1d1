import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { after, describe, test } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'
import { openWsTestClient } from '../support/gateway/ws-client.ts'

/** Enough that each of two threads gets some. */
const CONNECTIONS = 8
/** Sizes on both sides of what a response, a frame and a message have as bounds; one makes a WebSocket message of 65,533 bytes. */
const SIZES = [0, 1, 100, 126, 4000, 5000, 16_384, 65_445, 65_535, 65_536, 70_000, 300_000, 3_000_000]
/** More than the buffers of a loopback connection hold. */
const LARGE_BYTES = 40_000_000

/** Connections that are kept, whose requests take the fast path; with `connection: close` they would go to node:http. */
const agent = new Agent({ keepAlive: true })
after(() => agent.destroy())

const callOf = (size: number) => `{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[${size}]}`
const textOf = (size: number) => JSON.stringify('x'.repeat(size))

async function start(workers: number) {
  await using opening = new AsyncDisposableStack()
  const node = opening.use(await startFakeNode())
  node.respond = (_method, params) => ({ result: textOf((params as number[] | undefined)?.[0] ?? 0) })
  const { rpc, ws, grpc } = node
  const gateway = opening.use(await startServedGateway([{ name: 'a', rpc, ws, grpc }], { workers }))
  const opened = opening.move()
  return { node, gateway, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

/** By interface, as the operator reads them. */
async function ledgerOf(gateway: ServedGateway): Promise<Record<string, number>> {
  const { code, stdout, stderr } = await gateway.sluice('usage', '--sub', 'acme-prod', '--json')
  assert.equal(code, 0, stderr)
  const rows = JSON.parse(stdout) as { interface: string; bytes: number }[]
  return Object.fromEntries(rows.map((row) => [row.interface, row.bytes]))
}

/** The bytes of the body as they come over the connection, after the chunks are removed and before it is inflated. */
function post(gateway: ServedGateway, body: string, headers: Record<string, string> = {}, token = gateway.token) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; bytes: number; isGzip: boolean }>()
  const fields = { 'content-type': 'application/json', 'x-token': token, ...headers }
  const sent = request(gateway.url, { method: 'POST', headers: fields, agent }, (response) => {
    let bytes = 0
    response.on('data', (chunk: Buffer) => (bytes += chunk.length))
    response.on('error', reject)
    response.on('end', () => {
      const isGzip = response.headers['content-encoding'] === 'gzip'
      resolve({ status: response.statusCode ?? 0, bytes, isGzip })
    })
  })
  sent.on('error', reject)
  // Without a length the request takes the path of node:http.
  if (headers['transfer-encoding'] === undefined) sent.setHeader('content-length', Buffer.byteLength(body))
  sent.end(body)
  return promise
}

async function useRpc(gateway: ServedGateway): Promise<number> {
  const forms = [{}, { 'accept-encoding': 'gzip' }, { 'transfer-encoding': 'chunked' }]
  const calls = SIZES.flatMap((size) => forms.map((headers) => post(gateway, callOf(size), headers)))
  const batch = `[${[10, 5000, 100].map(callOf).join(',')}]`
  const others = [batch, '{"jsonrpc":"2.0","method":"getBalance"}', 'not JSON'].map((body) => post(gateway, body))
  const replies = await Promise.all([...calls, ...others])
  assert.ok(replies.every(({ status }) => status === 200 || status === 204))
  assert.ok(replies.filter(({ isGzip }) => isGzip).length >= 6, 'large ones are compressed')
  const refused = await post(gateway, callOf(1), {}, 'slc_of_nobody')
  assert.equal(refused.status, 401)
  return replies.reduce((sum, { bytes }) => sum + bytes, 0)
}

async function useWs(gateway: ServedGateway, node: FakeNode): Promise<number> {
  let bytes = 0
  const ended = new Set<WebSocket>()
  const clients = await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const client = await openWsTestClient(gateway.ws, { 'x-token': gateway.token })
      client.socket.on('message', (data: Buffer) => {
        bytes += data.length
        if (data.includes('"the end"')) ended.add(client.socket)
      })
      return client
    }),
  )
  for (const { call } of clients) {
    assert.equal(typeof (await call('accountSubscribe', ['key'])).result, 'number')
    assert.equal((await call('getBalance', [5000])).error, undefined)
  }
  for (const size of SIZES) if (size < 1_000_000) node.notify('accountSubscribe', textOf(size))
  await until('all have read to the end', () => {
    if (ended.size === CONNECTIONS) return true
    node.notify('accountSubscribe', '"the end"')
    return false
  })
  for (const { socket } of clients) socket.close()
  await Promise.all(clients.map(({ closed }) => closed))
  return bytes
}

async function useGrpc(gateway: ServedGateway, node: FakeNode): Promise<number> {
  let compressed = 0
  let calls = 0
  node.onGrpcCall = (call) => {
    const isGzip = calls++ === 0
    call.sendHeaders(isGzip ? { 'grpc-encoding': 'gzip' } : {})
    call.onMessage(() => {
      for (const size of SIZES) {
        const frame = frameMessage(Buffer.alloc(size, 7), isGzip ? 'gzip' : 'identity')
        if (isGzip) compressed += frame.length - 5
        call.writeFramed(frame)
      }
      call.end({ code: 0 })
    })
  }
  let received = 0
  for (let at = 0; at < CONNECTIONS; at++) {
    const client = new Client(gateway.grpc, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': -1,
    })
    const stream = openStream(client, SUBSCRIBE, tokenMetadata(gateway.token))
    stream.send(Buffer.alloc(0))
    assert.equal((await stream.ended).code, 0)
    assert.deepEqual(
      stream.messages.map(({ length }) => length),
      SIZES,
    )
    // What a client counts after it has inflated it was fewer bytes on the way.
    if (at > 0) received += stream.messages.reduce((sum, { length }) => sum + length, 0)
    client.close()
  }
  assert.ok(compressed > 0 && compressed < 100_000)
  assert.ok(received > CONNECTIONS * 1_000_000)
  return received + compressed
}

describe('bytes in usage', () => {
  for (const workers of [1, 2])
    test(`are those that clients receive, to the byte, with ${workers} gateway threads`, async () => {
      await using on = await start(workers)
      const { gateway, node } = on
      const expected = {
        rpc: await useRpc(gateway),
        ws: await useWs(gateway, node),
        grpc: await useGrpc(gateway, node),
      }
      await until('the ledger has them', async () => {
        const found = await ledgerOf(gateway)
        return Object.entries(expected).every(([name, bytes]) => (found[name] ?? 0) >= bytes)
      })
      assert.deepEqual(await ledgerOf(gateway), expected)
      // What was not written yet is written when the process ends.
      const { bytes } = await post(gateway, callOf(1234))
      assert.equal(await gateway.running.stop(), 0)
      assert.deepEqual(await ledgerOf(gateway), { ...expected, rpc: expected.rpc + bytes })
    })

  test('of a client that disconnects midway are at least those it received, and at most those that were written', async () => {
    await using on = await start(1)
    const { gateway, node } = on
    let written = 0
    node.onGrpcCall = (call) => {
      call.sendHeaders({})
      const message = Buffer.alloc(100_000)
      const send = () => {
        while (!call.isOver && written < LARGE_BYTES) {
          written += message.length
          if (!call.writeFramed(frameMessage(message))) return
        }
      }
      call.onWritable(send)
      call.onMessage(send)
    }
    const received = {
      rpc: await readAndLeave(gateway),
      ws: await receiveAndLeave(gateway, node),
      grpc: await streamAndLeave(gateway),
    }
    assert.equal(await gateway.running.stop(), 0)
    const ledger = await ledgerOf(gateway)
    const most = { rpc: LARGE_BYTES + 100, ws: 200 * 100_100, grpc: written }
    for (const name of ['rpc', 'ws', 'grpc'] as const) {
      const found = ledger[name] ?? 0
      assert.ok(found >= received[name], `${name}: ${found} of ${received[name]} received`)
      assert.ok(found <= most[name], `${name}: ${found} of ${most[name]} sent by the node`)
    }
    assert.ok((ledger['rpc'] ?? 0) < LARGE_BYTES, 'what was never written is not counted')
  })
})

/** Reads a megabyte of a large response. */
function readAndLeave(gateway: ServedGateway): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const headers = { 'content-type': 'application/json', 'x-token': gateway.token }
  const sent = request(gateway.url, { method: 'POST', headers, agent }, (response) => {
    let bytes = 0
    response.on('error', () => {})
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes < 1_000_000) return
      response.destroy()
      resolve(bytes)
    })
  })
  sent.on('error', reject)
  sent.end(callOf(LARGE_BYTES))
  return promise
}

async function receiveAndLeave(gateway: ServedGateway, node: FakeNode): Promise<number> {
  const client = await openWsTestClient(gateway.ws, { 'x-token': gateway.token })
  let bytes = 0
  client.socket.on('message', (data: Buffer) => (bytes += data.length))
  await client.call('accountSubscribe', ['key'])
  // No more than may wait for a client that a busy machine lets read late.
  for (let at = 0; at < 30; at++) node.notify('accountSubscribe', textOf(100_000))
  await until('some have come', () => bytes > 1_000_000)
  client.socket.terminate()
  for (let at = 0; at < 100; at++) node.notify('accountSubscribe', textOf(100_000))
  assert.equal(client.socket.readyState, WebSocket.CLOSING)
  await client.closed
  return bytes
}

async function streamAndLeave(gateway: ServedGateway): Promise<number> {
  const client = new Client(gateway.grpc, credentials.createInsecure())
  const stream = openStream(client, SUBSCRIBE, tokenMetadata(gateway.token))
  stream.send(Buffer.alloc(0))
  await until('some have come', () => stream.messages.length > 10)
  stream.call.cancel()
  await stream.ended
  client.close()
  return stream.messages.reduce((sum, { length }) => sum + length, 0)
}
