import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMergedMetrics, createThreadMetrics } from './merged-metrics.ts'
import { createMetricsRegistry } from './metrics-registry.ts'

test('a renamed metric is printed under both names, with the labels and values that it had under the former one', async () => {
  using registry = createMetricsRegistry()
  const former = { name: 'sluice_test_told_total', labels: { outcome: 'result' }, values: { responded: 'answered' } }
  const labels = { node: ['a'], outcome: ['responded', 'failed'] }
  registry.counter('sluice_test_reported_total', 'x', { labels, former }).inc({ node: 'a', outcome: 'responded' }, 3)
  const seconds = { buckets: [1], former: { name: 'sluice_test_old_seconds' } }
  registry.histogram('sluice_test_new_seconds', 'y', seconds).observe(0.5)
  const text = await registry.text()
  for (const line of [
    '# HELP sluice_test_reported_total x',
    'sluice_test_reported_total{node="a",outcome="responded"} 3',
    '# HELP sluice_test_told_total Former name of sluice_test_reported_total; removed in 0.2.',
    '# TYPE sluice_test_told_total counter',
    'sluice_test_told_total{node="a",result="answered"} 3',
    'sluice_test_old_seconds_bucket{le="1"} 1',
    'sluice_test_old_seconds_count 1',
  ])
    assert.ok(text.includes(`${line}\n`), `${line} in ${text}`)
  assert.match(await registry.text('openmetrics'), /^# TYPE sluice_test_told counter$/m)
  assert.deepEqual(
    registry.describe().map(({ name }) => name),
    ['sluice_test_new_seconds', 'sluice_test_reported_total'],
  )
})

test('a renamed label is printed under both names on one series, also for metrics of another thread', async () => {
  const thread = createThreadMetrics()
  using registry = createMetricsRegistry({ shared: { onFamily: (family) => thread.add(structuredClone(family)) } })
  const former = { labels: { response: 'answer' }, values: { responded: 'answered' } }
  const labels = { path: ['tpu'], response: ['responded', 'busy'] }
  const attempts = registry.counter('sluice_test_attempts_total', 'x', { labels, former })
  for (const response of ['responded', 'busy'] as const) attempts.inc({ path: 'tpu', response })
  const lines = (await createMergedMetrics(createMetricsRegistry(), () => [thread]).text()).trim().split('\n')
  assert.deepEqual(lines.slice(2), [
    'sluice_test_attempts_total{path="tpu",response="responded",answer="answered"} 1',
    'sluice_test_attempts_total{path="tpu",response="busy",answer="busy"} 1',
  ])
})
