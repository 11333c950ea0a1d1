import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, constants } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type CallOptions, Client, credentials, Metadata, type ServiceError, type StatusObject } from '@grpc/grpc-js'
import { createManualClock } from '../../core/clock.ts'
import { makeTestCert } from '../net/test-cert.ts'
import { until } from '../process/test-wait.ts'
import { silentLogger } from '../telemetry/logger.ts'
import type { GrpcCall } from './call.ts'
import { frameMessage } from './framing.ts'
import { type GrpcServerOptions, startGrpcServer } from './server.ts'
import { GrpcCode } from './status.ts'

const raw = (bytes: Buffer) => bytes

type Options = Partial<GrpcServerOptions>

async function startEcho(options: Options = {}, onCall?: (call: GrpcCall) => void) {
  const clock = createManualClock()
  const calls: GrpcCall[] = []
  const server = await startGrpcServer(
    { listen: { host: '127.0.0.1', port: 0 }, ...options },
    {
      log: silentLogger,
      clock,
      onCall(call) {
        calls.push(call)
        if (onCall) onCall(call)
        else echo(call)
      },
    },
  )
  const client = new Client(`127.0.0.1:${server.address.port}`, credentials.createInsecure())
  return {
    server,
    clock,
    client,
    calls,
    async [Symbol.asyncDispose]() {
      client.close()
      await server[Symbol.asyncDispose]()
    },
  }
}

function echo(call: GrpcCall): void {
  if (call.path !== '/test.Echo/Say') {
    call.end({ code: GrpcCode.unimplemented, message: `unknown method ${call.path}` })
    return
  }
  call.onMessage((message) => void call.send(message))
  call.onHalfClose(() => call.end({ code: GrpcCode.ok }))
}

function unary(
  client: Client,
  path: string,
  message: Uint8Array,
  options: CallOptions = {},
  metadata = new Metadata(),
) {
  return new Promise<{ error: ServiceError | null; response: Buffer | undefined }>((resolve) => {
    client.makeUnaryRequest(path, raw, raw, Buffer.from(message), metadata, options, (error, response) =>
      resolve({ error, response }),
    )
  })
}

test('serves the same calls over TLS', async () => {
  using cert = makeTestCert()
  await using echoed = await startEcho({ listen: { host: '127.0.0.1', port: 0, tls: cert } })
  const secure = credentials.createSsl(readFileSync(cert.cert))
  const client = new Client(`localhost:${echoed.server.address.port}`, secure)
  const { error, response } = await unary(client, '/test.Echo/Say', Buffer.from('hello'))
  client.close()
  assert.equal(error, null)
  assert.equal(response?.toString(), 'hello')
})

test('serves a unary call', async () => {
  await using echoed = await startEcho()
  const { error, response } = await unary(echoed.client, '/test.Echo/Say', Buffer.from('hello'))
  assert.equal(error, null)
  assert.equal(response?.toString(), 'hello')
})

test('a stream carries messages of every size in order, in both directions', async () => {
  await using echoed = await startEcho()
  const call = echoed.client.makeBidiStreamRequest('/test.Echo/Say', raw, raw)
  const sizes = [0, 1, 4, 5, 16_384, 70_000, 1_000_000]
  for (const [index, size] of sizes.entries()) call.write(Buffer.alloc(size, index))
  call.end()
  const received: Buffer[] = []
  for await (const message of call) received.push(message as Buffer)
  assert.deepEqual(
    received.map((message) => [message.length, message.at(-1)]),
    sizes.map((size, index) => [size, size === 0 ? undefined : index]),
  )
})

test('an unknown method ends with a status and its message, also outside ASCII', async () => {
  await using echoed = await startEcho({}, (call) => call.end({ code: 12, message: 'naïve 100% — no\nsuch thing' }))
  const { error } = await unary(echoed.client, '/test.Echo/Other', Buffer.alloc(0))
  assert.equal(error?.code, 12)
  assert.equal(error?.details, 'naïve 100% — no\nsuch thing')
})

