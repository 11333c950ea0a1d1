import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { createMetricsRegistry } from './metrics-registry.ts'
import { negotiateFormat } from './metrics-text.ts'
import { createProcessRegistry } from './process-metrics.ts'

function sample() {
  const registry = createProcessRegistry({ build: { version: '1.2.3' } })
  const requests = registry.counter('sluice_bundle_requests_total', 'Requests by method.', {
    labels: { method: ['getSlot', 'getBlock'], server: ['http', 'ws'] },
  })
  const streams = registry.gauge('sluice_bundle_streams', 'Open streams.', { labels: { server: ['ws', 'grpc'] } })
  const seconds = registry.histogram('sluice_bundle_request_seconds', 'Time "to" respond.\nSecond line.', {
    buckets: [0.01, 0.1, 1],
    labels: { method: ['getSlot'] },
  })
  return { registry, requests, streams, seconds, [Symbol.dispose]: () => registry[Symbol.dispose]() }
}

test('promtool accepts the output', async (t) => {
  using sluice = sample()
  sluice.requests.inc({ method: 'getSlot', server: 'http' })
  sluice.streams.set(3, { server: 'ws' })
  sluice.seconds.observe(0.05, { method: 'getSlot' })
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: await sluice.registry.text(), encoding: 'utf8' })
  if (checked.error && 'code' in checked.error && checked.error.code === 'ENOENT') {
    t.skip('PROMTOOL IS NOT INSTALLED: install the Debian package "prometheus"')
    return
  }
  assert.equal(checked.stderr + checked.stdout, '')
  assert.equal(checked.status, 0)
})

