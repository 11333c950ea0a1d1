import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { openListener } from '../net/listener.ts'
import { createListenerMetrics } from '../net/listener-metrics.ts'
import { makeTestCert } from '../net/test-cert.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { createMetricsRegistry } from '../telemetry/metrics-registry.ts'
import { createMemoryCells, MemoryCells } from './memory-cells.ts'
import { createIdleWatch, createMemoryGuard, createThreadMemoryGuard } from './memory-guard.ts'

/** A process whose memory use is set by the test; records its collections. */
function startGuard(given: { canTrim?: boolean; collectMs?: number; isIdle?: () => boolean } = {}) {
  const clock = createManualClock()
  const memory = { residentBytes: 0, liveBytes: 0 }
  const collectedAtMs: number[] = []
  let onCollect = () => {}
  const guard = createMemoryGuard(
    { residentBytesMax: 1000 * MIB },
    {
      clock,
      log: silentLogger,
      isIdle: given.isIdle ?? (() => false),
      measure: () => ({ residentBytes: memory.residentBytes * MIB, liveBytes: memory.liveBytes * MIB }),
      release: {
        collect() {
          collectedAtMs.push(clock.monotonicMs())
          onCollect()
          clock.advance(given.collectMs ?? 0)
        },
        trim: (given.canTrim ?? true) ? () => {} : undefined,
      },
    },
  )
  const set = (residentBytes: number, liveBytes: number) => Object.assign(memory, { residentBytes, liveBytes })
  return {
    clock,
    collectedAtMs,
    set,
    /** What a collection leaves. */
    leaves: (residentBytes: number, liveBytes: number) => {
      onCollect = () => void set(residentBytes, liveBytes)
    },
    allows: () => [guard.mayOpenStream(), guard.mayAccept()],
    [Symbol.dispose]: () => guard[Symbol.dispose](),
  }
}

const MIB = 2 ** 20

test('refuses new streams at 80 % and new sockets at 90 %, and accepts them again below', () => {
  using on = startGuard()
  for (const [live, streams, sockets] of [
    [799, true, true],
    [800, false, true],
    [899, false, true],
    [900, false, false],
    [10, true, true],
  ] as const) {
    on.set(live, live)
    on.clock.advance(500)
    assert.deepEqual(on.allows(), [streams, sockets], String(live))
  }
})

test('resident memory that is not in use refuses nothing: it is collected and returned', () => {
  using on = startGuard()
  on.leaves(300, 50)
  on.set(950, 200)
  on.clock.advance(500)
  assert.deepEqual([on.allows(), on.collectedAtMs], [[true, true], [500]])
  on.clock.advance(500)
  // What the collection left beside the live bytes counts from then on: 250.
  on.set(950, 640)
  on.clock.advance(500)
  assert.deepEqual(on.allows(), [false, true])
})

test('what a collection cannot release counts as in use', () => {
  using on = startGuard()
  on.leaves(950, 50)
  on.set(950, 50)
  on.clock.advance(1000)
  assert.deepEqual(on.allows(), [false, false])
  on.leaves(200, 50)
  on.clock.advance(2500)
  assert.deepEqual(on.allows(), [true, true])
})

test('ignores resident memory where free memory cannot be returned', () => {
  using on = startGuard({ canTrim: false })
  on.leaves(950, 50)
  on.set(950, 50)
  on.clock.advance(5000)
  assert.deepEqual(on.allows(), [true, true])
  on.leaves(950, 900)
  on.set(950, 900)
  on.clock.advance(500)
  assert.deepEqual(on.allows(), [false, false])
})

test('collections under pressure are further apart the longer they take', () => {
  using quick = startGuard()
  quick.set(950, 950)
  quick.clock.advance(10_000)
  assert.deepEqual(quick.collectedAtMs, [500, 2500, 4500, 6500, 8500])
  using slow = startGuard({ collectMs: 400 })
  slow.set(950, 950)
  for (let half = 0; half < 40; half++) slow.clock.advance(500)
  const [first = 0, second = 0] = slow.collectedAtMs
  assert(second - first >= 8000, String(slow.collectedAtMs))
})

test('an idle process that has grown collects once', () => {
  let isIdle = false
  using on = startGuard({ isIdle: () => isIdle })
  on.set(400, 300)
  on.leaves(200, 100)
  on.clock.advance(60_000)
  assert.equal(on.collectedAtMs.length, 0)
  isIdle = true
  on.clock.advance(60_000)
  assert.equal(on.collectedAtMs.length, 1)
})

test('collects again after a collection that ran under load', () => {
  using on = startGuard({ isIdle: () => true })
  on.set(200, 100)
  on.leaves(200, 100)
  on.clock.advance(10_000)
  on.set(500, 400)
  on.leaves(500, 400)
  on.clock.advance(120_000)
  const during = on.collectedAtMs.length
  assert(during >= 3 && during <= 8, String(on.collectedAtMs))
  // The load is over; what it left is garbage.
  on.set(500, 300)
  on.leaves(200, 100)
  on.clock.advance(300_000)
  assert.equal(on.collectedAtMs.length, during + 1)
})

test('a thread that serves clients, if only for a tenth of its time, is not idle: a collection would delay them', () => {
  const use = { active: 0, idle: 0 }
  const isIdle = createIdleWatch(() => ({ ...use }))
  const after = (active: number, idle: number) => {
    use.active += active
    use.idle += idle
    return isIdle()
  }
  assert.deepEqual([after(50, 450), after(500, 0), after(20, 480), after(0, 500)], [false, false, true, true])
})

