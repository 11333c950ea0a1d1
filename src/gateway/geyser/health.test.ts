import assert from 'node:assert/strict'
import { connect, constants, type IncomingHttpHeaders } from 'node:http2'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createHeldMemory, HeldAmounts } from '../../core/held-amounts.ts'
import { frameMessage } from '../../platform/grpc/framing.ts'
import { startGrpcServer } from '../../platform/grpc/server.ts'
import { GrpcCode } from '../../platform/grpc/status.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { gatewayOptions } from '../options.ts'
import { createGrpcHealth } from './health.ts'

const CHECK = '/grpc.health.v1.Health/Check'
const WATCH = '/grpc.health.v1.Health/Watch'
const EMPTY = frameMessage(Buffer.alloc(0))

/** The health service on a manual clock; the address of a call is what its metadata `from` holds. */
async function startHealth(healthPerSecond = 5) {
  const clock = createManualClock()
  const refusals: string[] = []
  const meter = { refused: (limit: string) => void refusals.push(limit) }
  const watches = new HeldAmounts(createHeldMemory({ threads: 1 }), 0)
  const health = createGrpcHealth({ healthPerSecond, refusalDelayMs: 1000, services: [] }, { clock, meter, watches })
  const server = await startGrpcServer(
    { listen: { host: '127.0.0.1', port: 0 }, streamsPerConnectionMax: 1000 },
    { log: silentLogger, clock, onCall: (call) => void health.serve(call, () => String(call.metadata['from'])) },
  )
  const session = connect(`http://127.0.0.1:${server.address.port}`)
  session.on('error', () => {})

  /** Without a body only a part of a request is sent. */
  function call(path: string, from: string, body: Uint8Array | undefined) {
    const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', from })
    const seen: { code?: number; message?: string; bytes: number } = { bytes: 0 }
    const onHeaders = (headers: IncomingHttpHeaders) => {
      if (headers['grpc-status'] !== undefined) seen.code = Number(headers['grpc-status'])
      if (headers['grpc-message'] !== undefined) seen.message = String(headers['grpc-message'])
    }
    stream.on('response', onHeaders)
    stream.on('trailers', onHeaders)
    stream.on('error', () => {})
    stream.on('data', (chunk: Buffer) => (seen.bytes += chunk.length))
    if (body === undefined) stream.write(EMPTY.subarray(0, 3))
    else if (path === CHECK) stream.end(body)
    else stream.write(body)
    return { stream, seen }
  }

  /** Checks of one address, one after another; returns how many were served before the first refusal. */
  async function checks(from: string, max: number): Promise<number> {
    for (let served = 0; served < max; served++) {
      const before = refusals.length
      const { seen } = call(CHECK, from, EMPTY)
      await until('it is served or refused', () => seen.code !== undefined || refusals.length > before)
      if (seen.code === undefined) return served
      assert.equal(seen.code, GrpcCode.ok)
    }
    return max
  }

  return {
    url: `http://127.0.0.1:${server.address.port}`,
    watches: () => watches.total,
    clock,
    refusals,
    call,
    checks,
    async [Symbol.asyncDispose]() {
      session.destroy()
      await server[Symbol.asyncDispose]()
    },
  }
}

test('limits the health calls of each address, with a budget that refills', async () => {
  await using on = await startHealth()
  assert.equal(await on.checks('192.0.2.1', 1000), 50)
  assert.equal(await on.checks('192.0.2.2', 5), 5)
  on.clock.advance(600)
  assert.equal(await on.checks('192.0.2.1', 1000), 3)
  assert.deepEqual(new Set(on.refusals), new Set(['healthPerSecond']))
  const { seen } = on.call(WATCH, '192.0.2.1', EMPTY)
  await until('it is refused', () => on.refusals.length === 3)
  on.clock.advance(1000)
  await until('the delayed refusal is there', () => seen.code === GrpcCode.resourceExhausted)
  assert.match(seen.message ?? '', /5 health calls per second of one address; limit: healthPerSecond/)
})

test('never refuses a load balancer that checks ten times a second', async () => {
  await using on = await startHealth(gatewayOptions.parse({}).grpc.healthPerSecond)
  for (let second = 0; second < 60; second++) {
    on.clock.advance(1000)
    const made = Array.from({ length: 10 }, () => on.call(CHECK, '192.0.2.1', EMPTY))
    await until('all are served', () => made.every(({ seen }) => seen.code === GrpcCode.ok))
  }
})

test('counts an IPv6 /64 network as one address', async () => {
  await using on = await startHealth()
  assert.equal(await on.checks('2001:db8:0:1::1', 1000), 50)
  assert.equal(await on.checks('2001:db8:0:1::2', 1), 0)
  assert.equal(await on.checks('2001:db8:0:2::1', 1), 1)
})

