import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FakeNode, startFakeNode } from '../../../test/faults/fake-node.ts'
import { advanceUntil, rpcBody, startRig } from '../../../test/faults/upstreams-rig.ts'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import { upstreamRequest } from '../http-call.ts'
import type { UpstreamsOptionsInput } from '../options.ts'
import type { UpstreamResponse } from '../response.ts'
import { createProbePublisher, createProbeReceiver } from './shared-probes.ts'

const PROBE = '"method":"getSlot"'
const probesOf = (node: FakeNode) => node.requests.filter(({ body }) => body.includes(PROBE)).length

/** A thread that probes two nodes, and others that get its results as messages: structured clones, in order. */
async function setUp(options: UpstreamsOptionsInput = {}) {
  const stack = new AsyncDisposableStack()
  const clock = createManualClock()
  const a = stack.use(await startFakeNode(1000))
  const b = stack.use(await startFakeNode(1000))
  const nodes = [
    { name: 'a', rpc: a.rpc },
    { name: 'b', rpc: b.rpc },
  ]
  const publisher = createProbePublisher()
  const main = stack.use(await startRig({ clock, nodes, probing: publisher.start, ...options }))
  const stateOf = (rig: typeof main, name: string) => rig.upstreams.status().find((node) => node.name === name)

  async function startThread(listed = nodes) {
    const receiver = createProbeReceiver({
      async known(key) {
        // A message takes some turns of the event loop.
        await new Promise(setImmediate)
        return structuredClone(publisher.known(key))
      },
      request: publisher.request,
    })
    stack.use(publisher.onResult((key, result) => receiver.receive(key, structuredClone(result))))
    const rig = stack.use(await startRig({ clock, nodes: listed, probing: receiver.start, ...options }))
    await receiver.settled()
    return rig
  }
  await until('the nodes are known', () => main.upstreams.status().every(({ slot }) => slot > 0))
  return {
    clock,
    a,
    b,
    nodes,
    main,
    publisher,
    startThread,
    stateOf,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

type Thread = Awaited<ReturnType<Awaited<ReturnType<typeof setUp>>['startThread']>>

function call(thread: Thread): Promise<UpstreamResponse> {
  return thread.upstreams.shared.forwardAsync(upstreamRequest('sendTransaction', rpcBody('sendTransaction')))
}

test('nodes are probed once for all threads, and every thread follows their slots', async () => {
  await using on = await setUp()
  const threads = [await on.startThread(), await on.startThread(), await on.startThread()]
  const before = probesOf(on.a)
  on.a.slot = 2000
  on.b.slot = 2000
  const tookMs = await advanceUntil(on.clock, 'all threads know the slot', () =>
    threads.every((thread) => on.stateOf(thread, 'a')?.slot === 2000),
  )
  on.a.slot = 2100
  const moreMs = await advanceUntil(on.clock, 'the second lags', () =>
    threads.every((thread) => on.stateOf(thread, 'b')?.state === 'lagging'),
  )
  const sent = probesOf(on.a) - before
  assert.ok(sent <= Math.ceil((tookMs + moreMs) / 1000) + 1, `${sent} probes in ${tookMs + moreMs} ms`)
})

test('a thread that starts knows slots, latency, and which nodes are silent or fail, before it is used', async () => {
  await using on = await setUp()
  on.b.fault = { status: 500, body: '{}' }
  await advanceUntil(on.clock, 'it fails', () => on.stateOf(on.main, 'b')?.breaker !== 'closed')
  const before = on.b.requests.length
  const thread = await on.startThread()
  const [a, b] = [on.stateOf(thread, 'a'), on.stateOf(thread, 'b')]
  assert.equal(a?.slot, 1000)
  assert.ok(a?.latencyMs !== null)
  assert.deepEqual([b?.state, b?.reason, b?.breaker], ['failing', 'HTTP 500', 'open'])
  assert.equal(on.b.requests.length, before)

  on.b.fault = undefined
  await advanceUntil(on.clock, 'it is back', () => on.stateOf(on.main, 'b')?.state === 'healthy')
  // At once, whatever its own backoff is.
  assert.equal(on.stateOf(thread, 'b')?.state, 'healthy')

  on.b.fault = 'hang'
  await advanceUntil(
    on.clock,
    'it is silent',
    () => on.stateOf(on.main, 'b')?.reason.startsWith('no response') === true,
  )
  assert.match(on.stateOf(thread, 'b')?.reason ?? '', /^no response for 800 ms$/)
  const later = await on.startThread()
  assert.match(on.stateOf(later, 'b')?.reason ?? '', /^no response for 800 ms$/)
})

test('a thread has a breaker of its own: it opens for its calls only, and closes with the next probe of the node', async () => {
  // No periodic probe comes within the test.
  await using on = await setUp({ health: { probeMs: 60_000 } })
  const nodes = on.nodes.slice(0, 1)
  const failing = await on.startThread(nodes)
  const other = await on.startThread(nodes)
  on.a.respond = () => 'reset'
  for (let sent = 0; sent < 5; sent++) await call(failing)
  assert.equal(on.stateOf(failing, 'a')?.breaker, 'open')
  assert.equal(on.stateOf(other, 'a')?.breaker, 'closed')
  assert.equal(on.stateOf(on.main, 'a')?.breaker, 'closed')
  on.a.respond = () => undefined
  const before = probesOf(on.a)
  const isClosed = () => on.stateOf(failing, 'a')?.breaker === 'closed'
  const tookMs = await advanceUntil(on.clock, 'it is closed', isClosed, { stepMs: 10, withinMs: 5000 })
  assert.equal(probesOf(on.a) - before, 1, `in ${tookMs} ms`)
  assert.equal((await call(failing)).kind, 'responded')
})

test('many requests of threads are one probe in a hundred milliseconds', async () => {
  await using on = await setUp()
  const keys: string[] = []
  using _watch = on.publisher.onResult((key) => void keys.push(key))
  await advanceUntil(on.clock, 'both are probed', () => new Set(keys).size === 2)
  const before = probesOf(on.a) + probesOf(on.b)
  for (let step = 0; step < 50; step++) {
    for (const key of new Set(keys)) for (let times = 0; times < 20; times++) on.publisher.request(key)
    on.clock.advance(10)
    await new Promise(setImmediate)
  }
  await until('they have arrived', () => probesOf(on.a) + probesOf(on.b) > before)
  const sent = probesOf(on.a) + probesOf(on.b) - before
  // Five for each of both in half a second, and a periodic one.
  assert.ok(sent <= 2 * 6, `${sent} probes`)
  on.publisher.request('unknown')
  assert.equal(on.publisher.known('unknown'), undefined)
})

test('a node that is replaced or removed is not given the health of the one before', async () => {
  await using on = await setUp()
  const thread = await on.startThread()
  on.b.slot = 5000
  const options = { allowPrivate: true, dedicatedCredentialHeader: 'x-token' }
  const base = { credentialHeader: 'x-token', weight: 1 }
  // The thread first: the one that probes does not know the new address yet.
  const next = { ...options, nodes: [{ ...base, name: 'a', rpc: on.b.rpc }] }
  await thread.upstreams.reload(next)
  await new Promise(setImmediate)
  assert.equal(on.stateOf(thread, 'a')?.slot, 0)
  await on.main.upstreams.reload(next)
  await until('its first probe is known', () => on.stateOf(thread, 'a')?.slot === 5000)
})
