import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../process/test-wait.ts'
import { silentLogger } from '../../telemetry/logger.ts'
import { readBody } from './read-body.ts'
import { sendJson } from './reply.ts'
import { type HttpServer, type HttpServerDeps, startHttpServer } from './server.ts'

const POST = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const END = '0\r\n\r\n'

const start = (onRequest: HttpServerDeps['onRequest']): Promise<HttpServer> =>
  startHttpServer({ listen: { host: '127.0.0.1', port: 0 } }, { log: silentLogger, onRequest })

function client(server: HttpServer, text: string) {
  const socket = connect(server.address.port, '127.0.0.1')
  const seen = { socket, text: '', isClosed: false }
  socket.on('data', (chunk) => (seen.text += String(chunk)))
  socket.on('error', () => {})
  socket.on('close', () => (seen.isClosed = true))
  socket.write(text)
  return seen
}

async function echoLength(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const read = await readBody(request, { bodyBytesMax: 65_536 })
  if (read.ok) sendJson(response, 200, { bytes: read.body.length, text: read.body.toString('latin1') })
}

test('a body in small chunks is read as it was sent', async () => {
  await using server = await start(echoLength)
  for (const [piece, count] of [
    ['x', 256],
    ['0123456789'.repeat(7), 900],
  ] as const) {
    const seen = client(server, `${POST}${`${piece.length.toString(16)}\r\n${piece}\r\n`.repeat(count)}${END}`)
    await until('it is answered', () => seen.text.endsWith('}'))
    assert.match(seen.text, /^HTTP\/1\.1 200 /)
    assert.equal(JSON.parse(seen.text.slice(seen.text.indexOf('{'))).text, piece.repeat(count))
    seen.socket.destroy()
  }
})

test('a body in crumbs is refused by name and closes the connection, whether its handler reads it or not', async () => {
  for (const isRead of [true, false]) {
    let request: IncomingMessage | undefined
    await using server = await start((given, response) => {
      request = given
      return isRead ? echoLength(given, response) : undefined
    })
    const seen = client(server, POST + '1\r\nx\r\n'.repeat(200_000))
    await until('it is closed', () => seen.isClosed)
    // The server closes with bytes unread, so the refusal may be lost to the reset.
    if (seen.text !== '') assert.match(seen.text, /^HTTP\/1\.1 413 [^]*"error":"body-pieces"[^]*limit: bodyPieces/)
    assert.ok((request?.socket.bytesRead ?? 0) < 250_000, `${request?.socket.bytesRead} bytes were read`)
    assert.ok((request?.readableLength ?? 0) <= 270, `${request?.readableLength} crumbs are in memory`)
  }
})

test('a body in crumbs behind another request is refused after its response', async () => {
  const handled: ServerResponse[] = []
  await using server = await start((_request, response) => void handled.push(response))
  const seen = client(server, GET + POST + '1\r\nx\r\n'.repeat(100))
  await until('the first is under way', () => handled.length === 1)
  handled[0]?.end('first')
  await until('it is closed', () => seen.isClosed)
  assert.match(seen.text, /^HTTP\/1\.1 200[^]*firstHTTP\/1\.1 413 [^]*body-pieces/)
  assert.equal(handled.length, 1)
})

test('a body in crumbs behind another request is not read further, also where its head is refused', async () => {
  const handled: ServerResponse[] = []
  await using server = await start((_request, response) => void handled.push(response))
  const withoutHost = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'
  for (const heads of [withoutHost, `${withoutHost}${END}${POST}`]) {
    handled.length = 0
    const seen = client(server, GET + heads + '1\r\nx\r\n'.repeat(200_000))
    await until('the first is under way', () => handled.length === 1)
    const socket = handled[0]?.req.socket
    for (let turns = 0; turns < 50; turns++) await new Promise(setImmediate)
    assert.ok((socket?.bytesRead ?? 0) < 250_000, `${socket?.bytesRead} bytes were read`)
    handled[0]?.end('first')
    await until('it is closed', () => seen.isClosed)
    assert.match(seen.text, /^HTTP\/1\.1 200[^]*first/)
  }
})
