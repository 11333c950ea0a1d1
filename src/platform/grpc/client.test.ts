import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import {
  createServer as createHttp2Server,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import { startFaultProxy } from '../../../test/faults/fault-proxy.ts'
import { type Clock, createManualClock } from '../../core/clock.ts'
import { createPinnedAddress } from '../net/pinned-address.ts'
import { makeTestCert } from '../net/test-cert.ts'
import { systemClock } from '../process/clock.ts'
import { until } from '../process/test-wait.ts'
import { silentLogger } from '../telemetry/logger.ts'
import type { GrpcCall } from './call.ts'
import { type GrpcClientOptions, type GrpcLoss, openGrpcSession } from './client.ts'
import { frameMessage } from './framing.ts'
import { startGrpcServer } from './server.ts'
import { GrpcCode } from './status.ts'
import type { GrpcEnd, GrpcStream } from './stream.ts'

const startServer = (
  onCall: (call: GrpcCall) => void,
  more: { tls?: { cert: string; key: string }; streams?: number } = {},
) =>
  startGrpcServer(
    {
      listen: { host: '127.0.0.1', port: 0, tls: more.tls },
      ...(more.streams === undefined ? {} : { streamsPerConnectionMax: more.streams }),
    },
    { log: silentLogger, clock: systemClock, onCall },
  )

const pinned = (port: number, secure = false) =>
  createPinnedAddress(
    { host: secure ? 'localhost' : '127.0.0.1', port, secure, path: '/' },
    { allowPrivate: true },
    { lookup: async () => ['127.0.0.1'] },
  )

async function openTo(port: number, options: GrpcClientOptions = {}, clock: Clock = systemClock) {
  const opening = await openGrpcSession(options, { clock, address: pinned(port, options.ca !== undefined) })
  assert.ok(opening.ok, opening.ok ? '' : opening.loss.message)
  return opening.session
}

/** All events of a call. */
function watch(stream: GrpcStream) {
  const seen = { bytes: Buffer.alloc(0), end: undefined as GrpcEnd | undefined, headers: undefined as unknown }
  stream.onHeaders((headers) => void (seen.headers = headers))
  stream.onData((bytes) => void (seen.bytes = Buffer.concat([seen.bytes, bytes])))
  stream.onEnd((end) => {
    assert.equal(seen.end, undefined, 'called once')
    seen.end = end
  })
  return seen
}

test('messages pass unchanged in both directions, with metadata and the credential of the connection', async () => {
  const metadata: unknown[] = []
  await using server = await startServer((call) => {
    metadata.push([call.path, call.metadata['x-token'], call.metadata['x-own']])
    call.sendHeaders({ 'x-answer': 'yes' })
    call.onMessage((message) => void call.send(message))
    call.onHalfClose(() => call.end({ code: 0, metadata: { 'x-last': '7' } }))
  })
  using session = await openTo(server.address.port, { metadata: { 'x-token': 'node secret' } })
  const stream = session.open('/geyser.Geyser/Subscribe', { 'x-own': '1', 'x-token': 'never this one' })
  const seen = watch(stream)
  const frames = Buffer.concat([frameMessage(Buffer.from('one')), frameMessage(Buffer.from('two'))])
  // Split in the middle of a message: this client does not interpret the bytes.
  stream.write(frames.subarray(0, 9))
  stream.write(frames.subarray(9))
  await until('both are back', () => seen.bytes.length === frames.length)
  assert.ok(seen.bytes.equals(frames))
  assert.equal((seen.headers as Record<string, string>)['x-answer'], 'yes')
  assert.equal(session.openStreams, 1)
  stream.halfClose()
  await until('it has ended', () => seen.end !== undefined)
  const status = { code: 0, metadata: { 'x-last': '7' } }
  assert.deepEqual(seen.end, { isFromServer: true, isTrailersOnly: false, status })
  assert.deepEqual(metadata, [['/geyser.Geyser/Subscribe', 'node secret', '1']])
  assert.equal(session.openStreams, 0)
})

test('a status without a message, an HTTP error and a reset each end the call with their status', async () => {
  const ends: [(call: { respond: Respond }) => void, GrpcEnd][] = [
    [
      ({ respond }) => respond({ ':status': 200, 'grpc-status': '7', 'grpc-message': 'no%20entry%21' }, true),
      { isFromServer: true, isTrailersOnly: true, status: { code: 7, message: 'no entry!' } },
    ],
    [
      ({ respond }) => respond({ ':status': 503 }, true),
      { isFromServer: false, status: { code: 14, message: 'the node responded with HTTP 503' } },
    ],
    [
      ({ respond }) => respond({ ':status': 401 }, true),
      { isFromServer: false, status: { code: 16, message: 'the node responded with HTTP 401' } },
    ],
    [
      ({ respond }) => respond({ ':status': 302, location: 'http://127.0.0.1:1/' }, true),
      { isFromServer: false, status: { code: 2, message: 'the node responded with HTTP 302' } },
    ],
    [
      ({ respond }) => respond({ ':status': 200 }, true),
      { isFromServer: false, status: { code: 14, message: 'the connection to the node is lost' } },
    ],
    [({ respond }) => respond(7), { isFromServer: false, status: { code: 14, message: 'the node reset the stream' } }],
    [({ respond }) => respond(2), { isFromServer: false, status: { code: 13, message: 'the node reset the stream' } }],
  ]
  await using server = await startRaw((respond, at) => ends[at]?.[0]({ respond }))
  using session = await openTo(server.port)
  for (const [, expected] of ends) {
    const seen = watch(session.open('/a/b', {}))
    await until('it has ended', () => seen.end !== undefined)
    assert.deepEqual(seen.end, expected)
  }
})

test('the page of a proxy before the node is no message: its status ends the call', async () => {
  const http = createHttp2Server()
  http.on('stream', (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 502, 'content-type': 'text/html', 'x-cache': 'MISS' })
    stream.end('<html>Bad Gateway</html>')
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  using session = await openTo((http.address() as AddressInfo).port)
  const seen = watch(session.open('/a/b', {}))
  await until('it has ended', () => seen.end !== undefined)
  const end = { isFromServer: false, status: { code: 14, message: 'the node responded with HTTP 502' } }
  assert.deepEqual([seen.end, seen.headers, seen.bytes.length], [end, undefined, 0])
  http.close()
})

test('a cancelled call ends as CANCELLED and resets the stream', async () => {
  let closed = 0
  await using server = await startServer((call) => {
    call.sendHeaders()
    call.onClose(() => void (closed += 1))
  })
  using session = await openTo(server.address.port)
  const stream = session.open('/a/b', {})
  const seen = watch(stream)
  await until('it is open', () => seen.headers !== undefined)
  stream.cancel()
  await until('both sides have ended', () => seen.end !== undefined && closed === 1)
  assert.equal(seen.end?.status.code, GrpcCode.cancelled)
})

test('a call that is cancelled after the server has ended it, with data unread, ends once and is no longer open', async () => {
  await using server = await startServer((call) => {
    call.writeFramed(frameMessage(Buffer.from('unread')))
    call.end({ code: GrpcCode.internal, message: 'lagged' })
  })
  using session = await openTo(server.address.port)
  const stream = session.open('/a/b', {})
  stream.pause()
  const seen = watch(stream)
  // The frames of one connection come in order: when the second call has ended, so has the first at the server.
  const second = watch(session.open('/a/b', {}))
  await until('the second call has ended', () => second.end !== undefined)
  assert.deepEqual([seen.end, session.openStreams], [undefined, 1])
  stream.cancel()
  // Not the server's status: the data before it was dropped.
  assert.deepEqual(seen.end, { isFromServer: false, status: { code: GrpcCode.cancelled, message: 'cancelled' } })
  assert.deepEqual([seen.bytes.length, session.openStreams], [0, 0])
  stream.cancel()
  stream.resume()
  assert.equal(session.openStreams, 0)
})

test('a lost connection ends all calls as UNAVAILABLE, then closes the session', async () => {
  await using server = await startServer((call) => call.sendHeaders())
  await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: server.address.port } })
  using session = await openTo(proxy.port)
  const seen = [watch(session.open('/a/b', {})), watch(session.open('/a/b', {}))]
  let loss: GrpcLoss | undefined
  session.onClose((reported) => {
    loss = reported
    assert.ok(
      seen.every(({ end }) => end !== undefined),
      'calls are notified first',
    )
  })
  await until('both are open', () => seen.every(({ headers }) => headers !== undefined))
  proxy.resetConnections()
  await until('the session is closed', () => loss !== undefined)
  for (const { end } of seen) assert.deepEqual([end?.isFromServer, end?.status.code], [false, GrpcCode.unavailable])
  assert.equal(session.isUsable, false)
  const late = watch(session.open('/a/b', {}))
  await until('a late call ends at once', () => late.end !== undefined)
  assert.equal(late.end?.status.code, GrpcCode.unavailable)
})

