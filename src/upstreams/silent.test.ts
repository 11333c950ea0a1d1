import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FakeNode, startFakeNode } from '../../test/faults/fake-node.ts'
import { type FaultProxy, startFaultProxy } from '../../test/faults/fault-proxy.ts'
import { advanceUntil, rpcBody, startRig } from '../../test/faults/upstreams-rig.ts'
import { createManualClock, type ManualClock } from '../core/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { upstreamRequest } from './http-call.ts'
import type { UpstreamsOptionsInput } from './options.ts'
import type { UpstreamResponse } from './response.ts'

const OUT_WITHIN_MS = 2000

type Sent = { readonly startedMs: number; outcome?: UpstreamResponse; endedMs?: number }

async function setUp(names: readonly string[], options: UpstreamsOptionsInput = {}) {
  const stack = new AsyncDisposableStack()
  const clock = createManualClock()
  const nodes: FakeNode[] = []
  const proxies: FaultProxy[] = []
  for (const _ of names) {
    const node = stack.use(await startFakeNode())
    nodes.push(node)
    proxies.push(stack.use(await startFaultProxy({ target: { host: '127.0.0.1', port: node.ports.rpc } })))
  }
  const listed = names.map((name, at) => ({ name, rpc: `http://127.0.0.1:${proxies[at]?.port}` }))
  const rig = stack.use(await startRig({ clock, nodes: listed, ...options }))
  const stateOf = (name: string) => rig.upstreams.status().find((node) => node.name === name)
  await until('all are known', () => rig.upstreams.status().every(({ slot }) => slot > 0))

  /** Packets of established connections are lost in both directions; new connections are accepted and stay silent. */
  function silence(at: number): void {
    proxies[at]?.add({ type: 'timeout', timeoutMs: 0, stream: 'upstream' })
    proxies[at]?.add({ type: 'timeout', timeoutMs: 0, stream: 'downstream' })
  }
  function send(method: string): Sent {
    const sent: Sent = { startedMs: clock.monotonicMs() }
    rig.upstreams.shared.forward(upstreamRequest(method, rpcBody(method)), (outcome) => {
      sent.outcome = outcome
      sent.endedMs = clock.monotonicMs()
    })
    return sent
  }
  return { clock, nodes, proxies, rig, stateOf, silence, send, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const servedBy = ({ outcome }: Sent) => (outcome?.kind === 'responded' ? outcome.nodeName : outcome?.kind)
const settle = (clock: ManualClock, sent: readonly Sent[]) =>
  advanceUntil(clock, 'every call has ended', () => sent.every(({ outcome }) => outcome !== undefined))

describe('a silent node', () => {
  test('leaves rotation within 2 s; reads in flight are served by another node inside their deadline', async () => {
    await using on = await setUp(['a', 'b'])
    on.silence(0)
    const reads = Array.from({ length: 600 }, () => on.send('getBalance'))
    const tookMs = await advanceUntil(on.clock, 'it is out', () => on.stateOf('a')?.state === 'failing')
    assert.ok(tookMs <= OUT_WITHIN_MS, `${tookMs} ms`)
    assert.match(on.stateOf('a')?.reason ?? '', /^no response for \d+ ms$/)
    // The clock stands still: what is left needs no more time.
    await until('every read has ended', () => reads.every(({ outcome }) => outcome !== undefined))
    for (const read of reads) {
      assert.equal(servedBy(read), 'b', 'more reads than the retry budget allows')
      assert.ok((read.endedMs ?? Number.POSITIVE_INFINITY) - read.startedMs <= OUT_WITHIN_MS)
    }
    assert.ok((on.rig.registry.value('sluice_upstreams_retries_total', { failure: 'silent' }) ?? 0) > 0)
    const before = on.nodes[1]?.calls.length ?? 0
    const later = Array.from({ length: 20 }, () => on.send('getBalance'))
    await until('all are served', () => later.every(({ outcome }) => outcome !== undefined))
    assert.equal(on.nodes[1]?.calls.length, before + 20)

    on.proxies[0]?.clear()
    on.proxies[0]?.resetConnections()
    await advanceUntil(on.clock, 'it is back', () => on.stateOf('a')?.state === 'healthy')
  })

  test('is noticed also when it responded to something else after the probe that has no response', async () => {
    await using on = await setUp(['a', 'b'])
    const [node] = on.nodes as [FakeNode]
    node.fault = 'hang'
    const probes = () => node.requests.filter(({ method }) => method === 'getSlot').length
    const before = probes()
    await advanceUntil(on.clock, 'it is probed', () => probes() > before)
    node.fault = undefined
    on.clock.advance(300)
    const reads = Array.from({ length: 8 }, () => on.send('getBalance'))
    await until('every read has ended', () => reads.every(({ outcome }) => outcome !== undefined))
    assert.ok(reads.map(servedBy).includes('a'))
    on.silence(0)
    const tookMs = await advanceUntil(on.clock, 'it is out', () => on.stateOf('a')?.state === 'failing')
    assert.ok(tookMs <= 1000, `${tookMs} ms, before the probe reached its timeout`)
  })

  test('is probed every second from the start on', async () => {
    await using on = await setUp(['a', 'b'])
    const [, node] = on.nodes as [FakeNode, FakeNode]
    const probes = () => node.requests.filter(({ method }) => method === 'getSlot').length
    for (let count = probes(), until = count + 4; count < until; count++) {
      const tookMs = await advanceUntil(on.clock, 'it is probed', () => probes() > count)
      assert.ok(tookMs <= 1100, `${tookMs} ms`)
    }
  })

  test('keeps a write that it may have received: it is never repeated', async () => {
    await using on = await setUp(['a', 'b'])
    on.silence(0)
    const writes = Array.from({ length: 8 }, () => on.send('sendTransaction'))
    await advanceUntil(on.clock, 'it is out', () => on.stateOf('a')?.state === 'failing')
    await settle(on.clock, writes)
    const outcomes = new Set(writes.map(servedBy))
    assert.deepEqual(outcomes, new Set(['b', 'timeout']))
    assert.equal(on.nodes[1]?.calls.length, writes.filter((write) => servedBy(write) === 'b').length)
  })

  test('loses also writes that wait for a connection to it, because none of their bytes was sent', async () => {
    await using on = await setUp(['a', 'b'], { connections: { rpcPerNodeMax: 1 } })
    on.silence(0)
    const writes = Array.from({ length: 12 }, () => on.send('sendTransaction'))
    await settle(on.clock, writes)
    assert.ok(writes.filter((write) => servedBy(write) === 'b').length >= 10)
  })

  test('without another node keeps its calls until their deadline: it may only be slow', async () => {
    await using on = await setUp(['a'])
    on.silence(0)
    const read = on.send('getBalance')
    await advanceUntil(on.clock, 'it is shown', () => on.stateOf('a')?.state === 'failing')
    assert.equal(read.outcome, undefined)
    on.proxies[0]?.clear()
    on.proxies[0]?.resetConnections()
    await settle(on.clock, [read])
    await advanceUntil(on.clock, 'it is back', () => on.stateOf('a')?.state === 'healthy')
  })

  test('is not one that is slow with calls but responds to something', async () => {
    await using on = await setUp(['a', 'b'])
    for (const node of on.nodes) node.respond = () => 'hang'
    const reads = Array.from({ length: 4 }, () => on.send('getBalance'))
    await advanceUntil(on.clock, 'five seconds have passed', () => on.clock.monotonicMs() > 5000)
    assert.deepEqual([on.stateOf('a')?.state, on.stateOf('b')?.state], ['healthy', 'healthy'])
    await settle(on.clock, reads)
  })

  test('is not one whose connections all have a call that takes long', async () => {
    await using on = await setUp(['a'], { connections: { rpcPerNodeMax: 2 } })
    const [node] = on.nodes as [FakeNode]
    const release = Promise.withResolvers<void>()
    node.hold = release.promise
    const reads = Array.from({ length: 6 }, () => on.send('getBalance'))
    await until('no connection is left', () => node.calls.length === 2)
    const probes = () => node.requests.filter(({ method }) => method === 'getSlot').length
    const before = probes()
    await advanceUntil(on.clock, 'it is probed meanwhile', () => {
      assert.equal(on.stateOf('a')?.state, 'healthy', on.stateOf('a')?.reason ?? '')
      return probes() > before + 2
    })
    release.resolve()
    await settle(on.clock, reads)
    assert.deepEqual(new Set(reads.map(servedBy)), new Set(['a']))
  })
})
