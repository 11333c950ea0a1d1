import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Call } from '../../access/admission.ts'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import type { UpstreamNode } from '../../upstreams/node.ts'
import { createConnections } from '../account/connections.ts'
import { gatewayMetrics } from '../metrics.ts'
import { UNARY_CALLS_MAX } from './admission.ts'
import { createGeyserCalls, type GeyserCallsDeps } from './calls.ts'

const OPTIONS = { refusalDelayMs: 1000, unaryDeadlineMs: 10_000, stallMs: 30_000 }
const CALLER = {
  ok: true,
  subscription: { id: 'sub' },
  limits: BUILT_IN_PLANS.professional,
  nodeUser: { subscriptionId: 'sub', mayUseShared: true },
} as unknown as Caller
const QUOTA = { limit: 100, remaining: 50, resetMs: 1000 }

/** A call whose customer the test is. */
function openCall() {
  const closed: (() => void)[] = []
  const ended: GrpcStatus[] = []
  let onMessage: (message: Uint8Array) => void = () => assert.fail('messages are not read yet')
  let onHalfClose = () => {}
  const call = {
    path: '/geyser.Geyser/Ping',
    metadata: {},
    ...{ pauseMessages() {}, resumeMessages() {}, discardMessages() {}, sendHeaders() {} },
    ...{ onWritable() {}, onShutdown() {} },
    onMessage: (listener: typeof onMessage) => void (onMessage = listener),
    onHalfClose: (listener: typeof onHalfClose) => void (onHalfClose = listener),
    onClose: (listener: () => void) => void closed.push(listener),
    end(status: GrpcStatus) {
      ended.push(status)
      for (const listener of closed) listener()
    },
    get isOver() {
      return ended.length > 0
    },
  }
  return {
    call: call as unknown as GrpcCall,
    ended,
    request(message = new Uint8Array()) {
      onMessage(message)
      onHalfClose()
    },
  }
}

/** What the trailers of a call state to have been charged. */
const costOf = ({ ended }: ReturnType<typeof openCall>) => ended[0]?.metadata?.['x-ratelimit-cost']

/** Calls whose charges and nodes the test looks at. */
function openCalls({ hasOwnNodes = false, limits = CALLER.limits } = {}) {
  const caller = { ...CALLER, limits }
  const clock = createManualClock()
  let charges = 0
  const access = {
    admit() {
      charges += 1
      return { ok: true, cost: 1, ...QUOTA }
    },
    refund: (_caller: Caller, _call: Call) => void (charges -= 1),
    quota: () => QUOTA,
    renew: () => caller,
    refuseWithoutNode: () => undefined,
    countBytes() {},
  } as unknown as Access
  const searching: PromiseWithResolvers<object>[] = []
  const nodes = {
    grpc: {
      open() {
        const found = Promise.withResolvers<object>()
        searching.push(found)
        return found.promise
      },
    },
  }
  const warned: unknown[] = []
  const log = { ...silentLogger, warn: (fields: unknown) => void warned.push(fields) }
  const deps = { access, clock, log }
  const calls = createGeyserCalls(OPTIONS, {
    ...deps,
    upstreams: { of: () => nodes, usesShared: () => !hasOwnNodes } as unknown as GeyserCallsDeps['upstreams'],
    connections: createConnections({ clock, random: createSeededRandom(1) }),
    metrics: gatewayMetrics(createMetricsRegistry()),
  })
  return {
    clock,
    calls,
    searching,
    warned,
    charges: () => charges,
    async ping() {
      const opened = openCall()
      calls.serve(opened.call, caller, { method: 'Ping', remoteAddress: '' })
      await nextTurn()
      return opened
    },
  }
}

/** A call at a node, which does not respond before the test ends it. */
function openStream() {
  let isCancelled = false
  let onEnd: (end: GrpcEnd) => void = () => {}
  const stream = {
    ...{ onWritable() {}, onHeaders() {}, onData() {}, pause() {}, resume() {}, halfClose() {} },
    onEnd: (listener: typeof onEnd) => void (onEnd = listener),
    write: () => true,
    cancel: () => void (isCancelled = true),
  } as unknown as GrpcStream
  return { stream, isCancelled: () => isCancelled, end: (end: GrpcEnd) => onEnd(end) }
}

const NODE = { name: 'a' } as UpstreamNode