test('both formats name counters correctly, whichever is requested first', async () => {
  using sluice = sample()
  sluice.requests.inc({ method: 'getSlot', server: 'http' }, 5)
  for (let round = 0; round < 2; round++) {
    const open = await sluice.registry.text('openmetrics')
    assert.match(open, /^# TYPE sluice_bundle_requests counter$/m)
    assert.match(open, /^sluice_bundle_requests_total\{method="getSlot",server="http"\} 5$/m)
    assert(open.endsWith('# EOF\n'))
    const classic = await sluice.registry.text()
    assert.match(classic, /^# TYPE sluice_bundle_requests_total counter$/m)
    assert.match(classic, /^sluice_bundle_requests_total\{method="getSlot",server="http"\} 5$/m)
  }
  assert.match(sluice.registry.contentType('openmetrics'), /^application\/openmetrics-text; version=1\.0\.0/)
  assert.equal(negotiateFormat('application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1'), 'openmetrics')
  assert.equal(negotiateFormat('text/plain'), 'prometheus')
  assert.equal(negotiateFormat(undefined), 'prometheus')
})

test('the weights of the Accept header decide about the format', () => {
  const cases = [
    ['text/plain;version=0.0.4;q=0.6, application/openmetrics-text;version=1.0.0;q=0.5, */*;q=0.1', 'prometheus'],
    ['application/openmetrics-text;q=0, text/plain', 'prometheus'],
    ['application/openmetrics-text; q=0', 'prometheus'],
    ['application/openmetrics-text-other, */*', 'prometheus'],
    ['Application/OpenMetrics-Text; version=1.0.0', 'openmetrics'],
    ['text/plain, application/openmetrics-text', 'openmetrics'],
    [
      'application/openmetrics-text;version=0.0.1;q=0.2, application/openmetrics-text;q=0.8, text/plain;q=0.5',
      'openmetrics',
    ],
    ['application/openmetrics-text;q=x', 'prometheus'],
  ] as const
  for (const [accept, format] of cases) assert.equal(negotiateFormat(accept), format, accept)
})

test('labels stay bounded under 10,000 random values; unknown and missing ones are other', async () => {
  using sluice = sample()
  const series = async () =>
    (await sluice.registry.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
  sluice.requests.inc({ method: 'x', server: 'y' })
  sluice.seconds.observe(1, { method: 'x' })
  const before = await series()
  for (let n = 0; n < 10_000; n++) {
    sluice.requests.inc({ method: `m${n}\n{}"`, server: `${n}` })
    sluice.seconds.observe(1, { method: `m${n}` })
  }
  assert.equal(await series(), before)
  assert.equal(sluice.registry.value('sluice_bundle_requests_total', { method: 'other', server: 'other' }), 10_001)
  assert.equal(sluice.registry.value('sluice_bundle_requests_total', {}), 10_001)
})

test('histogram buckets are cumulative and bounds belong to the lower bucket', async () => {
  const registry = createMetricsRegistry()
  const seconds = registry.histogram('sluice_test_wait_seconds', 'x', { buckets: [1, 2] })
  for (const value of [0.5, 1, 1.5, 2, 99]) seconds.observe(value)
  const text = await registry.text()
  for (const line of ['_bucket{le="1"} 2', '_bucket{le="2"} 4', '_bucket{le="+Inf"} 5', '_sum 104', '_count 5']) {
    assert(text.includes(`sluice_test_wait_seconds${line}\n`), text)
  }
  assert.equal(registry.value('sluice_test_wait_seconds'), 5)
})

test('gauges go up and down; `with` reaches the same series; readers run at each scrape', async () => {
  const registry = createMetricsRegistry()
  const gauge = registry.gauge('sluice_test_open', 'x', { labels: { server: ['a'] } })
  const child = gauge.with({ server: 'a' })
  child.set(5)
  child.inc()
  gauge.dec({ server: 'a' }, 2)
  assert.equal(registry.value('sluice_test_open', { server: 'a' }), 4)
  assert.equal(registry.value('sluice_test_open', { server: 'b' }), undefined)
  let level = 1
  registry.gauge('sluice_test_level', 'x', { read: () => level })
  level = 42
  assert.match(await registry.text(), /^sluice_test_level 42$/m)
})

test('a counter with one short label list shows zeros from the start', async () => {
  const registry = createMetricsRegistry()
  registry.counter('sluice_test_refusals_total', 'x', { labels: { limit: ['rate', 'size'] } })
  assert.match(await registry.text(), /limit="rate"\} 0\n.*limit="size"\} 0\n$/)
})

test('refuses names that promtool would reject', () => {
  const registry = createMetricsRegistry()
  const help = 'x'
  assert.throws(() => registry.gauge('sluice_a_total', help), /end in _total/)
  assert.throws(() => registry.counter('sluice_a', help), /end in _total/)
  assert.throws(() => registry.gauge('other_a', help), /names are/)
  assert.throws(() => registry.gauge('sluice_aB', help), /names are/)
  assert.throws(() => registry.gauge('sluice_a_count', help), /belongs to histograms/)
  assert.throws(() => registry.gauge('sluice_a', ' '), /help/)
  assert.throws(() => registry.gauge('sluice_a', help, { labels: { quantile: ['x'] } }), /cannot be a label/)
  registry.gauge('sluice_a', help)
  assert.throws(() => registry.gauge('sluice_a', help), /twice/)
  const counter = registry.counter('sluice_b_total', help)
  assert.throws(() => counter.inc({}, -1), /only grows/)
})

test('describe lists every metric with its labels and seriesMax', () => {
  using sluice = sample()
  const described = sluice.registry.describe()
  assert.deepEqual(
    described.map(({ name }) => name),
    described.map(({ name }) => name).toSorted(),
  )
  const requests = described.find(({ name }) => name === 'sluice_bundle_requests_total')
  assert.deepEqual(requests?.labels, { method: ['getSlot', 'getBlock', 'other'], server: ['http', 'ws', 'other'] })
  assert.equal(requests?.seriesMax, 9)
  assert(described.some(({ name }) => name === 'sluice_process_event_loop_delay_seconds'))
  assert(described.every((metric) => !('samples' in metric)))
})

test('process metrics have plausible values', () => {
  using sluice = sample()
  const { registry } = sluice
  assert((registry.value('sluice_process_resident_memory_bytes') ?? 0) > 10_000_000)
  assert((registry.value('sluice_process_cpu_seconds_total') ?? 0) > 0)
  assert((registry.value('sluice_process_open_descriptors') ?? 0) > 3)
  assert.equal(registry.value('sluice_build_info', { version: '1.2.3', node: process.version }), 1)
})

test('reads a metric once when it is registered, so that a reader of what does not exist yet fails at the start and not at an early scrape', () => {
  using registry = createMetricsRegistry()
  assert.throws(() => registry.gauge('sluice_test_early', 'x', { read: () => later.size }), /before initialization/)
  const later = new Set()
  registry.gauge('sluice_test_late', 'x', { read: () => later.size })
  assert.equal(registry.value('sluice_test_late'), 0)
})
