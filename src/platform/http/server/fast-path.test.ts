import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { createManualClock } from '../../../core/clock.ts'
import { makeTestCert } from '../../net/test-cert.ts'
import { systemClock } from '../../process/clock.ts'
import { until } from '../../process/test-wait.ts'
import { createLogger, silentLogger } from '../../telemetry/logger.ts'
import type { ResponseRest } from '../response-rest.ts'
import type { HttpResponse, PostHandler, PostHead } from './post.ts'
import { respondToPost } from './post-fallback.ts'
import { sendJson } from './reply.ts'
import { type HttpServer, type HttpServerOptions, startHttpServer } from './server.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const responseOf = (body: string): HttpResponse => ({ status: 200, headers: JSON_TYPE, body })
const post = (body = '{}', more = '') =>
  `POST / HTTP/1.1\r\nHost: a\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** A handler that sends the result of `respond` for each body. */
const handlerOf = (respond: (body: string, head: PostHead) => Promise<HttpResponse>): PostHandler => ({
  headers: { 'x-common': '1' },
  validate: (head) => ({
    requestId: 'id-1',
    bodyBytesMax: 1000,
    tooLarge: () => ({ ...responseOf('too large'), status: 413 }),
    onBody: (body, sink) =>
      void respond(String(body), head).then(
        (response) => sink.respond(response),
        (error: unknown) => sink.fail(error),
      ),
  }),
})

const echo = handlerOf(async (body) => responseOf(body))

function start(
  fastPathPosts: PostHandler | undefined,
  options: Partial<HttpServerOptions> & { clock?: typeof systemClock; log?: typeof silentLogger } = {},
): Promise<HttpServer> {
  const { clock = systemClock, log = silentLogger, ...more } = options
  return startHttpServer(
    { listen: { host: '127.0.0.1', port: 0 }, ...more },
    {
      log,
      clock,
      fastPathPosts,
      onRequest: (request, response) =>
        request.method === 'POST' && request.url === '/'
          ? respondToPost(request, response, fastPathPosts ?? echo)
          : sendJson(response, 200, { by: 'node:http' }),
    },
  )
}

/** A client that records what it receives. */
function client(server: HttpServer): Socket & { text: string; isClosed: boolean } {
  const socket = Object.assign(connect({ port: server.address.port, host: '127.0.0.1', allowHalfOpen: true }), {
    text: '',
    isClosed: false,
  })
  socket.on('data', (chunk: Buffer) => {
    socket.text += chunk.toString('latin1')
  })
  socket.on('end', () => socket.end())
  socket.on('error', () => {})
  socket.on('close', () => {
    socket.isClosed = true
  })
  return socket
}

async function ask(server: HttpServer, bytes: string): Promise<string> {
  const socket = client(server)
  socket.write(bytes)
  socket.end()
  await until('the server has closed', () => socket.isClosed)
  return socket.text
}

const statusesOf = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))

test('responses are the same from the fast path and from node:http', async () => {
  const rest = (): ResponseRest => ({
    start(listener) {
      // In a later turn, since node:http joins the writes of one turn.
      setImmediate(() => {
        listener.onData(Buffer.from('second'))
        setImmediate(() => listener.onEnd())
      })
    },
    pause() {},
    resume() {},
    abort() {},
  })
  const responses: HttpResponse[] = [
    responseOf('{"result":"äöü"}'),
    { status: 204, headers: { 'x-ratelimit-cost': '1' }, body: '' },
    { status: 429, headers: { ...JSON_TYPE, 'retry-after': '1' }, body: '{}' },
    { ...responseOf('late'), closes: true },
    { ...responseOf('first'), rest: rest() },
    { ...responseOf(''), body: Buffer.alloc(200_000, 'y') },
  ]
  for (const reply of responses) {
    const handler = handlerOf(async () => (reply.rest ? { ...reply, rest: rest() } : reply))
    await using plain = await start(handler)
    await using node = await startHttpServer(
      { listen: { host: '127.0.0.1', port: 0 } },
      { log: silentLogger, onRequest: (request, response) => respondToPost(request, response, handler) },
    )
    const undated = (text: string) => text.replace(/Date: [^\r]*/, 'Date: now')
    const [quick, complete] = [await ask(plain, post()), await ask(node, post())]
    assert.equal(undated(quick), undated(complete))
    assert.match(quick, /\r\nDate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/)
  }
})

test('serves many POSTs on one connection, and hands another request to node:http', async () => {
  await using server = await start(echo)
  const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
  const chunked = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nodd\r\n0\r\n\r\n'
  const text = await ask(server, post('one') + post('two') + chunked + get + post('three'))
  assert.deepEqual(statusesOf(text), [200, 200, 200, 200, 200])
  assert.match(text, /one[^]*two[^]*odd[^]*node:http[^]*three$/)
})

test('heads and bodies in pieces stay with their connection, whatever others send between', async () => {
  await using server = await start(echo)
  const clients = Array.from({ length: 4 }, () => client(server))
  // Equal lengths and different contents, so that bytes of another connection would parse.
  const requests = clients.map((_, index) => post(`"body of ${index}"`, `x-name: client-${index}\r\n`))
  const length = requests[0]?.length ?? 0
  const step = 9
  for (let from = 0; from < length; from += step) {
    for (const [at, socket] of clients.entries()) {
      const { bytesWritten } = socket
      socket.write((requests[at] as string).slice(from, from + step))
      await until('it is sent', () => socket.writableLength === 0 && socket.bytesWritten > bytesWritten)
    }
    // A complete request on another connection: with its response, all pieces before it have been read.
    await ask(server, post('"between"', 'x-name: another1\r\n'))
  }
  for (const [at, socket] of clients.entries()) {
    await until('the response came', () => socket.text !== '')
    assert.match(socket.text, new RegExp(`^HTTP/1\\.1 200 [^]*"body of ${at}"$`))
    socket.destroy()
  }
})

test('discards the body of a request that is refused by its head', async () => {
  const refusing: PostHandler = {
    headers: {},
    validate: ({ headers }) =>
      headers.includes('bad')
        ? { requestId: 'x', response: { ...responseOf('no'), status: 401 } }
        : headers.includes('late')
          ? { requestId: 'x', response: Promise.resolve({ ...responseOf('no'), status: 401, closes: true }) }
          : echo.validate({ target: '/', headers, bodyBytes: 0, connection: {} }),
  }
  await using server = await start(refusing)
  const smuggled = post('hidden')
  const text = await ask(
    server,
    post(smuggled, 'x-token: bad\r\n') + post('seen') + post('x', 'x-token: late\r\n') + post(),
  )
  assert.deepEqual(statusesOf(text), [401, 200, 401])
  assert(!text.includes('hidden') && text.includes('seen'))
  assert.match(text, /401[^]*200[^]*401[^]*Connection: close/)
})

test('timeouts: responds 408 to a silent socket, a slow head and a slow body; closes an idle connection', async () => {
  const clock = createManualClock()
  await using server = await start(echo, { clock })
  const [silent, slowHead, slowBody, idle, trickle] = [0, 0, 0, 0, 0].map(() => client(server)) as [
    ReturnType<typeof client>,
    ...ReturnType<typeof client>[],
  ] &
    ReturnType<typeof client>[]
  slowHead?.write('POST / HT')
  slowBody?.write(post('0123456789').slice(0, -3))
  idle?.write(post())
  trickle?.write('P')
  await until('all have arrived', () => server.connections() === 5 && idle?.text !== '')
  // The response to one more request shows that the server has read the bytes before it.
  await ask(server, post())
  await clock.advanceAsync(6000)
  await until('slow heads are refused', () => [silent, slowHead, trickle].every((one) => one?.isClosed === true))
  for (const one of [silent, slowHead, trickle]) assert.match(one?.text ?? '', /^HTTP\/1\.1 408 [^]*request-timeout/)
  assert.equal(slowBody?.isClosed, false)
  await clock.advanceAsync(10_000)
  await until('the slow body is refused', () => slowBody?.isClosed === true)
  assert.match(slowBody?.text ?? '', /^HTTP\/1\.1 408 /)
  assert.equal(idle?.isClosed, false)
  await clock.advanceAsync(51_000)
  await until('the idle one is closed', () => idle?.isClosed === true)
  assert.deepEqual(statusesOf(idle?.text ?? ''), [200])
})

test('pipelined requests wait in the socket of the client', async () => {
  const held = Promise.withResolvers<HttpResponse>()
  let asked = 0
  let connection: Partial<Socket> = {}
  const server = await start(
    handlerOf((_body, head) => {
      asked += 1
      connection = head.connection as Partial<Socket>
      return asked === 1 ? held.promise : Promise.resolve(responseOf('next'))
    }),
  )
  const socket = client(server)
  const ahead = 20_000
  socket.write(post().repeat(ahead))
  await until('the first is being handled', () => asked === 1)
  await until('the client is blocked', () => socket.writableLength > 0 || (connection.bytesRead ?? 0) > 0)
  assert((connection.bytesRead ?? 0) < 300_000, `${connection.bytesRead} bytes were read ahead`)
  held.resolve(responseOf('first'))
  await until('the connection has reached its request limit', () => socket.isClosed, 30_000)
  assert.equal(asked, 10_000)
  await server[Symbol.asyncDispose]()
})

test('a client that does not read pauses the source and is closed after stallMs', async () => {
  const clock = createManualClock()
  const seen = { paused: 0, resumed: 0, aborted: 0 }
  let flow = () => {}
  const rest: ResponseRest = {
    start(listener) {
      flow = () => {
        const before = seen.paused
        for (let chunks = 0; chunks < 1000 && seen.paused === before; chunks++) listener.onData(Buffer.alloc(65_536))
      }
      flow()
    },
    pause: () => void (seen.paused += 1),
    resume() {
      seen.resumed += 1
      flow()
    },
    abort: () => void (seen.aborted += 1),
  }
  await using server = await start(
    handlerOf(async () => ({ ...responseOf('begins'), rest })),
    { clock },
  )
  const socket = client(server)
  socket.pause()
  socket.write(post())
  await until('the source is paused', () => seen.paused > 0)
  const before = seen.resumed
  socket.resume()
  await until('reading resumes it', () => seen.resumed > before + 3)
  socket.pause()
  // The socket buffers fill before the clock advances.
  let bytes = -1
  await until('no more bytes are written', () => {
    const isQuiet = bytes === socket.bytesRead
    bytes = socket.bytesRead
    return isQuiet
  })
  for (let second = 0; second < 13; second++) await clock.advanceAsync(1000)
  await until('the connection is closed and the source aborted', () => seen.aborted === 1)
  socket.destroy()
})

test('a response whose source fails closes the connection without the last chunk', async () => {
  const rest: ResponseRest = { start: (listener) => listener.onFail(), pause() {}, resume() {}, abort() {} }
  await using server = await start(handlerOf(async () => ({ ...responseOf('half'), rest })))
  const text = await ask(server, post())
  assert(!text.endsWith('0\r\n\r\n'))
})

test('aborts the source of a client that has closed', async () => {
  let aborted = 0
  const made = Promise.withResolvers<HttpResponse>()
  let asked = false
  await using server = await start(
    handlerOf(() => {
      asked = true
      return made.promise
    }),
  )
  const socket = client(server)
  socket.write(post())
  await until('the handler is called', () => asked)
  socket.resetAndDestroy()
  await until('the connection is closed', () => server.connections() === 0)
  made.resolve({
    ...responseOf(''),
    rest: { start: () => assert.fail('no listener'), pause() {}, resume() {}, abort: () => void (aborted += 1) },
  })
  await until('the source is aborted', () => aborted === 1)
})

test('drain: responses in flight have connection: close, idle connections and the port are closed', async () => {
  const held: ((response: HttpResponse) => void)[] = []
  const server = await start(
    handlerOf((body) =>
      body === 'hold' ? new Promise((resolve) => void held.push(resolve)) : Promise.resolve(responseOf('now')),
    ),
    { clock: createManualClock() },
  )
  const flying = Array.from({ length: 50 }, () => client(server))
  for (const socket of flying) socket.write(post('hold'))
  const idle = client(server)
  idle.write(post())
  await until('all are in flight', () => held.length === 50 && idle.text !== '')
  server.beginLameDuck()
  assert.match(await ask(server, post()), /200 OK[^]*Connection: close/)
  const drained = server.drain(10_000)
  await until('the idle one is closed', () => idle.isClosed)
  for (const respond of held) respond(responseOf('done'))
  await drained
  for (const socket of flying) assert.match(socket.text, /^HTTP\/1\.1 200 OK[^]*Connection: close[^]*done$/)
})

test('responds 500 without details when the handler throws or rejects, and keeps the connection', async () => {
  const lines: string[] = []
  const log = createLogger({ level: 'error', destination: { write: (line: string) => lines.push(line) } })
  const handler = handlerOf((body) =>
    body === 'bad' ? Promise.reject(new Error('SECRET')) : Promise.resolve(responseOf('fine')),
  )
  const validate: PostHandler['validate'] = (head) => {
    if (head.headers.includes('throw')) throw new Error('SECRET')
    return handler.validate(head)
  }
  await using server = await start({ ...handler, validate: validate }, { log })
  const text = await ask(server, post('bad') + post('a', 'x: throw\r\n') + post('good'))
  assert.deepEqual(statusesOf(text), [500, 500, 200])
  assert(!text.includes('SECRET'))
  assert.equal(lines.length, 2)
})

test('works over TLS, also after the handover to node:http', async () => {
  using cert = makeTestCert()
  await using server = await start(echo, { listen: { host: '127.0.0.1', port: 0, tls: cert } })
  const socket = connectTls({ port: server.address.port, host: '127.0.0.1', rejectUnauthorized: false })
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += String(chunk)
  })
  socket.write(`${post('one')}${post('two')}GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  await until('all responses came', () => statusesOf(text).length === 3 && text.includes('node:http'))
  assert.match(text, /one[^]*two[^]*node:http/)
  socket.destroy()
})
