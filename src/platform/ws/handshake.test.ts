import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OPCODE, openRawWs, rawFrame } from '../../../test/support/gateway/raw-ws.ts'
import { createManualClock } from '../../core/clock.ts'
import { startHttpServer } from '../http/server/server.ts'
import { until } from '../process/test-wait.ts'
import { silentLogger } from '../telemetry/logger.ts'
import type { WsConnection } from './connection.ts'
import { createWsServer } from './server.ts'

type Serve = (connection: WsConnection) => void

const echo: Serve = (connection) => connection.onMessage((text) => connection.send(`echo ${text}`))

async function start(serve: Serve = echo) {
  const clock = createManualClock()
  let admitted = 0
  const ws = createWsServer(
    { messageBytesMax: 4096 },
    { clock, admit: () => void admitted++, onConnection: (connection) => serve(connection) },
  )
  const http = await startHttpServer(
    { listen: { host: '127.0.0.1', port: 0 } },
    { log: silentLogger, onRequest: (_, response) => void response.end(), onUpgrade: ws.upgrade },
  )
  return {
    ws,
    clock,
    admitted: () => admitted,
    url: `ws://127.0.0.1:${http.address.port}/`,
    async [Symbol.asyncDispose]() {
      await ws[Symbol.asyncDispose]()
      await http[Symbol.asyncDispose]()
    },
  }
}

const closeFrame = (code: number) => rawFrame(Uint8Array.of(code >> 8, code & 0xff), OPCODE.close)

test('refuses a version other than 13 with 426 and the supported version, before admission', async () => {
  await using server = await start()
  for (const version of ['8', '7', '0', '14', '0xd', '13.0', '13, 8', '', undefined]) {
    const { head } = await openRawWs(server.url, { 'sec-websocket-version': version })
    assert.match(head, /^HTTP\/1\.1 426 /, String(version))
    assert.match(head, /\r\nsec-websocket-version: 13\r\n/i)
    assert.match(head, /\r\nupgrade: websocket\r\n/i)
  }
  assert.deepEqual([server.admitted(), server.ws.connections()], [0, 0])
})

test('refuses to upgrade HTTP/1.0', async () => {
  await using server = await start()
  const { head } = await openRawWs(server.url, {}, '1.0')
  assert.match(head, /^HTTP\/1\.1 426 /)
  assert.deepEqual([server.admitted(), server.ws.connections()], [0, 0])
})

test('refuses a handshake without a valid key, and one that is no GET, in JSON with a request id', async () => {
  await using server = await start()
  for (const [status, error, headers] of [
    [400, 'invalid-handshake', { 'sec-websocket-key': undefined }],
    [400, 'invalid-handshake', { 'sec-websocket-key': 'abc' }],
    [400, 'invalid-handshake', { 'sec-websocket-protocol': 'a,,b' }],
  ] as const) {
    const { head } = await openRawWs(server.url, { ...headers, 'x-request-id': 'mine' })
    assert.match(head, new RegExp(`^HTTP/1\\.1 ${status} [^]*\r\ncontent-type: application/json\r\n`))
    assert.match(head, /\r\nx-request-id: mine\r\n/)
    assert.match(head, new RegExp(`"error":"${error}"`))
  }
  const { head } = await openRawWs(server.url, {}, '1.1', 'POST')
  assert.match(head, /^HTTP\/1\.1 405 [^]*\r\nallow: GET\r\n[^]*"error":"method-not-allowed"/)
  assert.deepEqual(server.ws.connections(), 0)
})

test('accepts an offer of several protocols, WebSocket among them', async () => {
  await using server = await start()
  for (const upgrade of ['websocket, h2c', 'h2c, WebSocket', 'WEBSOCKET']) {
    const { head, socket } = await openRawWs(server.url, { upgrade })
    assert.match(head, /^HTTP\/1\.1 101 [^]*\r\nUpgrade: websocket/, upgrade)
    socket.destroy()
  }
})

