import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../process/test-wait.ts'
import { silentLogger } from '../../telemetry/logger.ts'
import { readBody } from './read-body.ts'
import { sendJson } from './reply.ts'
import { type HttpServer, startHttpServer } from './server.ts'

const HEAD_BYTES = 256 * 1024
const BEGIN = `GET /?${'a'.repeat(HEAD_BYTES)}`
const END = ' HTTP/1.1\r\nHost: a\r\n\r\n'

const start = (listen: { plaintext?: 'behind-proxy' } = {}): Promise<HttpServer> =>
  startHttpServer(
    { listen: { host: '127.0.0.1', port: 0, ...listen }, headerBytesMax: HEAD_BYTES + 1024 },
    {
      log: silentLogger,
      async onRequest(request, response) {
        const read = await readBody(request, { bodyBytesMax: 64 * 1024 * 1024 })
        sendJson(response, 200, { bytes: read.ok ? read.body.length : read.reason })
      },
    },
  )

function client(server: HttpServer, text: string) {
  const socket = connect(server.address.port, '127.0.0.1')
  const seen = { socket, text: '', isClosed: false }
  socket.on('data', (chunk) => (seen.text += String(chunk)))
  socket.on('error', () => {})
  socket.on('close', () => (seen.isClosed = true))
  socket.write(text)
  return seen
}

test('one address has at most 8 MiB of large heads that are not complete, and gets them back', async () => {
  await using server = await start()
  const clients = Array.from({ length: 50 }, () => client(server, BEGIN))
  await until('those beyond are closed', () => clients.filter(({ isClosed }) => isClosed).length >= 18)
  // The server closes with bytes unread, so the refusal may be lost to the reset.
  for (const { text, isClosed } of clients)
    if (isClosed && text !== '') assert.match(text, /^HTTP\/1\.1 429 [^]*"error":"head-bytes"[^]*limit: headBytes/)
  const small = client(server, `GET /${END}`)
  await until('a small one is served', () => small.text.endsWith('}'))
  for (const { socket } of [...clients, small]) socket.destroy()
  await until('all are closed', () => server.connections() === 0)
  const again = Array.from({ length: 28 }, () => client(server, BEGIN))
  for (const { socket } of again) socket.write(END)
  await until('all are served', () => again.every(({ text }) => text.endsWith('}')))
  for (const { socket } of again) socket.destroy()
})

test('behind a proxy all peers have one address, and are limited together only', async () => {
  await using server = await start({ plaintext: 'behind-proxy' })
  const clients = Array.from({ length: 50 }, () => client(server, BEGIN))
  const last = client(server, BEGIN + END)
  await until('one more is served', () => last.text.endsWith('}'))
  for (const { socket } of clients) socket.write(END)
  await until('all are served', () => clients.every(({ text }) => /^HTTP\/1.1 200 [^]*}$/.test(text)), 10_000)
  for (const { socket } of [...clients, last]) socket.destroy()
})

test('complete heads and bodies are not counted', async () => {
  await using server = await start()
  const seen = client(server, '')
  const body = Buffer.alloc(12 * 1024 * 1024)
  for (let count = 1; count <= 40; count++) {
    seen.socket.write(BEGIN + END)
    await until('a large head is served', () => seen.text.split('{').length === count + 1)
  }
  seen.socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`)
  seen.socket.write(body)
  await until('the body is read', () => seen.text.endsWith(`{"bytes":${body.length}}`))
  seen.socket.destroy()
})

test('a connection that is idle after a body holds nothing', async () => {
  await using server = await start()
  const body = 'b'.repeat(128 * 1024)
  const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const idle = Array.from({ length: 150 }, () => client(server, post))
  await until('all bodies are read', () => idle.every(({ text }) => text.endsWith('}')))
  const large = Array.from({ length: 20 }, () => client(server, BEGIN))
  for (const { socket } of large) socket.write(END)
  await until('all are served', () => large.every(({ text }) => text.endsWith('}')))
  for (const { socket } of [...idle, ...large]) socket.destroy()
})
