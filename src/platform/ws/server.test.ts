import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { WebSocket } from 'ws'
import { createManualClock } from '../../core/clock.ts'
import { startHttpServer } from '../http/server/server.ts'
import { until } from '../process/test-wait.ts'
import { silentLogger } from '../telemetry/logger.ts'
import type { WsConnection } from './connection.ts'
import { encodeTextFrame } from './frame.ts'
import { createWsServer, type WsServerDeps, type WsServerOptions } from './server.ts'

async function start(options: Partial<WsServerOptions> = {}, deps: Partial<WsServerDeps> = {}) {
  const clock = createManualClock()
  const connections: WsConnection[] = []
  const ws = createWsServer(
    { messageBytesMax: 4096, ...options },
    {
      clock,
      onConnection(connection) {
        connections.push(connection)
        connection.onMessage((text) => connection.send(`echo ${text}`))
      },
      ...deps,
    },
  )
  const http = await startHttpServer(
    { listen: { host: '127.0.0.1', port: 0 } },
    { log: silentLogger, onRequest: (_, response) => void response.end(), onUpgrade: ws.upgrade },
  )
  return {
    ws,
    clock,
    connections,
    port: http.address.port,
    url: `ws://127.0.0.1:${http.address.port}`,
    async [Symbol.asyncDispose]() {
      await ws[Symbol.asyncDispose]()
      await http[Symbol.asyncDispose]()
    },
  }
}

async function open(url: string): Promise<WebSocket> {
  const client = new WebSocket(url)
  client.on('error', () => {})
  await once(client, 'open')
  return client
}

async function closeOf(client: WebSocket): Promise<[code: number, reason: string]> {
  const [code, reason] = await once(client, 'close')
  return [code, String(reason)]
}

/** The socket under a client, to write frames that the library does not. */
const rawSocketOf = (client: WebSocket) => (client as unknown as { _socket: { write(bytes: Buffer): void } })._socket

test('an open connection does not keep the request of its handshake in memory', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const requests: WeakRef<object>[] = []
  await using on = await start({}, { onConnection: (_, request) => void requests.push(new WeakRef(request)) })
  const client = await open(on.url)
  await until(
    'the request is collected',
    async () => {
      // A reference that was read is kept until the turn ends.
      await new Promise((resolve) => setImmediate(resolve))
      collect()
      return requests.length === 1 && requests[0]?.deref() === undefined
    },
    10_000,
  )
  assert.equal(on.ws.connections(), 1)
  client.terminate()
})

test('messages of every frame size pass in both directions, without permessage-deflate', async () => {
  await using server = await start()
  const client = await open(server.url)
  assert.equal(client.extensions, '')
  client.send('hello')
  assert.equal(String((await once(client, 'message'))[0]), 'echo hello')
  const [connection] = server.connections
  for (const size of [0, 125, 126, 65_535, 65_536, 200_000]) {
    connection?.sendFrame(encodeTextFrame('é'.repeat(size / 2)))
    const [message] = await once(client, 'message')
    assert.equal(String(message).length, Math.floor(size / 2))
  }
  client.terminate()
})

test('messages of one turn leave in one write and in order', async () => {
  await using server = await start()
  const client = await open(server.url)
  const received: string[] = []
  client.on('message', (message: Buffer) => received.push(message.toString()))
  const connection = server.connections[0] as WsConnection
  for (let i = 0; i < 1000; i++) connection.send(String(i))
  assert.equal(connection.pendingBytes, 1000 * 2 + 2890)
  await until('all messages came', () => received.length === 1000)
  assert.deepEqual(
    received,
    Array.from({ length: 1000 }, (_, index) => String(index)),
  )
  client.terminate()
})

test('closes with a code and a reason: 1009 names the limit and its size, 1007 for text that is not UTF-8, 1002 for an invalid frame', async () => {
  await using server = await start()
  const large = await open(server.url)
  large.send('a'.repeat(4096))
  await once(large, 'message')
  large.send('a'.repeat(4097))
  assert.deepEqual(await closeOf(large), [1009, 'limit reached: 4096 bytes per message (messageBytes)'])
  const garbled = await open(server.url)
  garbled.send(Buffer.from([0xff, 0xfe]), { binary: false })
  assert.deepEqual(await closeOf(garbled), [1007, 'not UTF-8, or compressed data that cannot be inflated'])
  const broken = await open(server.url)
  // A frame without a mask.
  rawSocketOf(broken).write(Buffer.from([0x81, 0x01, 0x61]))
  assert.deepEqual(await closeOf(broken), [1002, 'invalid frame'])
  await until('no connection is left', () => server.ws.connections() === 0)
})

