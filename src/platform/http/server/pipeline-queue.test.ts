import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
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
      onBody: (body, sink) =>
        String(body) === 'stream'
          ? sink.respond({ status: 200, headers: {}, body: 'first half', rest })
          : sink.respond({ status: 200, headers: {}, body: Buffer.from(body) }),
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

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

test('handles the requests of one read one at a time, each in its own turn of the event loop', async () => {
  let turn = 0
  let isWatching = true
  const count = () => {
    turn += 1
    if (isWatching) setImmediate(count)
  }
  const turns: number[] = []
  const last = Promise.withResolvers<void>()
  let underWay = 0
  await using server = await start({
    onRequest(_request, response) {
      underWay += 1
      assert.equal(underWay, 1)
      response.once('close', () => (underWay -= 1))
      turns.push(turn)
      response.end('x')
      if (turns.length === 50) last.resolve()
    },
  })
  const seen = client(server)
  count()
  seen.socket.write(GET.repeat(50))
  await last.promise
  isWatching = false
  assert.equal(new Set(turns).size, 50)
  await until('all responses came', () => seen.text.split('HTTP/1.1 200').length === 51)
  seen.socket.destroy()
})

test('disconnects a client that is too many requests ahead, and handles none of those behind', async () => {
  let handled = 0
  await using server = await start({ onRequest: () => void (handled += 1) })
  const seen = client(server)
  seen.socket.write(GET.repeat(500))
  await until('it is closed', () => seen.isClosed && server.connections() === 0)
  assert.equal(handled, 1)
})

test('disconnects a client with too many bodies ahead', async () => {
  let handled = 0
  await using server = await start({ onRequest: () => void (handled += 1) })
  const few = client(server)
  few.socket.write(post('abc').repeat(17))
  await until('the first is under way', () => handled === 1)
  const many = client(server)
  many.socket.write(post('abc').repeat(20))
  await until('it is closed', () => many.isClosed)
  assert.deepEqual([handled, few.isClosed, server.connections()], [2, false, 1])
  few.socket.destroy()
})

test('handles no request behind a response that closes the connection', async () => {
  const handled: (string | undefined)[] = []
  await using server = await start({
    onRequest(request, response) {
      handled.push(request.url)
      response.shouldKeepAlive = false
      response.end('the last')
    },
  })
  // A stream that ends before it is destroyed, as a socket with unsent bytes does.
  const [near, far] = duplexPair()
  server.handleConnection(far as Socket)
  near.write(GET.replace('/', '/1') + GET.replace('/', '/2'))
  const text = String(Buffer.concat(await near.toArray()))
  for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => void setImmediate(resolve))
  assert.match(text, /the last$/)
  assert.deepEqual(handled, ['/1'])
})

test('responds to the requests before malformed bytes, then refuses those', async () => {
  let first: ServerResponse | undefined
  await using server = await start({
    onRequest(request, response) {
      if (request.url === '/1') first = response
      else response.end('second')
    },
  })
  const seen = client(server)
  seen.socket.write(`${GET.replace('/', '/1')}${GET.replace('/', '/2')}nonsense\r\n\r\n`)
  await until('the first is under way', () => first !== undefined)
  const listeners = first?.listenerCount('close')
  for (let at = 0; at < 20; at++) {
    await new Promise<void>((resolve) => void seen.socket.write('more nonsense', () => resolve()))
    await new Promise((resolve) => void setImmediate(resolve))
  }
  assert.equal(first?.listenerCount('close'), listeners)
  first?.end('first')
  await until('it is closed', () => seen.isClosed)
  assert.match(
    seen.text,
    /^HTTP\/1\.1 200[^]*firstHTTP\/1\.1 200[^]*secondHTTP\/1\.1 400[^]*malformed-request","message":"[^"]*"}$/,
  )
})

test('handles nothing behind a body that did not come in time', async () => {
  const handled: ServerResponse[] = []
  await using server = await startHttpServer(
    { listen: { host: '127.0.0.1', port: 0 }, headersTimeoutMs: 100, requestTimeoutMs: 100 },
    { log: silentLogger, onRequest: (_request, response) => void handled.push(response) },
  )
  const seen = client(server)
  const slow = post('123')
  seen.socket.write(GET + slow.slice(0, -1))
  await until('the first is under way', () => handled.length === 1)
  const listeners = handled[0]?.listenerCount('close')
  await until('the time of the body is over', () => handled[0]?.listenerCount('close') !== listeners)
  seen.socket.write(slow.slice(-1) + GET)
  // The response on one more connection shows that the server has read it.
  const other = client(server)
  other.socket.write(GET)
  await until('the other is under way', () => handled.length === 2)
  for (const response of handled) response.end('first')
  await until('it is closed', () => seen.isClosed)
  assert.match(seen.text, /^HTTP\/1\.1 200[^]*firstHTTP\/1\.1 408[^]*request-timeout","message":"[^"]*"}$/)
  assert.equal(handled.length, 2)
  other.socket.destroy()
})

test('closes the connection where a body turns out malformed behind the beginning of its response', async () => {
  await using server = await start({ onRequest: (_request, response) => void response.write('the beginning') })
  const seen = client(server)
  seen.socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  await until('the response has begun', () => seen.text.includes('the beginning'))
  seen.socket.write('nonsense\r\n')
  await until('it is closed', () => seen.isClosed)
  assert.doesNotMatch(seen.text, /malformed/)
})

test('requests behind one whose client has left are not handled', async () => {
  const handled: ServerResponse[] = []
  await using server = await start({ onRequest: (_request, response) => void handled.push(response) })
  const seen = client(server)
  seen.socket.write(GET.repeat(3))
  await until('the first is under way', () => handled.length === 1)
  seen.socket.resetAndDestroy()
  await until('the server has seen it', () => server.connections() === 0 && handled[0]?.closed === true)
  await new Promise((resolve) => void setImmediate(resolve))
  assert.equal(handled.length, 1)
})

test('closes a connection whose peer does not read, also with an upgrade behind the response', async () => {
  const clock = createManualClock()
  let hasUpgraded = false
  await using server = await start({
    clock,
    onUpgrade: () => void (hasUpgraded = true),
    onRequest: (_request, response) => void response.end(Buffer.alloc(32 * 1024 * 1024)),
  })
  const seen = client(server)
  seen.socket.pause()
  seen.socket.write(GET + UPGRADE)
  await until('it is connected', () => server.connections() === 1)
  await until('it is closed', () => {
    clock.advance(1000)
    return server.connections() === 0
  })
  assert.equal(hasUpgraded, false)
  seen.socket.destroy()
})

test('leaves an upgraded connection whose peer does not read to its owner', async () => {
  const clock = createManualClock()
  const upgraded = Promise.withResolvers<Duplex>()
  await using server = await start({
    clock,
    onUpgrade: (_request, socket) => upgraded.resolve(socket),
    onRequest: () => assert.fail('no request'),
  })
  const seen = client(server)
  seen.socket.pause()
  seen.socket.write(UPGRADE)
  const socket = await upgraded.promise
  socket.write(Buffer.alloc(32 * 1024 * 1024))
  for (let second = 0; second < 60; second++) await clock.advanceAsync(1000)
  assert.equal(socket.destroyed, false)
  seen.socket.destroy()
  socket.destroy()
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