test('a status after messages arrives after them', async () => {
  await using echoed = await startEcho({}, (call) => {
    call.onMessage((message) => {
      for (let i = 0; i < 50; i++) call.send(message)
      call.end({ code: GrpcCode.internal, message: 'lagged', metadata: { 'x-more': 'yes' } })
    })
  })
  const call = echoed.client.makeBidiStreamRequest('/test.Echo/Say', raw, raw)
  let count = 0
  call.on('data', () => count++)
  call.on('error', () => {})
  call.write(Buffer.alloc(2000))
  const status = await new Promise<StatusObject>((resolve) => call.on('status', resolve))
  assert.equal(count, 50)
  assert.deepEqual([status.code, status.details, status.metadata.get('x-more')], [13, 'lagged', ['yes']])
})

test('reads gzip and replies with gzip', async () => {
  await using echoed = await startEcho()
  const gzipClient = new Client(`127.0.0.1:${echoed.server.address.port}`, credentials.createInsecure(), {
    'grpc.default_compression_algorithm': 2,
  })
  const { error, response } = await unary(gzipClient, '/test.Echo/Say', randomBytes(100_000))
  gzipClient.close()
  assert.equal(error, null)
  assert.equal(response?.length, 100_000)
  assert.equal(echoed.calls[0]?.sendEncoding, 'gzip')
})

test('reads zstd and replies with zstd, to clients that accept it', async () => {
  await using echoed = await startEcho()
  const { port } = echoed.server.address
  const body = frameMessage(Buffer.from('a'.repeat(1000)), 'zstd')
  const zstd = { 'grpc-encoding': 'zstd' }
  const response = await rawCall(port, { ...zstd, 'grpc-accept-encoding': 'identity, gzip, zstd' }, body)
  assert.deepEqual([response['grpc-status'], response['grpc-encoding']], ['0', 'zstd'])
  const uncompressed = await rawCall(port, { ...zstd, 'grpc-accept-encoding': 'gzip' }, body)
  assert.deepEqual([uncompressed['grpc-status'], uncompressed['grpc-encoding']], ['0', undefined])
  assert.deepEqual(
    echoed.calls.map(({ sendEncoding }) => sendEncoding),
    ['zstd', 'identity'],
  )
})

test('refuses a message over the limit, compressed or not', async () => {
  await using echoed = await startEcho({ messageBytesMax: 1000 })
  const fits = await unary(echoed.client, '/test.Echo/Say', Buffer.alloc(1000))
  assert.equal(fits.response?.length, 1000)
  const large = await unary(echoed.client, '/test.Echo/Say', Buffer.alloc(1001))
  assert.equal(large.error?.code, GrpcCode.invalidArgument)
  const bomb = Buffer.concat([Buffer.from([1, 0, 0, 0, 0]), gzipSync(Buffer.alloc(100_000))])
  bomb.writeUInt32BE(bomb.length - 5, 1)
  const response = await rawCall(echoed.server.address.port, { 'grpc-encoding': 'gzip' }, bomb)
  assert.equal(response['grpc-status'], '3')
})

test('refuses an unknown encoding and lists the supported ones', async () => {
  await using echoed = await startEcho()
  const response = await rawCall(echoed.server.address.port, { 'grpc-encoding': 'br' }, frameMessage(Buffer.from('a')))
  assert.equal(response['grpc-status'], '12')
  assert.equal(response['grpc-accept-encoding'], 'identity,gzip,zstd')
})

test('malformed framing ends the call with INTERNAL', async () => {
  await using echoed = await startEcho()
  const { port } = echoed.server.address
  const unmarked = Buffer.concat([Buffer.from([1, 0, 0, 0, 1]), Buffer.from('a')])
  assert.equal((await rawCall(port, {}, unmarked))['grpc-status'], '13')
  const flag = Buffer.concat([Buffer.from([9, 0, 0, 0, 1]), Buffer.from('a')])
  assert.equal((await rawCall(port, {}, flag))['grpc-status'], '13')
  const broken = Buffer.concat([Buffer.from([1, 0, 0, 0, 1]), Buffer.from('a')])
  assert.equal((await rawCall(port, { 'grpc-encoding': 'gzip' }, broken))['grpc-status'], '13')
  assert.equal((await rawCall(port, {}, Buffer.from([0, 0, 0, 0, 9, 1])))['grpc-status'], '13')
})

