import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { openListener } from '../net/listener.ts'
import { createListenerMetrics } from '../net/listener-metrics.ts'
import { makeTestCert } from '../net/test-cert.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { createMetricsRegistry } from '../telemetry/metrics-registry.ts'
import { createMemoryGuard } from './memory-guard.ts'

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
  on.clock.advance(31_000)
  assert.equal(on.collectedAtMs.length, during + 1)
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
  assert.equal(registry.value('sluice_process_connections_refused_total', { door: 'rpc', reason: 'memory' }), 1)
  const daysLeft =
    ((registry.value('sluice_tls_not_after_timestamp_seconds', { door: 'rpc' }) ?? 0) - Date.now() / 1000) / 86_400
  assert(daysLeft > 29 && daysLeft < 31)
})
