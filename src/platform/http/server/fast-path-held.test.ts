import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { until } from '../../process/test-wait.ts'
import { silentLogger } from '../../telemetry/logger.ts'
import type { HttpResponse, PostHandler } from './post.ts'
import { respondToPost } from './post-fallback.ts'
import { type HttpServer, type HttpServerOptions, startHttpServer } from './server.ts'

const responseOf = (body: string): HttpResponse => ({ status: 200, headers: {}, body })
const post = (body = '{}') => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const statusesOf = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]))

const handlerOf = (respond: (body: string) => Promise<HttpResponse>): PostHandler => ({
  headers: {},
  validate: () => ({
    requestId: 'x',
    bodyBytesMax: 1000,
    tooLarge: () => ({ ...responseOf('too large'), status: 413 }),
    onBody: (body, sink) => void respond(String(body)).then((response) => sink.respond(response)),
  }),
})

const start = (fastPathPosts: PostHandler, options: Partial<HttpServerOptions> = {}): Promise<HttpServer> =>
  startHttpServer(
    { listen: { host: '127.0.0.1', port: 0 }, ...options },
    {
      log: silentLogger,
      fastPathPosts,
      onRequest: (request, response) => respondToPost(request, response, fastPathPosts),
    },
  )

function client(server: HttpServer): Socket & { text: string; isClosed: boolean } {
  const socket = Object.assign(connect(server.address.port, '127.0.0.1'), { text: '', isClosed: false })
  socket.on('data', (chunk: Buffer) => void (socket.text += chunk.toString('latin1')))
  socket.on('error', () => {})
  socket.on('close', () => void (socket.isClosed = true))
  return socket
}

test('limits pipelined bytes over all connections, and destroys those that exceed it', async () => {
  const held = Promise.withResolvers<HttpResponse>()
  await using server = await start(
    handlerOf(() => held.promise),
    { pendingBytesMax: 100_000 },
  )
  const clients = Array.from({ length: 6 }, () => client(server))
  // The first request of each gets no response yet; 30,000 bytes follow it.
  for (const socket of clients) socket.write(post() + post('x'.repeat(900)).repeat(30))
  await until('some are closed', () => clients.filter(({ isClosed }) => isClosed).length === 3)
  held.resolve(responseOf('now'))
  const kept = clients.filter(({ isClosed }) => !isClosed)
  await until('the others got their responses', () => kept.every(({ text }) => statusesOf(text).length === 31))
  // Their pipelined bytes do not count any more.
  const later = client(server)
  later.write(post() + post('x'.repeat(900)).repeat(30))
  await until('another may pipeline', () => statusesOf(later.text).length === 31)
  for (const socket of [...kept, later]) socket.destroy()
})

for (const [reader, more] of [
  ['the fast path', 'Content-Length: 1000\r\n\r\n'],
  ['node:http', 'Transfer-Encoding: chunked\r\n\r\n3e8\r\n'],
] as const) {
  test(`incomplete bodies take from the budget and release it: ${reader}`, async () => {
    let room = 2000
    const { validate } = handlerOf(async (body) => responseOf(String(body.length)))
    const handler: PostHandler = {
      headers: {},
      validate: (head) => ({
        ...(validate(head) as Extract<ReturnType<typeof validate>, { bodyBytesMax: number }>),
        holdBody(bytes) {
          if (bytes > room) return { ...responseOf('no room'), status: 503 }
          room -= bytes
          return undefined
        },
        releaseBody: (bytes) => void (room += bytes),
      }),
    }
    await using server = await start(handler)
    const head = `POST / HTTP/1.1\r\nHost: a\r\n${more}`
    const slow = [client(server), client(server)]
    for (const socket of slow) socket.write(head + 'x'.repeat(900))
    await until('they hold their bytes', () => room <= 200)
    const third = client(server)
    third.write(head + 'x'.repeat(900))
    await until('the third is refused', () => third.text.includes('no room'))
    assert.deepEqual(statusesOf(third.text), [503])
    slow[0]?.destroy()
    await until('a closed connection releases its bytes', () => room >= 1000)
    slow[1]?.write(`${'x'.repeat(100)}${more.startsWith('Transfer') ? '\r\n0\r\n\r\n' : ''}`)
    await until('the other got its response', () => slow[1]?.text.endsWith('1000') === true)
    await until('all bytes are released', () => room === 2000)
    for (const socket of [...slow, third]) socket.destroy()
  })
}