test('a handshake can be refused with status, headers and body', async () => {
  await using server = await start(
    {},
    { admit: () => ({ status: 429, body: 'later', headers: { 'retry-after': '7' } }) },
  )
  const client = new WebSocket(server.url)
  const [, response] = await once(client, 'unexpected-response')
  assert.deepEqual([response.statusCode, response.headers['retry-after']], [429, '7'])
  response.resume()
})

test('connections beyond the maximum are refused', async () => {
  await using server = await start({ connectionsMax: 1 })
  const first = await open(server.url)
  const second = new WebSocket(server.url)
  const [, response] = await once(second, 'unexpected-response')
  assert.equal(response.statusCode, 503)
  response.resume()
  first.terminate()
  await until('no connection is left', () => server.ws.connections() === 0)
  ;(await open(server.url)).terminate()
})

test('closes a client with more than pendingBytesMax behind what is being sent with 1013 and drops its backlog', async () => {
  await using server = await start({ pendingBytesMax: 100_000 })
  const client = await open(server.url)
  const connection = server.connections[0] as WsConnection
  const frame = encodeTextFrame('a'.repeat(40_000))
  // The client cannot read within this turn. The buffers of both kernels take some megabytes.
  for (let sent = 0; sent < 1000 && connection.isOpen; sent++) connection.sendFrame(frame)
  assert.ok(!connection.isOpen)
  assert.equal((await once(client, 'close'))[0], 1013)
})

test('terminates a client that reads nothing after stallMs and closeGraceMs', async () => {
  await using server = await start({ pendingBytesMax: 100_000_000 })
  const client = await open(server.url)
  client.pause()
  const connection = server.connections[0] as WsConnection
  const frame = encodeTextFrame('a'.repeat(1_000_000))
  // More than the buffers of both kernels hold.
  for (let i = 0; i < 30; i++) connection.sendFrame(frame)
  await until('bytes are waiting', () => connection.pendingBytes > 0)
  await turn()
  server.clock.advance(4999)
  assert.ok(connection.isOpen)
  server.clock.advance(1)
  assert.ok(!connection.isOpen)
  server.clock.advance(1000)
  await until('no connection is left', () => server.ws.connections() === 0)
  client.terminate()
})