test('negotiates no sub-protocol', async () => {
  await using server = await start()
  const { head, socket } = await openRawWs(server.url, { 'sec-websocket-protocol': 'graphql-ws, jsonrpc' })
  assert.match(head, /^HTTP\/1\.1 101 /)
  assert.doesNotMatch(head, /sec-websocket-protocol/i)
  socket.destroy()
})

test('accepts a binary message that is UTF-8 and closes with 1003 on another', async () => {
  await using server = await start()
  const client = await openRawWs(server.url)
  client.socket.write(rawFrame('é', OPCODE.binary))
  await until('the response came', () => client.frames.length === 1)
  assert.equal(client.frames[0]?.payload.toString(), 'echo é')
  client.socket.write(rawFrame(Uint8Array.of(0xff, 0xfe), OPCODE.binary))
  await until('it is closed', () => client.frames.length === 2)
  assert.deepEqual([client.frames[1]?.opcode, client.frames[1]?.payload.readUInt16BE(0)], [OPCODE.close, 1003])
  client.socket.destroy()
})

for (const code of [1000, 4000]) {
  test(`responds to the requests before a close frame with ${code}, then to the frame`, async () => {
    const work = Promise.withResolvers<void>()
    await using server = await start((connection) =>
      connection.onMessage((text) => {
        if (text === 'now') return connection.send('now')
        return work.promise.then(() => connection.send(text))
      }),
    )
    const client = await openRawWs(server.url)
    client.socket.write(Buffer.concat([rawFrame('later'), rawFrame('now'), closeFrame(code)]))
    await until('the immediate response came', () => client.frames.length === 1)
    assert.equal(server.ws.connections(), 1)
    work.resolve()
    await until('it is closed', () => client.isClosed)
    assert.deepEqual(
      client.frames.map(({ opcode, payload }) => (opcode === OPCODE.close ? payload.readUInt16BE(0) : String(payload))),
      ['now', 'later', code],
    )
  })
}

test('replies to a close frame after responseGraceMs although a response is due', async () => {
  let closedWith: number | undefined
  await using server = await start((connection) => {
    connection.onMessage(() => new Promise(() => {}))
    connection.onClose((code) => {
      closedWith = code
    })
  })
  const client = await openRawWs(server.url)
  client.socket.write(Buffer.concat([rawFrame('never'), rawFrame('', OPCODE.ping), closeFrame(1000)]))
  await until('the pong came', () => client.frames.length === 1)
  server.clock.advance(9999)
  assert.equal(client.frames.length, 1)
  server.clock.advance(1)
  await until('it is closed', () => client.isClosed)
  assert.equal(client.frames[1]?.opcode, OPCODE.close)
  assert.equal(closedWith, 1000)
})

test('closes at once on a protocol violation although a response is due', async () => {
  await using server = await start((connection) => connection.onMessage(() => new Promise(() => {})))
  const client = await openRawWs(server.url)
  client.socket.write(Buffer.concat([rawFrame('never'), rawFrame('x', 3)]))
  await until('it is closed', () => client.frames.length === 1)
  assert.equal(client.frames[0]?.payload.readUInt16BE(0), 1002)
  client.socket.destroy()
})

test('ends the socket when the peer replies to a close frame of this side', { timeout: 10_000 }, async () => {
  let connection: WsConnection | undefined
  await using server = await start((opened) => {
    connection = opened
  })
  const client = await openRawWs(server.url)
  connection?.close(1012, 'restart')
  await until('the close frame came', () => client.frames.length === 1)
  client.socket.write(closeFrame(1012))
  // The clock stands still: the grace for a peer that does not reply plays no part.
  await until('the socket is closed', () => client.isClosed)
})

test('calls a close listener that is set late with the code of the peer', async () => {
  let connection: WsConnection | undefined
  await using server = await start((opened) => {
    connection = opened
  })
  const client = await openRawWs(server.url)
  client.socket.write(closeFrame(1001))
  await until('no connection is left', () => server.ws.connections() === 0)
  let closedWith: number | undefined
  connection?.onClose((code) => {
    closedWith = code
  })
  assert.equal(closedWith, 1001)
})
