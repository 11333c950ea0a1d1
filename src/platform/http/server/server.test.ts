import assert from 'node:assert/strict'
import { Agent, get, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { createSeededRandom } from '../../../core/random.ts'
import { makeTestCert } from '../../net/test-cert.ts'
import { until } from '../../process/test-wait.ts'
import { createLogger, silentLogger } from '../../telemetry/logger.ts'
import { readBody } from './read-body.ts'
import { sendJson, sendRaw, sendText } from './reply.ts'
import { requestIdOf } from './request-id.ts'
import { type HttpServer, type HttpServerDeps, type HttpServerOptions, startHttpServer } from './server.ts'
import { raw } from './test-raw.ts'

const LOOPBACK = { host: '127.0.0.1', port: 0 }

const start = (deps: Partial<HttpServerDeps> = {}, options: Partial<HttpServerOptions> = {}): Promise<HttpServer> =>
  startHttpServer(
    { listen: LOOPBACK, ...options },
    { log: silentLogger, onRequest: (_request, response) => sendJson(response, 200, { ok: true }), ...deps },
  )

const statusOf = (response: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(response)?.[1])
const fields = (count: number) => Array.from({ length: count }, (_, n) => `h${n}: v\r\n`).join('')

test('refuses hostile heads with their own status and never echoes the request', async () => {
  await using server = await start()
  const cases: [number, string][] = [
    [400, 'GET /CANARY HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n'],
    [400, 'GET /CANARY HTTP/1.1\r\n\r\n'],
    [400, 'GET /CANARY HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx'],
    [400, 'GET /CANARY HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx'],
    [400, 'GET /CANARY HTTP/1.1\r\nHost : a\r\n\r\n'],
    [400, 'GET /CANARY HTTP/1.1\nHost: a\n\n'],
    [400, 'GET /CANARY HTTP/1.1\r\nHost: a\r\nx: a\r\n b\r\n\r\n'],
    [400, 'CANARY\r\n\r\n'],
    [431, `GET /CANARY HTTP/1.1\r\nHost: a\r\n${fields(64)}\r\n`],
    [431, `GET /CANARY HTTP/1.1\r\nHost: a\r\n${fields(2000)}\r\n`],
    [431, `GET /CANARY HTTP/1.1\r\nHost: a\r\nx: ${'a'.repeat(17_000)}\r\n\r\n`],
    [200, `GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${fields(62)}\r\n`],
  ]
  for (const [status, head] of cases) {
    const response = await raw(server, head)
    assert.equal(statusOf(response), status, head.slice(0, 120))
    assert(!response.includes('CANARY'), response)
  }
})

test('refuses two Hosts and too many fields on an upgrade too', async () => {
  await using server = await start({ onUpgrade: (_request, socket) => sendRaw(socket, 426, '{}') })
  const upgrade = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n'
  assert.equal(statusOf(await raw(server, `${upgrade}\r\n`)), 426)
  assert.equal(statusOf(await raw(server, `${upgrade}Host: b\r\n\r\n`)), 400)
  assert.equal(statusOf(await raw(server, `${upgrade}${fields(70)}\r\n`)), 431)
})

test('an upgrade to another protocol than WebSocket is ignored', async () => {
  await using server = await start({ onUpgrade: (_request, socket) => sendRaw(socket, 426, '{}') })
  const offer = 'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n'
  assert.equal(statusOf(await raw(server, `GET / HTTP/1.1\r\nHost: a\r\n${offer}\r\n`)), 200)
  const both = 'Connection: upgrade\r\nUpgrade: h2c, websocket\r\n'
  assert.equal(statusOf(await raw(server, `GET / HTTP/1.1\r\nHost: a\r\n${both}\r\n`)), 426)
})

test('responds 408 to a slow head, a silent socket and a slow body', async () => {
  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await readBody(request, { bodyBytesMax: 100 })
    if (body.ok) sendJson(response, 200, {})
  }
  await using server = await start({ onRequest }, { headersTimeoutMs: 300, requestTimeoutMs: 600 })
  const responses = await Promise.all([
    raw(server, 'GET / HTTP/1.1\r\nHost: a\r\n'),
    raw(server, ''),
    raw(server, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc'),
  ])
  for (const reply of responses) assert.equal(statusOf(reply), 408, reply)
})

test('reads a body up to its limit; one byte more is 413 and closes the connection', async () => {
  let mostRead = 0
  const onRequest = async (request: IncomingMessage, response: ServerResponse) => {
    const read = await readBody(request, { bodyBytesMax: 65_536 })
    mostRead = Math.max(mostRead, request.socket.bytesRead)
    if (read.ok) sendJson(response, 200, { bytes: read.body.length })
    else if (read.reason === 'too-large') sendJson(response, 413, { error: 'too-large' })
  }
  await using server = await start({ onRequest })
  const sized = (bytes: number) => `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n`
  const chunked = (bytes: number) =>
    `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${bytes.toString(16)}\r\n`
  assert.match(await raw(server, sized(65_536), Buffer.alloc(65_536)), /200 OK[^]*"bytes":65536/)
  assert.equal(statusOf(await raw(server, sized(65_537), Buffer.alloc(65_537))), 413)
  assert.match(await raw(server, chunked(65_536), Buffer.alloc(65_536), '\r\n0\r\n\r\n'), /200 OK/)
  assert.equal(statusOf(await raw(server, chunked(65_537), Buffer.alloc(65_537), '\r\n0\r\n\r\n')), 413)
  mostRead = 0
  const keepAlive = (head: string) => head.replace('Connection: close\r\n', '')
  const reply = await raw(server, keepAlive(chunked(30_000_000)), Buffer.alloc(30_000_000))
  assert.equal(statusOf(reply), 413)
  assert.match(reply, /connection: close/i)
  assert(mostRead < 1_000_000, `${mostRead} bytes were read`)
  assert.match(await raw(server, keepAlive(sized(30_000_000)), Buffer.alloc(30_000_000)), /413[^]*connection: close/i)
})

test('readBody returns aborted when the peer closes', async () => {
  let reason = ''
  await using server = await start({
    async onRequest(request) {
      const read = await readBody(request, { bodyBytesMax: 100 })
      reason = read.ok ? 'ok' : read.reason
    },
  })
  const socket = connect(server.address.port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\nabc')
  await until('the request has arrived', () => server.connections() === 1 && socket.bytesWritten > 50)
  setImmediate(() => socket.destroy())
  await until('the body is aborted', () => reason === 'aborted')
})

test('responds 500 without details when the handler throws or rejects', async () => {
  const lines: string[] = []
  const log = createLogger({ level: 'error', destination: { write: (line: string) => lines.push(line) } })
  await using server = await start({
    log,
    onRequest(request, response) {
      if (request.url === '/sync') throw new Error('SECRET detail')
      if (request.url === '/late') {
        response.write('begun')
        return Promise.reject(new Error('SECRET detail'))
      }
      return Promise.reject(new Error('SECRET detail'))
    },
  })
  for (const path of ['/sync', '/async', '/late']) {
    const reply = await raw(server, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    assert.equal(statusOf(reply), path === '/late' ? 200 : 500)
    assert(!reply.includes('SECRET'))
  }
  assert.equal(lines.length, 3)
})

test('HEAD has the headers of GET and no body', async () => {
  await using server = await start()
  const response = await raw(server, 'HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  assert.match(response, /content-length: 11/i)
  assert(response.endsWith('\r\n\r\n'))
})

test('serves over TLS', async () => {
  using cert = makeTestCert()
  await using server = await start({}, { listen: { ...LOOPBACK, tls: cert } })
  const status = await new Promise((resolve, reject) => {
    const options = { port: server.address.port, host: '127.0.0.1', rejectUnauthorized: false, agent: false as const }
    httpsRequest(options, (response) => resolve(response.resume().statusCode))
      .on('error', reject)
      .end()
  })
  assert.equal(status, 200)
})

test('disposing does not wait for idle keep-alive connections', async () => {
  const server = await start()
  const agent = new Agent({ keepAlive: true })
  await new Promise((resolve) =>
    get({ port: server.address.port, host: '127.0.0.1', agent }, (response) =>
      response.resume().on('end', () => resolve(0)),
    ),
  )
  assert.equal(server.connections(), 1)
  await server[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  agent.destroy()
})

test('drain: responses in flight end with connection: close, idle connections and the port are closed', async () => {
  const held: ServerResponse[] = []
  const server = await start({ onRequest: (_request, response) => void held.push(response) })
  const flying = Array.from({ length: 50 }, () => raw(server, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'))
  const agent = new Agent({ keepAlive: true })
  await until('all are in flight', () => held.length === 50)
  const idle = new Promise((resolve) =>
    get({ port: server.address.port, host: '127.0.0.1', agent }, (response) =>
      response.resume().on('end', () => resolve(0)),
    ),
  )
  await until('the idle one is in flight', () => held.length === 51)
  sendJson(held.pop() as ServerResponse, 200, {})
  await idle
  const drained = server.drain(10_000)
  // A request that waits in the queue when the drain begins is accepted; so this only connects.
  await until('the port is closed', () => isPortClosed(server.address.port))
  assert.equal(server.draining, true)
  for (const response of held) sendJson(response, 200, { ok: true })
  for (const reply of await Promise.all(flying)) assert.match(reply, /^HTTP\/1\.1 200[^]*connection: close/i)
  await drained
  agent.destroy()
})

test('lame duck: accepts connections with connection: close; destroys what is open at the deadline', async () => {
  const clock = createManualClock()
  let hanging: ServerResponse | undefined
  const server = await start({
    clock,
    onRequest(request, response) {
      if (request.url === '/hang') hanging = response
      else sendJson(response, 200, {})
    },
  })
  const cut = raw(server, 'GET /hang HTTP/1.1\r\nHost: a\r\n\r\n')
  await until('one hangs', () => hanging !== undefined)
  const drained = server.drain(10_000, { lameDuckMs: 5000 })
  assert.match(await raw(server, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'), /^HTTP\/1\.1 200[^]*connection: close/i)
  await clock.advanceAsync(5000)
  await until('the port is closed', async () => (await raw(server, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')) === '')
  await clock.advanceAsync(5000)
  assert.equal(await cut, '')
  await drained
})

test('responses that began before the drain close their connection too', async () => {
  let begun: ServerResponse | undefined
  // The clock stands still, so the deadline has no effect.
  const server = await start({
    clock: createManualClock(),
    onRequest(_request, response) {
      response.writeHead(200, { 'content-length': 4 })
      response.write('ab')
      begun = response
    },
  })
  const reply = raw(server, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await until('it has begun', () => begun !== undefined)
  const drained = server.drain(5000)
  await until('the port is closed', async () => (await raw(server, '')) === '')
  begun?.end('cd')
  assert.match(await reply, /abcd$/)
  await drained
})

test('onConnection may read a connection first and hand it over', async () => {
  let seen = ''
  await using server = await start({
    onConnection(socket) {
      socket.once('data', (chunk: Buffer) => {
        seen = String(chunk)
        socket.pause()
        socket.unshift(chunk)
        server.handleConnection(socket)
        socket.resume()
      })
    },
  })
  assert.equal(statusOf(await raw(server, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')), 200)
  assert.match(seen, /^GET/)
})

test('serves requests on one connection up to the limit', async () => {
  await using server = await start({}, { requestsPerConnectionMax: 3, keepAliveMs: 100 })
  const response = await raw(server, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(4))
  assert.deepEqual(
    [...response.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
    ['200', '200', '200', '503'],
  )
  assert.match(response, /connection: close/i)
})

test('request ids: a valid one, else the trace id, else a ULID; never one with a token', () => {
  const deps = { clock: createManualClock(), random: createSeededRandom(1) }
  const idOf = (headersDistinct: NodeJS.Dict<string[]>) => requestIdOf({ headersDistinct }, deps)
  const ulid = /^[0-9A-HJKMNP-TV-Z]{26}$/
  assert.equal(idOf({ 'x-request-id': ['abc-1.2:3'] }), 'abc-1.2:3')
  assert.match(idOf({ 'x-request-id': ['a', 'b'] }), ulid)
  assert.match(idOf({ 'x-request-id': ['a\nb'] }), ulid)
  assert.match(idOf({ 'x-request-id': ['x'.repeat(129)] }), ulid)
  assert.match(idOf({ 'x-request-id': ['slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'] }), ulid)
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
  assert.equal(idOf({ traceparent: [`00-${trace}-00f067aa0ba902b7-01`] }), trace)
  assert.match(idOf({ traceparent: [`00-${'0'.repeat(32)}-00f067aa0ba902b7-01`] }), ulid)
  assert.match(idOf({}), ulid)
})

test('responds to a client that has half-closed', async () => {
  await using server = await start()
  const reply = await new Promise<string>((resolve) => {
    const request = httpRequest({ port: server.address.port, host: '127.0.0.1', agent: false }, (response) => {
      response.resume().on('end', () => resolve(String(response.statusCode)))
    })
    request.end()
    request.on('socket', (socket) => socket.on('connect', () => socket.end()))
  })
  assert.equal(reply, '200')
})

test('headersFor applies to every response, also to errors', async () => {
  const marked = { deprecation: '@1', link: '</v2/>; rel="successor-version"' }
  await using server = await start({
    headersFor: (url) => (url.startsWith('/v1/') ? marked : undefined),
    onRequest(request, response) {
      if (request.url === '/v1/throws') throw new Error('no')
      sendJson(response, 200, { ok: true }, { 'cache-control': 'no-store' })
    },
  })
  const ask = (path: string) => fetch(`http://127.0.0.1:${server.address.port}${path}`)
  for (const [path, status] of [
    ['/v1/x?y=1', 200],
    ['/v1/throws', 500],
  ] as const) {
    const reply = await ask(path)
    assert.equal(reply.status, status)
    assert.equal(reply.headers.get('deprecation'), '@1')
    assert.equal(reply.headers.get('link'), marked.link)
  }
  assert.equal((await ask('/v2/x')).headers.get('deprecation'), null)
})

function isPortClosed(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(port, '127.0.0.1', () => resolve(false))
  socket.on('error', () => resolve(true))
  return promise.finally(() => socket.destroy())
}

test('a response without a body has no length: 204 and 304', async () => {
  await using server = await start({
    onRequest: (request, response) => sendText(response, Number(request.url?.slice(1)), '', { etag: '"a"' }),
  })
  for (const status of [204, 304]) {
    const text = await raw(server, `GET /${status} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `))
    assert.doesNotMatch(text, /\r\ncontent-(length|type):/i)
  }
})