test('a call whose request ended without a message before it was admitted learns of that', async () => {
  const admitted = Promise.withResolvers<void>()
  await using echoed = await startEcho({}, (call) => void admitted.promise.then(() => echo(call)))
  const response = rawCall(echoed.server.address.port, {}, undefined)
  await until('the call arrived', () => echoed.calls.length === 1)
  setImmediate(() => setImmediate(admitted.resolve))
  assert.equal((await response)['grpc-status'], '0')
})

test('responds with an HTTP status to what is not gRPC', async () => {
  await using echoed = await startEcho()
  const { port } = echoed.server.address
  assert.equal((await rawCall(port, { 'content-type': 'application/json' }, Buffer.alloc(0)))[':status'], 415)
  assert.equal((await rawCall(port, { ':method': 'GET' }, undefined))[':status'], 405)
  const headers = { 'x-large': 'a'.repeat(9000) }
  assert.equal((await rawCall(port, headers, Buffer.alloc(0)))['grpc-status'], '8')
})

test('the deadline of the client ends the call', async () => {
  await using echoed = await startEcho({}, (call) => call.sendHeaders())
  const response = rawCall(echoed.server.address.port, { 'grpc-timeout': '5S' }, frameMessage(Buffer.alloc(1)))
  await until('the call arrived', () => echoed.calls.length === 1)
  echoed.clock.advance(4999)
  assert.equal(echoed.server.openCalls, 1)
  echoed.clock.advance(1)
  assert.equal((await response)['grpc-status'], '4')
})

test('the number of concurrent streams is bounded by SETTINGS', async () => {
  await using echoed = await startEcho({ streamsPerConnectionMax: 3 }, (call) => call.sendHeaders())
  const session = connect(`http://127.0.0.1:${echoed.server.address.port}`)
  await once(session, 'remoteSettings')
  assert.equal(session.remoteSettings.maxConcurrentStreams, 3)
  session.destroy()
})

test('drain notifies open calls, lets them end and closes the connection with GOAWAY', async () => {
  await using echoed = await startEcho({}, (call) => {
    call.sendHeaders()
    call.onShutdown(() => call.end({ code: GrpcCode.unavailable, message: 'server is shutting down' }))
  })
  const session = connect(`http://127.0.0.1:${echoed.server.address.port}`)
  const goaway = once(session, 'goaway')
  const stream = session.request({ ':method': 'POST', ':path': '/test.Echo/Say', 'content-type': 'application/grpc' })
  const trailers = once(stream, 'trailers')
  stream.on('trailers', () => stream.end())
  stream.resume()
  await once(stream, 'response')
  const drained = echoed.server.drain(10_000)
  assert.equal((await trailers)[0]['grpc-status'], '14')
  assert.equal((await goaway)[0], constants.NGHTTP2_NO_ERROR)
  await drained
  session.destroy()
})

test('drain destroys a call that does not end by the deadline', async () => {
  await using echoed = await startEcho({}, (call) => call.sendHeaders())
  const session = connect(`http://127.0.0.1:${echoed.server.address.port}`)
  session.on('error', () => {})
  const stream = session.request({ ':method': 'POST', ':path': '/x', 'content-type': 'application/grpc' })
  stream.on('error', () => {})
  await once(stream, 'response')
  const drained = echoed.server.drain(3000)
  const closed = once(session, 'close')
  echoed.clock.advance(3000)
  await drained
  await closed
})