test('F4: a half-open connection is found within 25 s', async () => {
  const clock = createManualClock()
  await using server = await startServer((call) => call.sendHeaders())
  await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: server.address.port } })
  using session = await openTo(proxy.port, {}, clock)
  let loss: GrpcLoss | undefined
  session.onClose((reported) => void (loss = reported))
  const seen = watch(session.open('/a/b', {}))
  await until('it is open', () => seen.headers !== undefined)
  proxy.add({ type: 'timeout', timeoutMs: 0, stream: 'upstream' })
  proxy.add({ type: 'timeout', timeoutMs: 0, stream: 'downstream' })
  clock.advance(25_000)
  await until('the session is closed', () => loss !== undefined)
  assert.equal(loss?.cause, 'dead')
  assert.equal(seen.end?.status.code, GrpcCode.unavailable)
})

test('after GOAWAY the session takes no new calls and finishes the open ones; it respects the stream limit', async () => {
  let sessionOnServer: ServerHttp2Session | undefined
  await using server = await startRaw(
    (respond) => respond({ ':status': 200 }),
    (session) => void (sessionOnServer = session),
    2,
  )
  using session = await openTo(server.port)
  const seen = watch(session.open('/a/b', {}))
  await until('it is open', () => seen.headers !== undefined)
  assert.equal(session.isUsable, true)
  const other = session.open('/a/b', {})
  assert.equal(session.isUsable, false, 'two of two')
  other.cancel()
  await until('one is free', () => session.isUsable)
  sessionOnServer?.goaway(0)
  await until('it takes no more', () => !session.isUsable)
  assert.equal(seen.end, undefined)
})