/** Main and two threads on one clock; memory use is set by the test. */
function startThreads(given: { isIdle?: () => boolean; restBytes?: number; canTrim?: boolean } = {}) {
  const clock = createManualClock()
  const memory = createMemoryCells({ threads: 3 })
  const live = [0, 0, 0]
  let residentBytes = 0
  const collected: string[] = []
  /** What a collection leaves to its thread. */
  const leaves: (number | undefined)[] = []
  const cells = [0, 1, 2].map((thread) => new MemoryCells(memory, thread)) as [MemoryCells, MemoryCells, MemoryCells]
  const depsOf = (thread: number) => ({
    clock,
    cells: cells[thread] as MemoryCells,
    isIdle: given.isIdle ?? (() => false),
    measure: () => ({ residentBytes: residentBytes * MIB, liveBytes: (live[thread] ?? 0) * MIB }),
    release: {
      collect() {
        collected.push(`${clock.monotonicMs()}: ${thread}`)
        live[thread] = leaves[thread] ?? (live[thread] as number)
      },
      trim:
        given.canTrim === false
          ? undefined
          : () => void (residentBytes = live.reduce((sum, bytes) => sum + bytes, given.restBytes ?? 0)),
    },
  })
  const main = createMemoryGuard({ residentBytesMax: 1000 * MIB }, { ...depsOf(0), log: silentLogger })
  const threads = [createThreadMemoryGuard(depsOf(1)), createThreadMemoryGuard(depsOf(2))]
  return {
    clock,
    cells,
    collected,
    leaves,
    main,
    /** Live bytes of the threads; resident is what they need, and more. */
    set(bytes: readonly [number, number, number], moreBytes = 0) {
      live.splice(0, 3, ...bytes)
      residentBytes = bytes.reduce((sum, each) => sum + each, moreBytes)
    },
    pressures: () => [main, ...threads].map((guard) => guard.pressure()),
    [Symbol.dispose]() {
      for (const guard of [main, ...threads]) guard[Symbol.dispose]()
    },
  }
}

test('main adds up what the threads use, and all of them refuse what it has decided', () => {
  // Resident memory decides nothing where it cannot be returned.
  using on = startThreads({ canTrim: false })
  on.set([100, 300, 399])
  on.clock.advance(1000)
  assert.deepEqual(on.pressures(), ['none', 'none', 'none'])
  on.set([100, 300, 400])
  on.clock.advance(1000)
  assert.deepEqual(
    on.pressures(),
    Array.from({ length: 3 }, () => 'no-new-streams'),
  )
  on.set([100, 500, 400])
  on.clock.advance(1000)
  assert.deepEqual(
    on.pressures(),
    Array.from({ length: 3 }, () => 'no-new-sockets'),
  )
  on.set([100, 10, 10])
  on.clock.advance(1000)
  assert.deepEqual(on.pressures(), ['none', 'none', 'none'])
})

test('every thread collects its own heap when the process is full, and what they leave beside it is measured again', () => {
  using on = startThreads({ restBytes: 100 })
  on.leaves.push(50, 100, 100)
  on.set([100, 400, 350], 50)
  on.clock.advance(1500)
  assert.deepEqual(on.collected, ['500: 0', '500: 1', '500: 2'])
  assert.deepEqual(on.pressures(), ['none', 'none', 'none'])
  // Beside the live bytes 100 are resident since the collections: 700 + 100 are full again.
  on.leaves.splice(0)
  on.set([200, 300, 200], 100)
  on.clock.advance(1000)
  assert.deepEqual(
    on.pressures(),
    Array.from({ length: 3 }, () => 'no-new-streams'),
  )
})

test('threads do not collect at the same moment, and one that died in a collection does not stop the others', () => {
  using on = startThreads()
  const [first, second] = [on.cells[1], on.cells[2]]
  let isNested: boolean | undefined
  assert.equal(
    first.collect(() => {
      isNested = second.collect(() => assert.fail('two at a time'))
    }),
    true,
  )
  assert.deepEqual([isNested, second.collect(() => {})], [false, true])
  // The thread is in its collection for as long as `run` takes; here it never comes back from it.
  first.collect(() => {
    on.set([100, 400, 400])
    on.clock.advance(10_000)
    assert.deepEqual(on.collected, [])
    on.main.reclaim(1)
    on.clock.advance(500)
  })
  assert.ok(on.collected.length > 0)
})

test('the memory of a thread that died counts no more', () => {
  using on = startThreads()
  on.set([100, 500, 300])
  on.clock.advance(500)
  assert.equal(on.cells[0].liveBytes, 900 * MIB)
  on.main.reclaim(1)
  assert.equal(on.cells[0].liveBytes, 400 * MIB)
})

test('an idle thread that has grown collects by itself', () => {
  using on = startThreads({ isIdle: () => true })
  on.leaves.push(0, 100, 0)
  on.set([0, 300, 0], 100)
  on.clock.advance(60_000)
  assert.deepEqual(on.collected, ['5000: 1'])
})

test('a listener under memory pressure refuses connections and counts them, and reports the expiry of its certificate', async () => {
  using cert = makeTestCert('x', 30)
  const registry = createMetricsRegistry()
  const metricsOf = createListenerMetrics(registry, ['rpc', 'ws'])
  await using listener = await openListener(
    { host: '127.0.0.1', port: 0, tls: cert, mayAccept: () => false },
    { onConnection: () => assert.fail('was let in'), ...metricsOf('rpc') },
  )
  const socket = connect(listener.address.port, '127.0.0.1').on('error', () => {})
  await new Promise((resolve) => socket.once('close', resolve))
  assert.equal(registry.value('sluice_process_connections_refused_total', { listener: 'rpc', reason: 'memory' }), 1)
  const daysLeft =
    ((registry.value('sluice_tls_not_after_timestamp_seconds', { listener: 'rpc' }) ?? 0) - Date.now() / 1000) / 86_400
  assert(daysLeft > 29 && daysLeft < 31)
})