test('a unary call whose time is over before a node has its request is not charged, and is cancelled at the node that is found late', async () => {
  const on = openCalls()
  const opened = await on.ping()
  opened.request()
  on.clock.advance(OPTIONS.unaryDeadlineMs)
  assert.equal(opened.ended[0]?.code, GrpcCode.deadlineExceeded)
  assert.match(opened.ended[0]?.message ?? '', /upstream node did not respond/)
  assert.equal(costOf(opened), '0')
  const { stream, isCancelled } = openStream()
  on.searching[0]?.resolve({ ok: true, stream, node: NODE })
  await nextTurn()
  assert.equal(on.charges(), 0)
  on.clock.advance(1000)
  assert.deepEqual([isCancelled(), on.calls.openCalls], [true, 0])
  // Where none is found, the refund is made once.
  const unfound = await on.ping()
  unfound.request()
  on.clock.advance(OPTIONS.unaryDeadlineMs)
  on.searching[1]?.resolve({ ok: false })
  await nextTurn()
  assert.equal(on.charges(), 0)
})

test('a unary call that a node has stays charged when its time is over, as does one whose request is never complete', async () => {
  const on = openCalls()
  const forwarded = await on.ping()
  forwarded.request()
  const { stream, isCancelled } = openStream()
  on.searching[0]?.resolve({ ok: true, stream, node: NODE })
  await nextTurn()
  on.clock.advance(OPTIONS.unaryDeadlineMs)
  assert.deepEqual([forwarded.ended[0]?.code, isCancelled(), on.charges()], [GrpcCode.deadlineExceeded, true, 1])
  assert.equal(costOf(forwarded), '1')
  const incomplete = await on.ping()
  on.clock.advance(OPTIONS.unaryDeadlineMs)
  assert.deepEqual(incomplete.ended, [
    {
      code: GrpcCode.deadlineExceeded,
      message: 'the request was not complete in time',
      metadata: incomplete.ended[0]?.metadata,
    },
  ])
  assert.deepEqual([on.charges(), on.calls.openCalls, on.searching.length], [2, 0, 1])
})

test('a unary call whose request the plan refuses is not charged, and its trailers say so', async () => {
  const on = openCalls({ limits: { ...CALLER.limits, grpcKinds: ['slots'] } })
  const opened = await on.ping()
  const unknownField = Uint8Array.of(0xf8, 0x7f, 1)
  opened.request(unknownField)
  assert.equal(opened.ended[0]?.code, GrpcCode.invalidArgument)
  assert.deepEqual([on.charges(), costOf(opened)], [0, '0'])
})

/** A call at a node of this name, which ends it. */
async function endPing(on: ReturnType<typeof openCalls>, end: GrpcEnd, name = 'a') {
  const opened = await on.ping()
  opened.request()
  const atNode = openStream()
  on.searching.at(-1)?.resolve({ ok: true, stream: atNode.stream, node: { name } })
  await nextTurn()
  atNode.end(end)
  return opened
}

test('each node that refuses the credential of the gateway is logged, once a minute', async () => {
  for (const code of [GrpcCode.unauthenticated, GrpcCode.permissionDenied]) {
    const on = openCalls()
    for (const name of ['a', 'b', 'a']) await endPing(on, { status: { code }, isFromServer: true }, name)
    assert.deepEqual(on.warned, [{ upstream: 'a' }, { upstream: 'b' }])
  }
})

test('a call at a node that refuses the gateway ends with UNAVAILABLE, and is charged only where it had begun', async () => {
  for (const code of [GrpcCode.unauthenticated, GrpcCode.permissionDenied]) {
    for (const isTrailersOnly of [true, false]) {
      const on = openCalls()
      const status = { code, message: 'missing or invalid token' }
      const opened = await endPing(on, { status, isFromServer: true, isTrailersOnly })
      assert.equal(opened.ended[0]?.code, GrpcCode.unavailable)
      assert.doesNotMatch(opened.ended[0]?.message ?? '', /token/)
      const cost = isTrailersOnly ? 0 : 1
      assert.deepEqual([on.charges(), costOf(opened)], [cost, `${cost}`])
    }
  }
})

test('a call that a limit of the node refuses ends with UNAVAILABLE and is not charged; one that the node had begun ends with its status', async () => {
  for (const isTrailersOnly of [true, false]) {
    const on = openCalls()
    const status = { code: GrpcCode.resourceExhausted, message: 'rate limit exceeded' }
    const opened = await endPing(on, { status, isFromServer: true, isTrailersOnly })
    assert.equal(opened.ended[0]?.code, isTrailersOnly ? GrpcCode.unavailable : GrpcCode.resourceExhausted)
    assert.deepEqual([on.charges(), on.warned], [isTrailersOnly ? 0 : 1, []])
  }
})

test('the number of open unary calls is limited at shared nodes; at the nodes of one subscription nobody else needs the streams', async () => {
  for (const hasOwnNodes of [false, true]) {
    const on = openCalls({ hasOwnNodes })
    for (let open = 0; open < UNARY_CALLS_MAX; open++) await on.ping()
    await on.ping()
    assert.equal(on.calls.openCalls, hasOwnNodes ? UNARY_CALLS_MAX + 1 : UNARY_CALLS_MAX)
  }
})