test('limits watches by address and in total, and counts closed ones no more', async () => {
  await using on = await startHealth(50)
  const open = async (from: string, count: number) => {
    const made = Array.from({ length: count }, () => on.call(WATCH, from, EMPTY))
    await until('each has its status', () => made.every(({ seen }) => seen.bytes > 0))
    return made
  }
  const first = await open('192.0.2.1', 32)
  on.call(WATCH, '192.0.2.1', EMPTY)
  await until('one more is refused', () => on.refusals.length === 1)
  for (let address = 2; address <= 8; address++) await open(`192.0.2.${address}`, 32)
  on.call(WATCH, '192.0.2.1', EMPTY)
  await until('one more in all is refused', () => on.refusals.length === 2)
  assert.equal(on.watches(), 256)
  first[0]?.stream.close()
  await until('there is room', async () => {
    const { seen } = on.call(WATCH, '192.0.2.1', EMPTY)
    const before = on.refusals.length
    await until('served or refused', () => seen.bytes > 0 || on.refusals.length > before)
    return seen.bytes > 0
  })
  assert.deepEqual(new Set(on.refusals), new Set(['healthWatches']))
})

test('addresses that hold all watches lose their oldest ones to others, until none has two more than another', async () => {
  await using on = await startHealth(50)
  const open = async (from: string) => {
    const made = on.call(WATCH, from, EMPTY)
    await until('it has its status', () => made.seen.bytes > 0)
    return made
  }
  const held: Awaited<ReturnType<typeof open>>[] = []
  for (let at = 0; at < 256; at++) held.push(await open(`192.0.2.${at % 8}`))
  const balancers = [await open('198.51.100.1'), await open('198.51.100.2')]
  for (const { seen } of held.slice(0, 2)) await until('the oldest are ended', () => seen.code === GrpcCode.unavailable)
  assert.equal(held.filter(({ seen }) => seen.code !== undefined).length, 2)
  // Now none of them has two more than another.
  for (let at = 0; at < 16; at++) on.call(WATCH, `192.0.2.${at % 8}`, EMPTY)
  await until('all are refused', () => on.refusals.length === 18)
  assert.equal(on.watches(), 256)
  for (const { seen } of balancers) assert.equal(seen.code, undefined)
})

test('ends a call whose request does not arrive in time, and no watch that has its request', async () => {
  await using on = await startHealth()
  const slow = [on.call(WATCH, '192.0.2.1', undefined), on.call(CHECK, '192.0.2.1', undefined)]
  const watch = on.call(WATCH, '192.0.2.1', EMPTY)
  await until('the watch has its status', () => watch.seen.bytes > 0)
  on.clock.advance(10_000)
  for (const { seen } of slow) await until('it is ended', () => seen.code === GrpcCode.deadlineExceeded)
  assert.equal(watch.seen.code, undefined)
})

test('reports SERVICE_UNKNOWN to a watch of an unknown service, and keeps it open', async () => {
  await using on = await startHealth()
  const name = Buffer.from('no.such.Service')
  const request = frameMessage(Buffer.concat([Buffer.from([0x0a, name.length]), name]))
  const { stream, seen } = on.call(WATCH, '192.0.2.1', request)
  const pieces: Buffer[] = []
  stream.on('data', (piece: Buffer) => pieces.push(piece))
  await until('a status has come', () => Buffer.concat(pieces).length >= 7)
  // Field 1 of the response, an enum: SERVICE_UNKNOWN is 3 (health.proto).
  assert.deepEqual([...Buffer.concat(pieces).subarray(5)], [0x08, 3])
  assert.equal(seen.code, undefined)
})

test('survives clients that reset a watch, or disconnect, before their request has arrived', async (t) => {
  await using on = await startHealth(1000)
  const uncaught: unknown[] = []
  const note = (error: unknown) => void uncaught.push(error)
  process.on('uncaughtExceptionMonitor', note)
  t.after(() => process.off('uncaughtExceptionMonitor', note))
  for (let at = 0; at < 20; at++) {
    const session = connect(on.url).on('error', () => {})
    const headers = { ':method': 'POST', ':path': WATCH, 'content-type': 'application/grpc', from: `192.0.2.${at}` }
    const [stream] = [1, 2].map(() => session.request(headers).on('error', () => {}))
    await until('the watches are open', () => on.watches() === 2)
    if (at % 2 === 0) stream?.close(constants.NGHTTP2_CANCEL)
    await until('one is closed', () => at % 2 === 1 || on.watches() === 1)
    session.destroy()
    await until('all are closed', () => on.watches() === 0)
  }
  assert.deepEqual(uncaught, [])
})