test('terminates a peer that does not reply to pings and keeps one that does', async () => {
  await using server = await start({ pingMs: 1000 })
  const living = await open(server.url)
  const dead = connect(server.port, '127.0.0.1')
  dead.write(
    'GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  dead.resume()
  await until('both are connected', () => server.ws.connections() === 2)
  server.clock.advance(1000)
  await once(living, 'ping')
  // The echo comes after the pong.
  living.send('after the pong')
  await once(living, 'message')
  server.clock.advance(1100)
  await until('one is left', () => server.ws.connections() === 1)
  assert.equal(living.readyState, WebSocket.OPEN)
  living.terminate()
  dead.destroy()
})

for (const missesMax of [1, 2]) {
  test(`a peer is ended ${missesMax * 30} to ${missesMax * 30 + 3} s after its last frame, whenever that came, and was pinged before`, async () => {
    let ended = 0
    await using server = await start({ pingMs: 30_000, missesMax }, { onDead: () => (ended += 1) })
    for (const lastFrameMs of [0, 1000, 2999, 29_000, 31_000, 59_000]) {
      const client = new WebSocket(server.url, { autoPong: false })
      let pings = 0
      client.on('ping', () => (pings += 1))
      await once(client, 'open')
      for (let atMs = 0; atMs <= lastFrameMs; atMs += 1000) {
        server.clock.advance(atMs === 0 ? lastFrameMs % 1000 : 1000)
        client.send('a frame')
        await once(client, 'message')
      }
      const endedBefore = ended
      pings = 0
      server.clock.advance(missesMax * 30_000 - 1)
      assert.equal(ended, endedBefore, `a frame came ${lastFrameMs} ms after the opening`)
      server.clock.advance(3001)
      assert.equal(ended, endedBefore + 1, `a frame came ${lastFrameMs} ms after the opening`)
      await once(client, 'close')
      assert.ok(pings >= 1)
    }
  })
}

test('a connection that was opened just before is not pinged', async () => {
  await using server = await start({ pingMs: 1000 })
  server.clock.advance(900)
  const young = await open(server.url)
  let pings = 0
  young.on('ping', () => (pings += 1))
  server.clock.advance(100)
  young.send('a message')
  await once(young, 'message')
  assert.equal(pings, 0)
  server.clock.advance(1000)
  await once(young, 'ping')
  young.terminate()
})

test('no ping comes between a request and its response', async () => {
  const { promise: responds, resolve: respond } = Promise.withResolvers<void>()
  const received = Promise.withResolvers<void>()
  await using server = await start(
    { pingMs: 1000 },
    {
      onConnection: (connection) =>
        connection.onMessage(async () => {
          received.resolve()
          await responds
          connection.send('response')
        }),
    },
  )
  const client = await open(server.url)
  const frames: string[] = []
  client.on('ping', () => frames.push('ping'))
  client.on('message', (data: Buffer) => frames.push(data.toString()))
  client.send('request')
  await received.promise
  for (let period = 0; period < 3; period++) server.clock.advance(1000)
  respond()
  await until('the response came', () => frames.length > 0)
  assert.deepEqual(frames, ['response'])
  server.clock.advance(1000)
  await until('the ping came', () => frames.length > 1)
  client.terminate()
})

test('reads nothing more for the time of a pause, and closes in order within it', async () => {
  const received: string[] = []
  const closed = Promise.withResolvers<number>()
  await using server = await start(
    {},
    {
      onConnection(connection) {
        connection.onClose((code) => closed.resolve(code))
        connection.onMessage((text) => {
          received.push(text)
          connection.pauseReading(text === 'first' ? 1000 : 2000)
          connection.send(text)
          if (text === 'third') connection.close(1012)
        })
      },
    },
  )
  const client = await open(server.url)
  client.send('first')
  await once(client, 'message')
  client.send('second')
  client.ping()
  // A second connection of the same thread is served, so what the first has sent would have been read.
  const other = await open(server.url)
  other.send('other')
  await once(other, 'message')
  assert.deepEqual(received, ['first', 'other'])
  server.clock.advance(1000)
  await once(client, 'message')
  assert.deepEqual(received, ['first', 'other', 'second'])
  server.clock.advance(2000)
  client.send('third')
  // The client's reply is read at once, not when the pause or the time for a close handshake is over.
  assert.equal((await once(client, 'close', { signal: AbortSignal.timeout(10_000) }))[0], 1012)
  assert.equal(await closed.promise, 1012)
  other.terminate()
})

test('a peer that is not read for a long time is not silent', async () => {
  let ended = 0
  await using server = await start(
    { pingMs: 1000 },
    {
      onDead: () => (ended += 1),
      onConnection(connection) {
        connection.onMessage((text) => {
          connection.pauseReading(60_000)
          connection.send(text)
        })
      },
    },
  )
  const client = await open(server.url)
  client.send('first')
  await once(client, 'message')
  for (let period = 0; period < 59; period++) server.clock.advance(1000)
  assert.equal(ended, 0)
  client.terminate()
})

test('replies to pings', async () => {
  await using server = await start()
  const client = await open(server.url)
  client.ping('abc')
  assert.equal(String((await once(client, 'pong'))[0]), 'abc')
  client.terminate()
})

test('drain closes with 1012 after the queued messages and terminates a peer that does not reply', async () => {
  await using server = await start()
  const client = await open(server.url)
  const received: string[] = []
  client.on('message', (message: Buffer) => received.push(message.toString()))
  server.connections[0]?.send('last')
  const drained = server.ws.drain(60_000)
  assert.equal((await once(client, 'close'))[0], 1012)
  assert.deepEqual(received, ['last'])
  await drained

  await using other = await start()
  const stubborn = connect(other.port, '127.0.0.1')
  stubborn.write(
    'GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  stubborn.resume()
  await until('it is connected', () => other.ws.connections() === 1)
  const cut = other.ws.drain(60_000)
  other.clock.advance(1000)
  await cut
  stubborn.destroy()
})

async function turn(count = 1): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

test('headersFor applies to the upgrade and to its refusal', async () => {
  const marked = { deprecation: '@1', sunset: 'Wed, 31 Jan 2029 00:00:00 GMT' }
  await using server = await start(
    {},
    {
      headersFor: (url) => (url.startsWith('/v1/') ? marked : undefined),
      admit: (request) => (request.url?.includes('refused') === true ? { status: 401, body: 'no' } : undefined),
    },
  )
  for (const [path, status, deprecation] of [
    ['/v1/ws', 101, '@1'],
    ['/v1/refused', 401, '@1'],
    ['/ws', 101, undefined],
    ['/refused', 401, undefined],
  ] as const) {
    const client = new WebSocket(server.url + path)
    client.on('error', () => {})
    const [reply] = await Promise.race([
      once(client, 'upgrade'),
      once(client, 'unexpected-response').then(([, response]) => [response]),
    ])
    assert.equal(reply.statusCode, status, path)
    assert.equal(reply.headers['deprecation'], deprecation, path)
    assert.equal(reply.headers['sunset'], deprecation && marked.sunset, path)
    client.terminate()
  }
})
