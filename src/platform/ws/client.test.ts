import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { test } from 'node:test'
import { type WebSocket, WebSocketServer } from 'ws'
import { startFaultProxy } from '../../../test/faults/fault-proxy.ts'
import { createManualClock } from '../../core/clock.ts'
import { createPinnedAddress } from '../net/pinned-address.ts'
import { systemClock } from '../process/clock.ts'
import { until } from '../process/test-wait.ts'
import { openWsClient, type WsClient, type WsClientOptions, type WsLoss } from './client.ts'

async function startServer() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  const sockets: WebSocket[] = []
  const headers: IncomingHttpHeaders[] = []
  const texts: string[] = []
  server.on('connection', (socket, request) => {
    sockets.push(socket)
    headers.push(request.headers)
    socket.on('error', () => {})
    socket.on('message', (data) => texts.push((data as Buffer).toString()))
  })
  await once(server, 'listening')
  return {
    port: (server.address() as { port: number }).port,
    sockets,
    headers,
    texts,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.terminate()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const pinned = (port: number, host = '127.0.0.1', allowPrivate = true) =>
  createPinnedAddress({ host, port, secure: false, path: '/ws' }, { allowPrivate })

async function openTo(port: number, options: WsClientOptions = {}, clock = systemClock): Promise<WsClient> {
  const opening = await openWsClient(options, { clock, address: pinned(port) })
  assert.ok(opening.ok, opening.ok ? '' : opening.loss.message)
  return opening.client
}

test('text passes in both directions, with the configured headers in the handshake and no compression', async () => {
  await using server = await startServer()
  const client = await openTo(server.port, { headers: { 'x-token': 'node secret' } })
  const got: string[] = []
  client.onMessage((message) => got.push(message.toString()))
  client.send('hello')
  await until('the server has it', () => server.texts.length === 1)
  server.sockets[0]?.send('{"answer":1}')
  await until('the client has it', () => got.length === 1)
  assert.deepEqual([server.texts, got], [['hello'], ['{"answer":1}']])
  assert.equal(server.headers[0]?.['x-token'], 'node secret')
  assert.equal(server.headers[0]?.['sec-websocket-extensions'], undefined)
  client.close()
  assert.equal(client.isOpen, false)
})

test('connects to a name at its pinned address', async () => {
  await using server = await startServer()
  const address = createPinnedAddress(
    { host: 'node.example', port: server.port, secure: false, path: '/' },
    { allowPrivate: true },
    { lookup: async () => ['127.0.0.1'] },
  )
  const opening = await openWsClient({}, { clock: systemClock, address })
  assert.ok(opening.ok)
  assert.equal(server.headers[0]?.host, `node.example:${server.port}`)
  opening.client.close()
})

test('resolves with the loss: no listener, a refusal, a redirect, a forbidden address, no response', async () => {
  const http = createServer((_request, response) => void response.end())
  const responses = ['HTTP/1.1 401 No\r\n\r\n', 'HTTP/1.1 302 Go\r\nLocation: ws://127.0.0.1:1/\r\n\r\n']
  http.on('upgrade', (_request, socket) => void socket.on('error', () => {}).end(responses.shift()))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as { port: number }
  const lossOf = async (address: ReturnType<typeof pinned>): Promise<WsLoss> => {
    const opening = await openWsClient({}, { clock: systemClock, address })
    assert.ok(!opening.ok)
    return opening.loss
  }
  assert.deepEqual(await lossOf(pinned(port)), {
    cause: 'refused',
    message: 'the handshake was refused with 401',
    status: 401,
  })
  assert.equal((await lossOf(pinned(port))).status, 302)
  assert.equal((await lossOf(pinned(port, '127.0.0.1', false))).cause, 'address')
  await new Promise((resolve) => void http.close(resolve))
  assert.deepEqual(await lossOf(pinned(port)), { cause: 'connect', message: 'ECONNREFUSED' })

  const clock = createManualClock()
  const silent = createServer()
  silent.on('upgrade', (_request, socket) => void socket.on('end', () => socket.destroy()).resume())
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const opening = openWsClient({}, { clock, address: pinned((silent.address() as { port: number }).port) })
  await until('the timeout is set', () => clock.pendingTimers() === 1)
  clock.advance(5000)
  assert.deepEqual(await opening, { ok: false, loss: { cause: 'connect', message: 'no response in time' } })
  await new Promise((resolve) => void silent.close(resolve))
})

test('calls the close listener once when the server closes or resets', async () => {
  await using server = await startServer()
  const losses: WsLoss[] = []
  const first = await openTo(server.port)
  first.onClose((loss) => losses.push(loss))
  server.sockets[0]?.close(1012)
  await until('the close is reported', () => losses.length === 1)
  const second = await openTo(server.port)
  second.onClose((loss) => losses.push(loss))
  server.sockets[1]?.terminate()
  await until('the reset is reported', () => losses.length === 2)
  second.close()
  second.onClose((loss) => losses.push(loss))
  assert.deepEqual(
    losses.map(({ message }) => message),
    ['closed with 1012', 'closed with 1006', 'closed with 1006'],
  )
})

test('F4: a half-open connection is found within 25 s; one that replies to pings stays', async () => {
  const clock = createManualClock()
  await using server = await startServer()
  await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: server.port } })
  const client = await openTo(proxy.port, {}, clock)
  let loss: WsLoss | undefined
  client.onClose((reported) => void (loss = reported))
  let pings = 0
  server.sockets[0]?.on('ping', () => void (pings += 1))
  for (let beat = 1; beat <= 4; beat++) {
    clock.advance(5000)
    const pongs = proxy.bytes.downstream
    await until('the pong came', () => pings === Math.ceil(beat / 2) && proxy.bytes.downstream >= pongs)
    await until('the pong is read', () => client.isOpen)
  }
  assert.equal(loss, undefined)
  proxy.add({ type: 'timeout', timeoutMs: 0, stream: 'upstream' })
  proxy.add({ type: 'timeout', timeoutMs: 0, stream: 'downstream' })
  clock.advance(24_000)
  clock.advance(1000)
  assert.deepEqual(loss, { cause: 'dead', message: 'no reply to pings' })
  assert.equal(client.isOpen, false)
})

test('ends the connection on a message over the limit and on a malformed frame', async () => {
  await using server = await startServer()
  for (const harm of [
    (socket: WebSocket) => socket.send('x'.repeat(2000)),
    // A masked frame may only come from a client (RFC 6455 section 5.1).
    (socket: WebSocket) =>
      (socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(
        Buffer.from([0x81, 0x81, 1, 2, 3, 4, 5]),
      ),
  ]) {
    const client = await openTo(server.port, { messageBytesMax: 1000 })
    let loss: WsLoss | undefined
    client.onClose((reported) => void (loss = reported))
    harm(server.sockets.at(-1) as WebSocket)
    await until('the connection ends', () => loss !== undefined)
    assert.equal(loss?.cause, 'protocol')
  }
})

test('ends the connection when the server does not read', async () => {
  await using server = await startServer()
  await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: server.port } })
  const client = await openTo(proxy.port, { pendingBytesMax: 1_000_000 })
  let loss: WsLoss | undefined
  client.onClose((reported) => void (loss = reported))
  proxy.add({ type: 'latency', latencyMs: 1_000_000, stream: 'upstream' })
  await until('the connection has ended', () => {
    client.send('x'.repeat(500_000))
    return loss !== undefined
  })
  assert.equal(loss?.cause, 'too-slow')
})
