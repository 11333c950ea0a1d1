import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMergedMetrics, createThreadMetrics } from '../../../platform/telemetry/merged-metrics.ts'
import { createMetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import { createMetricSum } from './metric-sum.ts'
import { createTopReport, type TopDeps } from './report.ts'

test('sums over all threads, also those that registered a metric or a label value later', () => {
  using own = createMetricsRegistry()
  const threads = [createThreadMetrics(), createThreadMetrics()] as const
  const registry = createMergedMetrics(own, () => threads)
  const report = createTopReport({
    registry,
    clock: { monotonicMs: () => 0 },
    usage: { active: () => [] },
    snapshot: () => ({}),
    status: () => ({}),
    upstreams: () => [],
    streamsOf: () => 0,
    runs: { shreds: false, sender: false, indexer: false, execution: false },
  } as unknown as TopDeps)
  assert.deepEqual(report().calls, {})
  for (const [at, thread] of threads.entries()) {
    const registry = createMetricsRegistry({ shared: { onFamily: thread.add } })
    const labels = { interface: at === 0 ? ['rpc'] : ['rpc', 'ws'] }
    const admitted = registry.counter('sluice_access_admitted_total', 'x', { labels })
    admitted.inc({ interface: 'rpc' }, 2)
    if (at === 1) admitted.inc({ interface: 'ws' }, 5)
    registry
      .gauge('sluice_process_event_loop_delay_seconds', 'x', { labels: { stat: ['p99'] }, merge: 'max' })
      .set(1 + at, {
        stat: 'p99',
      })
  }
  assert.deepEqual(report().calls, { rpc: 4, ws: 5 })
  assert.equal(report().process.loopDelaySeconds, 2)
  const { sum, by } = createMetricSum(registry)
  assert.equal(sum('sluice_access_admitted_total'), 9)
  assert.equal(sum('sluice_access_admitted_total', { interface: 'ws' }), 5)
  assert.deepEqual(by('sluice_access_admitted_total', 'interface'), { rpc: 4, ws: 5 })
})