test('closes a connection without settings and one that does not reply to pings', async () => {
  await using echoed = await startEcho()
  const { port } = echoed.server.address
  const silent = connectTcp(port, '127.0.0.1')
  await once(silent, 'connect')
  // The server has the connection once it has sent its settings.
  await once(silent, 'data')
  echoed.clock.advance(5000)
  await once(silent, 'close')

  const dead = connectTcp(port, '127.0.0.1')
  const preface = Buffer.from('505249202a20485454502f322e300d0a0d0a534d0d0a0d0a000000040000000000', 'hex')
  dead.write(preface)
  dead.resume()
  await once(dead, 'data')
  const closed = once(dead, 'close')
  await waitForBytes(dead, 20)
  echoed.clock.advance(30_000)
  echoed.clock.advance(10_000)
  await closed
})

test('closes a client that pings too often with ENHANCE_YOUR_CALM', async () => {
  await using echoed = await startEcho()
  const session = connect(`http://127.0.0.1:${echoed.server.address.port}`)
  session.on('error', () => {})
  await once(session, 'remoteSettings')
  const goaway = once(session, 'goaway')
  for (let i = 0; i < 6 && !session.closed; i++) {
    await new Promise<void>((resolve) => {
      if (!session.ping(() => resolve())) resolve()
    })
  }
  const [code] = await goaway
  assert.equal(code, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  session.destroy()
})

test('the status of a call is known before its client has it, though the client keeps its side open', async () => {
  const events: string[] = []
  await using echoed = await startEcho({}, (call) => {
    call.onStatus(({ code }) => events.push(`status ${code}`))
    call.onClose(() => events.push('close'))
    call.end({ code: GrpcCode.permissionDenied, message: 'no' })
    call.end({ code: GrpcCode.ok })
  })
  const session = connect(`http://127.0.0.1:${echoed.server.address.port}`)
  const stream = session.request({ ':method': 'POST', ':path': '/test.Echo/Say', 'content-type': 'application/grpc' })
  const [headers] = (await once(stream, 'response')) as [Record<string, string>]
  assert.equal(headers['grpc-status'], '7')
  assert.deepEqual(events, ['status 7'])
  session.destroy()
  await until('the call is over', () => events.includes('close'))
  assert.deepEqual(events, ['status 7', 'close'])
})

test('resets an ended call whose client does not read', async () => {
  await using echoed = await startEcho({ endGraceMs: 1000 }, (call) => {
    call.send(Buffer.alloc(1_000_000))
    call.end({ code: GrpcCode.internal, message: 'lagged' })
  })
  const session = connect(`http://127.0.0.1:${echoed.server.address.port}`)
  session.on('error', () => {})
  const stream = session.request({ ':method': 'POST', ':path': '/x', 'content-type': 'application/grpc' })
  stream.on('error', () => {})
  await once(stream, 'response')
  assert.equal(echoed.server.openCalls, 1)
  echoed.clock.advance(1000)
  await until('the call is closed', () => echoed.server.openCalls === 0)
  session.destroy()
})

test('write returns false when the client lags, and onWritable is called when it has caught up', async () => {
  let writes = 0
  await using echoed = await startEcho({}, (call) => {
    const frame = frameMessage(Buffer.alloc(60_000))
    const fill = () => {
      while (writes < 100 && call.writeFramed(frame)) writes++
      writes++
      if (writes > 100) call.end({ code: GrpcCode.ok })
    }
    call.onWritable(fill)
    fill()
  })
  const call = echoed.client.makeServerStreamRequest('/x', raw, raw, Buffer.alloc(0))
  assert.ok(writes < 100)
  let received = 0
  for await (const _ of call) received++
  assert.ok(received >= 100, `${received} received`)
})

async function rawCall(port: number, headers: Record<string, string>, body: Uint8Array | undefined) {
  const session = connect(`http://127.0.0.1:${port}`)
  const stream = session.request({
    ':method': 'POST',
    ':path': '/test.Echo/Say',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  })
  stream.on('error', () => {})
  const all: Record<string, string | number | undefined> = {}
  stream.on('response', (response) => Object.assign(all, response))
  stream.on('trailers', (trailers) => Object.assign(all, trailers))
  stream.resume()
  stream.end(body)
  await once(stream, 'close')
  session.close()
  return all
}

async function waitForBytes(socket: { bytesRead: number }, bytes: number) {
  await until('the settings came', () => socket.bytesRead >= bytes)
}
