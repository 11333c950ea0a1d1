import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../process/test-wait.ts'
import { silentLogger } from '../../telemetry/logger.ts'
import type { ResponseRest } from '../response-rest.ts'
import type { PostHandler } from './post.ts'
import { respondToPost } from './post-fallback.ts'
import { type HttpServer, type HttpServerDeps, startHttpServer } from './server.ts'

const post = (body: string, more = '') =>
  `POST / HTTP/1.1\r\nHost: a\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`
const EXPECT = 'Expect: 100-continue\r\n'

/** Echoes the body; for `stream` in two parts, the second when the test releases it. */
function createHandler() {
  let finish = () => {}
  const rest: ResponseRest = {
    start(listener) {
      finish = () => {
        listener.onData(Buffer.from('second half'))
        listener.onEnd()
      }
    },
    pause() {},
    resume() {},
    abort() {},
  }
  const handler: PostHandler = {
    headers: {},
    validate: () => ({
      requestId: 'x',
      bodyBytesMax: 1000,
      tooLarge: () => ({ status: 413, headers: {}, body: '' }),
      onBody: (body, responder) =>
        String(body) === 'stream'
          ? responder.respond({ status: 200, headers: {}, body: 'first half', rest })
          : responder.respond({ status: 200, headers: {}, body: Buffer.from(body) }),
    }),
  }
  return { handler, finish: () => finish() }
}

const start = (deps: Pick<HttpServerDeps, 'onRequest'> & Partial<HttpServerDeps>) =>
  startHttpServer({ listen: { host: '127.0.0.1', port: 0 } }, { log: silentLogger, ...deps })

function client(server: HttpServer) {
  const socket = connect(server.address.port, '127.0.0.1')
  const seen = { socket, text: '', isClosed: false }
  socket.on('data', (chunk) => void (seen.text += String(chunk)))
  socket.on('error', () => {})
  socket.on('close', () => void (seen.isClosed = true))
  return seen
}

for (const reader of ['the complete reader', 'the fast path']) {
  test(`writes 100 Continue of a pipelined request behind the response before it: ${reader}`, async () => {
    const { handler, finish } = createHandler()
    await using server = await start({
      fastPathPosts: reader === 'the fast path' ? handler : undefined,
      onRequest: (request, response) => respondToPost(request, response, handler),
    })
    const seen = client(server)
    seen.socket.write(post('stream') + post('', EXPECT).replace('Content-Length: 0', 'Content-Length: 3'))
    await until('the first is under way', () => seen.text.includes('first half'))
    assert(!seen.text.includes('100 Continue'))
    finish()
    await until('100 Continue came', () => seen.text.includes('100 Continue'))
    seen.socket.write('abc')
    await until('the response came', () => seen.text.endsWith('abc'))
    assert.match(seen.text, /second half\r\n0\r\n\r\nHTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
    seen.socket.destroy()
  })

  test(`writes no 100 Continue where the body of a pipelined request has come already: ${reader}`, async () => {
    const { handler, finish } = createHandler()
    await using server = await start({
      fastPathPosts: reader === 'the fast path' ? handler : undefined,
      onRequest: (request, response) => respondToPost(request, response, handler),
    })
    const seen = client(server)
    seen.socket.write(post('stream') + post('abc', EXPECT))
    await until('the first is under way', () => seen.text.includes('first half'))
    finish()
    await until('the second response came', () => seen.text.endsWith('abc'))
    assert.match(seen.text, /0\r\n\r\n(?:HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)+\r\nabc$/)
    seen.socket.destroy()
  })
}

test('writes no 100 Continue for a refused head', async () => {
  await using server = await start({ onRequest: (_request, response) => void response.end('no') })
  const seen = client(server)
  seen.socket.write(`POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n${EXPECT}Content-Length: 3\r\n\r\n`)
  await until('it is refused', () => seen.isClosed)
  assert.match(seen.text, /^HTTP\/1\.1 400 /)
})

const UPGRADE = 'GET /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframe'

test('delays a pipelined upgrade until the responses before it are sent', async () => {
  const held = Promise.withResolvers<void>()
  await using server = await start({
    onUpgrade: (_request, socket, head) => void socket.write(`HTTP/1.1 101 Switching\r\n\r\n[${head.toString()}]`),
    async onRequest(request, response) {
      if (request.url === '/1') await held.promise
      response.end(`answer ${request.url}`)
    },
  })
  const seen = client(server)
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
  seen.socket.write(get('/1') + get('/2') + UPGRADE)
  await until('it is connected', () => server.connections() === 1)
  // The response on one more connection shows that the server has read what came before.
  const other = client(server)
  other.socket.write(get('/3'))
  await until('the other response came', () => other.text.endsWith('answer /3'))
  assert.equal(seen.text, '')
  held.resolve()
  await until('the frame came', () => seen.text.endsWith('[frame]'))
  assert.match(seen.text, /answer \/1HTTP[^]*answer \/2HTTP\/1\.1 101 Switching/)
  for (const { socket } of [seen, other]) socket.destroy()
})

test('ignores an upgrade behind a response that closes the connection', async () => {
  await using server = await start({
    onUpgrade: () => assert.fail('was taken'),
    onRequest(_request, response) {
      response.shouldKeepAlive = false
      setImmediate(() => response.end('the last'))
    },
  })
  const seen = client(server)
  seen.socket.write(`GET /1 HTTP/1.1\r\nHost: a\r\n\r\n${UPGRADE}`)
  await until('it is closed', () => seen.isClosed)
  assert.match(seen.text, /the last$/)
})
