import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startFakeNode } from '../../test/faults/fake-node.ts'
import { startFaultProxy } from '../../test/faults/fault-proxy.ts'
import { advanceUntil, rpcBody, startRig, textOf } from '../../test/faults/upstreams-rig.ts'
import { createManualClock } from '../core/clock.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { upstreamRequest } from './http-call.ts'
import { createClientView } from './pool/pool.ts'
import type { UpstreamResponse } from './response.ts'
import type { Upstream } from './upstream.ts'

const read = (upstream: Upstream) => upstream.forwardAsync(upstreamRequest('getBalance', rpcBody('getBalance')))
const url = (proxy: { port: number }) => `http://127.0.0.1:${proxy.port}`

async function proxied() {
  const stack = new AsyncDisposableStack()
  const node = stack.use(await startFakeNode())
  const proxy = stack.use(await startFaultProxy({ target: { host: '127.0.0.1', port: node.ports.rpc } }))
  return { node, proxy, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

describe('F1: an upstream refuses connections', () => {
  test('retries reads on another node within the same call, and a write of which nothing was sent', async () => {
    await using a = await proxied()
    await using b = await proxied()
    await a.proxy.disable()
    await using rig = await startRig({
      clock: systemClock,
      nodes: [
        { name: 'a', rpc: url(a.proxy) },
        { name: 'b', rpc: url(b.proxy) },
      ],
    })
    const shared = rig.upstreams.shared
    const outcomes = await Promise.all([
      ...Array.from({ length: 64 }, () => read(shared)),
      ...Array.from({ length: 16 }, () =>
        shared.forwardAsync(upstreamRequest('sendTransaction', rpcBody('sendTransaction'))),
      ),
    ])
    for (const outcome of outcomes) assert.ok(outcome.kind === 'responded' && outcome.nodeName === 'b', textOf(outcome))
    assert.equal(b.node.calls.length, 80)
    const [first] = rig.upstreams.status()
    assert.deepEqual([first?.state, first?.reason], ['failing', 'ECONNREFUSED'])
  })

  test('reports a request as sent where the first node may have executed it, also when the second refuses it', async () => {
    await using a = await proxied()
    await using b = await proxied()
    const nodes = [
      { name: 'a', rpc: url(a.proxy) },
      { name: 'b', rpc: url(b.proxy) },
    ]
    await using rig = await startRig({ clock: systemClock, nodes, health: { probeMs: 60_000 } })
    const shared = rig.upstreams.shared
    assert.equal((await read(shared)).kind, 'responded')
    let asked = 0
    const respond = () => (++asked === 1 ? ('reset' as const) : { status: 429, body: 'too many' })
    a.node.respond = respond
    b.node.respond = respond
    assert.equal((await read(shared)).kind, 'failed-maybe-sent')
    assert.equal(asked, 2)
  })

  test('fails at once without an available node: p99 within 50 ms', async () => {
    await using a = await proxied()
    await using rig = await startRig({ clock: systemClock, nodes: [{ name: 'a', rpc: url(a.proxy) }] })
    const shared = rig.upstreams.shared
    assert.equal((await read(shared)).kind, 'responded')
    await a.proxy.disable()
    await until('the breaker is open', async () => {
      await read(shared)
      return rig.upstreams.status()[0]?.state === 'failing'
    })
    const tookMs: number[] = []
    for (let round = 0; round < 200; round++) {
      const startedMs = performance.now()
      const outcome = await read(shared)
      tookMs.push(performance.now() - startedMs)
      assert.deepEqual(outcome, { kind: 'no-upstream', isSent: false })
    }
    tookMs.sort((x, y) => x - y)
    assert.ok((tookMs[197] as number) <= 50, `p99 ${tookMs[197]} ms`)
  })

  test("serves again within 2 s of the node's return", async () => {
    const clock = createManualClock()
    await using a = await proxied()
    await a.proxy.disable()
    await using rig = await startRig({ clock, nodes: [{ name: 'a', rpc: url(a.proxy) }] })
    const stateNow = () => rig.upstreams.status()[0]?.state
    await advanceUntil(clock, 'it is out, and the delays have grown', () => clock.monotonicMs() > 30_000)
    assert.equal(stateNow(), 'failing')
    await a.proxy.enable()
    const tookMs = await advanceUntil(clock, 'it is back', () => stateNow() === 'healthy')
    assert.ok(tookMs <= 2000, `${tookMs} ms`)
    assert.equal((await read(rig.upstreams.shared)).kind, 'responded')
  })

  test('opens the breaker after five failures in a row', async () => {
    const clock = createManualClock()
    await using a = await proxied()
    await a.proxy.disable()
    await using rig = await startRig({ clock, nodes: [{ name: 'a', rpc: url(a.proxy) }] })
    const shared = rig.upstreams.shared
    await until('the first probe has failed', () => rig.upstreams.status()[0]?.callsInFlight === 0)
    const kinds: string[] = []
    for (let round = 0; round < 6; round++) kinds.push((await read(shared)).kind)
    const failed = 'failed-not-sent'
    assert.deepEqual(kinds, [failed, failed, failed, failed, 'no-upstream', 'no-upstream'])
  })
})

describe('F2: an upstream is slow', () => {
  test('ends the call at its deadline, closes its socket and leaves nothing in flight; heavy methods have a longer deadline', async () => {
    const clock = createManualClock()
    await using a = await proxied()
    await using rig = await startRig({ clock, nodes: [{ name: 'a', rpc: url(a.proxy) }] })
    const shared = rig.upstreams.shared
    await until('it is known', () => shared.bestSlot === 1000)
    a.node.respond = () => 'hang'
    for (const [method, deadlineMs] of [
      ['getBalance', 10_000],
      ['getProgramAccounts', 60_000],
    ] as const) {
      const before = a.node.calls.length
      let outcome: UpstreamResponse | undefined
      const startedMs = clock.monotonicMs()
      shared.forward(upstreamRequest(method, rpcBody(method)), (reported) => void (outcome = reported))
      await until('the call is sent', () => a.node.calls.length === before + 1)
      assert.equal(rig.registry.value('sluice_upstreams_calls_in_flight', { upstream: 'a' }), 1)
      const tookMs = await advanceUntil(clock, 'it ended', () => outcome !== undefined, { stepMs: 25 })
      assert.deepEqual(outcome, { kind: 'timeout', isSent: true })
      assert.ok(Math.abs(clock.monotonicMs() - startedMs - deadlineMs) <= 100, `${tookMs} ms`)
      assert.equal(rig.registry.value('sluice_upstreams_calls_in_flight', { upstream: 'a' }), 0)
      assert.equal(rig.upstreams.status()[0]?.callsInFlight, 0)
    }
    assert.equal(a.node.calls.length, 2, 'no time is left for a second node')
  })

  test('reports a call that got no connection as not sent', async () => {
    await using a = await proxied()
    await using rig = await startRig({
      clock: systemClock,
      nodes: [{ name: 'a', rpc: url(a.proxy) }],
      connections: { rpcPerNodeMax: 1 },
      calls: { deadlineMs: 300, heavyDeadlineMs: 60_000 },
    })
    a.node.respond = () => 'hang'
    const shared = rig.upstreams.shared
    const hanging = shared.forward(upstreamRequest('getProgramAccounts', rpcBody('getProgramAccounts')), () => {})
    await until('the call is sent', () => a.node.calls.length === 1)
    assert.deepEqual(await read(shared), { kind: 'timeout', isSent: false })
    assert.equal(a.node.calls.length, 1)
    hanging.abort()
  })

  test('counts a timeout of an ordinary call against the node, and that of a heavy call not', async () => {
    await using a = await proxied()
    await using rig = await startRig({
      clock: systemClock,
      nodes: [{ name: 'a', rpc: url(a.proxy) }],
      calls: { deadlineMs: 200, heavyDeadlineMs: 200 },
    })
    const shared = rig.upstreams.shared
    await until('it is known', () => shared.bestSlot === 1000)
    const many = (method: string) =>
      Promise.all(Array.from({ length: 10 }, () => shared.forwardAsync(upstreamRequest(method, rpcBody(method)))))
    a.node.respond = (method) => (method === 'getProgramAccounts' ? 'hang' : undefined)
    for (const { kind } of await many('getProgramAccounts')) assert.equal(kind, 'timeout')
    assert.equal(rig.upstreams.status()[0]?.state, 'healthy')
    assert.equal((await read(shared)).kind, 'responded')
    a.node.respond = () => 'hang'
    for (const { kind } of await many('getBalance')) assert.equal(kind, 'timeout')
    assert.equal(rig.upstreams.status()[0]?.state, 'failing')
  })

  test('does not delay calls to other nodes', async () => {
    await using a = await proxied()
    await using b = await proxied()
    await using rig = await startRig({
      clock: systemClock,
      nodes: [
        { name: 'a', rpc: url(a.proxy) },
        { name: 'b', rpc: url(b.proxy) },
      ],
    })
    const shared = rig.upstreams.shared
    await until('both are known', () => rig.upstreams.status().every(({ slot }) => slot > 0))
    a.proxy.add({ type: 'latency', latencyMs: 1500 })
    // The slow node fills up with the first calls; from then on the other has less to do.
    const slow = Array.from({ length: 8 }, () => read(shared))
    await until('the slow node is busy', () => (rig.upstreams.status()[0]?.callsInFlight ?? 0) >= 4)
    await until('the quick one is idle', () => rig.upstreams.status()[1]?.callsInFlight === 0)
    for (let round = 0; round < 50; round++) {
      const startedMs = performance.now()
      const outcome = await read(shared)
      assert.ok(outcome.kind === 'responded' && outcome.nodeName === 'b')
      assert.ok(performance.now() - startedMs < 1000)
    }
    await Promise.all(slow)
  })
})

test('F3: an upstream flaps at 1 Hz: little extra load, and no more errors than its downtime', async () => {
  await using a = await proxied()
  await using b = await proxied()
  await using rig = await startRig({
    clock: systemClock,
    nodes: [
      { name: 'a', rpc: url(a.proxy) },
      { name: 'b', rpc: url(b.proxy) },
    ],
  })
  const shared = rig.upstreams.shared
  await until('both are known', () => rig.upstreams.status().every(({ slot }) => slot > 0))
  const isFull = process.env['SLUICE_FULL'] === '1'
  const FLAPS = isFull ? 20 : 4
  let isRunning = true
  const counts = { asked: 0, failed: 0 }
  const client = async () => {
    while (isRunning) {
      counts.asked += 1
      if ((await read(shared)).kind !== 'responded') counts.failed += 1
      await pause(1)
    }
  }
  const clients = Array.from({ length: 8 }, client)
  for (let flap = 0; flap < FLAPS; flap++) {
    await pause(500)
    await a.proxy.disable()
    await pause(500)
    await a.proxy.enable()
  }
  isRunning = false
  await Promise.all(clients)
  const reached = a.node.calls.length + b.node.calls.length
  assert.ok(counts.asked > 100, `${counts.asked} calls`)
  assert.ok(reached <= counts.asked * 1.1, `${reached} calls reached the nodes for ${counts.asked}`)
  assert.ok(counts.failed <= counts.asked * 0.5, `${counts.failed} of ${counts.asked} failed`)
  // With a second node, and reads, hardly any should: the budget covers what the flaps break.
  assert.ok(counts.failed <= counts.asked * 0.01, `${counts.failed} of ${counts.asked} failed`)
})

test('F4: a half-open upstream is detected within 25 s and calls go to other nodes', async () => {
  const clock = createManualClock()
  await using a = await proxied()
  await using b = await proxied()
  await using rig = await startRig({
    clock,
    nodes: [
      { name: 'a', rpc: url(a.proxy) },
      { name: 'b', rpc: url(b.proxy) },
    ],
  })
  const shared = rig.upstreams.shared
  await until('both are known', () => rig.upstreams.status().every(({ slot }) => slot > 0))
  a.proxy.add({ type: 'timeout', timeoutMs: 0, stream: 'upstream' })
  a.proxy.add({ type: 'timeout', timeoutMs: 0, stream: 'downstream' })
  const tookMs = await advanceUntil(clock, 'it is found', () => rig.upstreams.status()[0]?.state === 'failing')
  assert.ok(tookMs <= 25_000, `${tookMs} ms`)
  for (let round = 0; round < 10; round++) {
    const outcome = await read(shared)
    assert.ok(outcome.kind === 'responded' && outcome.nodeName === 'b')
  }
  a.proxy.clear()
  a.proxy.resetConnections()
  await advanceUntil(clock, 'it is back without a restart', () => rig.upstreams.status()[0]?.state === 'healthy')
})

describe('F5: an upstream lags', () => {
  test('takes the node out of rotation within 2 s and back in when it has caught up; the slot of a client never goes back', async () => {
    const clock = createManualClock()
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    await using rig = await startRig({
      clock,
      nodes: [
        { name: 'a', rpc: a.rpc },
        { name: 'b', rpc: b.rpc },
      ],
    })
    const shared = rig.upstreams.shared
    const stateOf = (at: number) => rig.upstreams.status()[at]?.state
    await until('both are known', () => rig.upstreams.status().every(({ slot }) => slot === 1000))
    const view = createClientView()
    const slotsSeen: number[] = []
    const ask = async () => {
      const outcome = await shared.forwardAsync({ ...upstreamRequest('getBalance', rpcBody('getBalance')), view })
      slotsSeen.push(Number(/"slot":(\d+)/.exec(textOf(outcome))?.[1]))
      return outcome.kind === 'responded' ? outcome.nodeName : outcome.kind
    }
    b.tick(25)
    await advanceUntil(clock, 'the best is known', () => shared.bestSlot === 1025)
    assert.equal(stateOf(0), 'healthy', '25 slots are allowed')
    b.tick()
    const outMs = await advanceUntil(clock, 'it is out', () => stateOf(0) === 'lagging')
    assert.ok(outMs <= 2000, `${outMs} ms`)
    assert.equal(rig.registry.value('sluice_upstreams_lag_slots', { upstream: 'a' }), 26)
    for (let round = 0; round < 10; round++) assert.equal(await ask(), 'b')
    a.tick(20)
    await advanceUntil(clock, 'it is in again', () => stateOf(0) === 'healthy')
    for (let round = 0; round < 20; round++) {
      if (round % 4 === 0) a.tick(3)
      if (round % 5 === 0) b.tick(2)
      await ask()
      await advanceUntil(clock, 'a moment has passed', () => clock.monotonicMs() % 300 === 0)
    }
    assert.deepEqual(
      slotsSeen,
      slotsSeen.toSorted((x, y) => x - y),
      'the slot seen by a client never goes back',
    )
  })

  test('uses lagging nodes when all lag, and reports the lag', async () => {
    const clock = createManualClock()
    await using a = await startFakeNode()
    await using b = await startFakeNode()
    await using rig = await startRig({
      clock,
      nodes: [
        { name: 'a', rpc: a.rpc },
        { name: 'b', rpc: b.rpc },
      ],
    })
    const shared = rig.upstreams.shared
    b.tick(100)
    await advanceUntil(clock, 'it is known', () => shared.bestSlot === 1100)
    assert.equal(shared.slotsBehind, undefined)
    assert.equal(rig.registry.value('sluice_upstreams_all_behind'), 0)
    rig.upstreams.drain('b')
    assert.equal(shared.slotsBehind, 100)
    assert.equal(rig.registry.value('sluice_upstreams_all_behind'), 1)
    assert.equal((await read(shared)).kind, 'responded')
  })

  test('takes a node behind its own shreds out of rotation although its slot is the best known', async () => {
    const clock = createManualClock()
    await using a = await startFakeNode()
    await using rig = await startRig({ clock, nodes: [{ name: 'a', rpc: a.rpc }] })
    a.shredSlot = 1101
    await advanceUntil(clock, 'it is seen', () => rig.upstreams.status()[0]?.state === 'lagging')
    assert.deepEqual(rig.upstreams.status()[0]?.reason, '101 slots behind its own shreds')
    assert.equal(rig.upstreams.shared.slotsBehind, 101)
  })
})