test('a connection whose ids are used up takes no new calls and finishes the open ones', async () => {
  const calls: GrpcCall[] = []
  await using server = await startServer((call) => void calls.push(call))
  const session = await openTo(server.address.port, { callsMax: 2 })
  let isClosed = false
  session.onClose(() => (isClosed = true))
  const seen = [watch(session.open('/a/b', {})), watch(session.open('/a/b', {}))]
  assert.deepEqual([session.isUsable, session.isDraining], [false, true])
  await until('both are at the server', () => calls.length === 2)
  for (const call of calls) call.end({ code: GrpcCode.ok })
  await until('it is closed after the last', () => isClosed)
  assert.deepEqual(
    seen.map(({ end }) => end?.status.code),
    [GrpcCode.ok, GrpcCode.ok],
  )
})

test('backpressure: a call that is not read stops the server', async () => {
  const MESSAGE = frameMessage(Buffer.alloc(64 * 1024))
  let written = 0
  await using server = await startServer((call) => {
    const fill = () => {
      while (written < 64 * 1024 * 1024) {
        written += MESSAGE.length
        if (!call.writeFramed(MESSAGE)) return
      }
      call.end({ code: 0 })
    }
    call.onWritable(fill)
    fill()
  })
  using session = await openTo(server.address.port)
  const stream = session.open('/a/b', {})
  let bytes = 0
  let end: GrpcEnd | undefined
  stream.onEnd((reported) => void (end = reported))
  stream.onData((chunk) => {
    if (bytes === 0) stream.pause()
    bytes += chunk.length
  })
  await until('it flows', () => bytes > 0)
  let last = -1
  await until('the server has stopped', () => {
    const isStill = written === last
    last = written
    return isStill
  })
  assert.ok(written < 16 * 1024 * 1024, `${written} bytes written into a closed window`)
  stream.resume()
  await until('the call has ended', () => end !== undefined)
  assert.equal(bytes, written)
})

test('TLS with h2 and a certificate check against the name', async () => {
  using cert = makeTestCert()
  await using server = await startServer((call) => call.end({ code: 0 }), { tls: cert })
  using session = await openTo(server.address.port, { ca: readFileSync(cert.cert, 'utf8') })
  const seen = watch(session.open('/a/b', {}))
  await until('it has ended', () => seen.end !== undefined)
  assert.equal(seen.end?.status.code, 0)
  const untrusting = await openGrpcSession({}, { clock: systemClock, address: pinned(server.address.port, true) })
  assert.ok(!untrusting.ok && untrusting.loss.cause === 'connect')
})

test('resolves with the loss: no listener, another protocol, no response, a forbidden address', async () => {
  const clock = createManualClock()
  const tcp = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => void (replies.shift() === 'garbage' && socket.write('HTTP/1.1 400 Bad\r\n\r\n')))
  })
  const replies = ['garbage', 'silence']
  tcp.listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as { port: number }
  const garbage = await openGrpcSession({}, { clock, address: pinned(port) })
  assert.ok(!garbage.ok && garbage.loss.cause === 'connect')
  const silence = openGrpcSession({}, { clock, address: pinned(port) })
  await until('the timeout is set', () => clock.pendingTimers() === 1 && replies.length === 0)
  clock.advance(5000)
  assert.deepEqual(await silence, { ok: false, loss: { cause: 'connect', message: 'no response in time' } })
  await new Promise((resolve) => void tcp.close(resolve))
  assert.deepEqual(await openGrpcSession({}, { clock, address: pinned(port) }), {
    ok: false,
    loss: { cause: 'connect', message: 'ECONNREFUSED' },
  })
  const forbidden = createPinnedAddress(
    { host: '169.254.169.254', port: 80, secure: false, path: '/' },
    { allowPrivate: true },
  )
  const refused = await openGrpcSession({}, { clock, address: forbidden })
  assert.ok(!refused.ok && refused.loss.cause === 'address')
  assert.equal(clock.pendingTimers(), 0)
})

/** Headers, whether they end the call; or the code of a reset. */
type Respond = (headers: Record<string, string | number> | number, isEnd?: boolean) => void

async function startRaw(
  onStream: (respond: Respond, at: number) => void,
  onSession: (session: ServerHttp2Session) => void = () => {},
  streamsMax = 100,
) {
  let at = 0
  const sessions = new Set<ServerHttp2Session>()
  const server: Http2Server = createHttp2Server({ settings: { maxConcurrentStreams: streamsMax } })
  server.on('session', (session) => {
    sessions.add(session)
    onSession(session)
  })
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => {})
    onStream((headers, isEnd = false) => {
      if (typeof headers === 'number') stream.close(headers)
      else stream.respond(headers, { endStream: isEnd })
    }, at++)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as { port: number }).port,
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.destroy()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}
