import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createMergedMetrics, createThreadMetrics, type ThreadMetrics } from './merged-metrics.ts'
import type { MergeRule } from './metric-memory.ts'
import { createMetricsRegistry, type MetricsRegistry } from './metrics-registry.ts'

const RULES = ['sum', 'max', 'min'] as const satisfies MergeRule[]
const LABELS = ['a', 'b', 'unlisted'] as const
const NODES = ['n1', 'n2', 'n3'] as const
const BUCKETS = [1, 2, 4]

/** What a registry of each thread, and that of the model, contains. */
function register(registry: MetricsRegistry) {
  const node = registry.changingLabel('node', NODES.length)
  const labels = { kind: ['a', 'b'], way: ['x'] }
  const gauge = (merge: MergeRule) => registry.gauge(`sluice_test_${merge}_level`, 'x', { labels, merge })
  const source = { events: 0 }
  registry.counter('sluice_test_read_total', 'x', { read: () => source.events })
  return {
    ...{ registry, node, source },
    calls: registry.counter('sluice_test_calls_total', 'x', { labels }),
    zeros: registry.counter('sluice_test_zeros_total', 'x', { labels: { kind: ['a', 'b'] } }),
    seconds: registry.histogram('sluice_test_seconds', 'x', { labels, buckets: BUCKETS }),
    gauges: { sum: gauge('sum'), max: gauge('max'), min: gauge('min') },
    nodeCalls: registry.counter('sluice_test_node_calls_total', 'x', {
      labels: { way: ['x'], node, kind: ['a', 'b'] },
    }),
    nodeSeconds: registry.histogram('sluice_test_node_seconds', 'x', { labels: { node }, buckets: BUCKETS }),
  }
}

function startThread(metrics: ThreadMetrics) {
  const previous = structuredClone(metrics.families)
  return register(
    createMetricsRegistry({ shared: { previous, onFamily: (family) => metrics.add(structuredClone(family)) } }),
  )
}

const label = fc.constantFrom(...LABELS)
/** Multiples of a quarter: their sums are exact in any order. */
const amount = fc.integer({ min: 0, max: 40 }).map((quarters) => quarters / 4)
const step = fc.oneof(
  fc.record({ do: fc.constant('calls' as const), kind: label, amount }),
  fc.record({ do: fc.constant('read' as const), amount }),
  fc.record({ do: fc.constant('seconds' as const), kind: label, amount }),
  fc.record({ do: fc.constant('gauge' as const), rule: fc.constantFrom(...RULES), kind: label, amount }),
  fc.record({ do: fc.constant('acquire' as const), node: fc.constantFrom(...NODES) }),
  fc.record({ do: fc.constant('release' as const), node: fc.constantFrom(...NODES) }),
  fc.record({ do: fc.constant('node' as const), node: fc.constantFrom(...NODES), kind: label, amount }),
  fc.record({ do: fc.constant('restart' as const) }),
)

describe('merged metrics', () => {
  test('the text of k registries is that of one registry with all operations, over restarts', async (t) => {
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.record({ thread: fc.nat({ max: 3 }), step }), { maxLength: 60 }),
      async (count, steps) => {
        using own = createMetricsRegistry()
        register(own)
        const metrics = Array.from({ length: count }, () => createThreadMetrics())
        const threads = metrics.map((one) => startThread(one))
        const merged = createMergedMetrics(own, () => metrics)
        using reference = createMetricsRegistry()
        const model = register(reference)
        const gauges = metrics.map(() => new Map<string, { rule: MergeRule; kind: string; value: number }>())
        const nodes = metrics.map(() => new Map<string, { kind: string; value: number }[]>())

        for (const { thread, step } of steps) {
          const at = thread % count
          const one = threads[at] as (typeof threads)[number]
          const own = nodes[at] as (typeof nodes)[number]
          if (step.do === 'calls') {
            one.calls.inc({ kind: step.kind, way: 'x' }, step.amount)
            one.zeros.inc({ kind: step.kind }, step.amount)
            model.calls.inc({ kind: step.kind, way: 'x' }, step.amount)
            model.zeros.inc({ kind: step.kind }, step.amount)
          } else if (step.do === 'read') {
            one.source.events += step.amount
            model.source.events += step.amount
            one.registry.refresh()
            for (const node of own.keys()) if (one.node.indexOf(node) === -1) own.delete(node)
          } else if (step.do === 'seconds') {
            one.seconds.observe(step.amount, { kind: step.kind })
            model.seconds.observe(step.amount, { kind: step.kind })
          } else if (step.do === 'gauge') {
            one.gauges[step.rule].set(step.amount, { kind: step.kind, way: 'x' })
            gauges[at]?.set(`${step.rule} ${step.kind}`, { rule: step.rule, kind: step.kind, value: step.amount })
          } else if (step.do === 'acquire') {
            one.node.acquire(step.node)
            if (!own.has(step.node)) own.set(step.node, [])
          } else if (step.do === 'release') {
            if (one.node.indexOf(step.node) === -1) continue
            one.node.release(step.node)
            if (one.node.indexOf(step.node) === -1) own.delete(step.node)
          } else if (step.do === 'node') {
            if (one.node.indexOf(step.node) === -1) continue
            one.nodeCalls.inc({ way: 'x', node: step.node, kind: step.kind }, step.amount)
            one.nodeSeconds.observe(step.amount, { node: step.node })
            own.get(step.node)?.push({ kind: step.kind, value: step.amount })
          } else {
            metrics[at]?.ended()
            gauges[at]?.clear()
            threads[at] = startThread(metrics[at] as ThreadMetrics)
          }
        }

        for (const rule of RULES) {
          for (const kind of LABELS) {
            const name = kind === 'unlisted' ? 'other' : kind
            const set = gauges.flatMap((one) => one.get(`${rule} ${kind}`)?.value ?? [])
            const value = rule === 'sum' ? set.reduce((a, b) => a + b, 0) : Math[rule](...set)
            if (set.length > 0) model.gauges[rule].set(value, { kind: name, way: 'x' })
          }
        }
        // In the order of the names in the merged text, which is that of the threads.
        for (const one of threads) {
          for (let index = 0; index < NODES.length; index++) {
            const node = one.node.names.nameAt(index)
            if (node !== undefined && model.node.indexOf(node) === -1) model.node.acquire(node)
          }
        }
        for (const own of nodes) {
          for (const [node, counts] of own) {
            for (const { kind, value } of counts) {
              model.nodeCalls.inc({ way: 'x', node, kind }, value)
              model.nodeSeconds.observe(value, { node })
            }
          }
        }
        for (const one of threads) one.registry.readers.get('sluice_test_read_total')?.refresh()
        assert.equal(await merged.text(), await reference.text())
        assert.equal(await merged.text('openmetrics'), await reference.text('openmetrics'))
        for (const { name, labels } of reference.describe()) {
          const fixed = Object.fromEntries(Object.entries(labels).map(([key, values]) => [key, values[0] as string]))
          assert.equal(merged.value(name, fixed), reference.value(name, fixed), name)
        }
      },
    )
    await fc.assert(property, {
      seed: seedOf(t),
      numRuns: repeatsOf({ short: 150, full: 2000 }),
      includeErrorInReport: true,
    })
  })

  test('the gauges of an ended thread are not shown, and begin at zero with the next instance', async () => {
    using own = createMetricsRegistry()
    const metrics = [createThreadMetrics(), createThreadMetrics()] as const
    const merged = createMergedMetrics(own, () => metrics)
    const start = (at: 0 | 1) => {
      const shared = { previous: metrics[at].families, onFamily: metrics[at].add }
      const registry = createMetricsRegistry({ shared })
      return {
        open: registry.gauge('sluice_test_open', 'x'),
        expiry: registry.gauge('sluice_test_expiry', 'x', { labels: { listener: ['rpc'] }, merge: 'min' }),
        level: registry.gauge('sluice_test_level', 'x', { read: () => 7, merge: 'min' }),
      }
    }
    for (const at of [0, 1] as const) {
      const thread = start(at)
      thread.open.inc({}, 3)
      thread.expiry.set(100 + at, { listener: 'rpc' })
    }
    assert.equal(merged.value('sluice_test_open'), 6)
    assert.equal(merged.value('sluice_test_expiry', { listener: 'rpc' }), 100)
    metrics[0].ended()
    assert.equal(merged.value('sluice_test_open'), 3)
    assert.equal(merged.value('sluice_test_expiry', { listener: 'rpc' }), 101)
    assert.equal(merged.value('sluice_test_level'), 7)
    assert.match(await merged.text(), /^sluice_test_expiry\{listener="rpc"\} 101$/m)
    start(0).open.inc()
    assert.equal(merged.value('sluice_test_open'), 4)
    start(1)
    assert.equal(merged.value('sluice_test_open'), 1)
    assert.equal(merged.value('sluice_test_expiry', { listener: 'rpc' }), undefined)
  })

  test('a thread that does not know a value does not hide that of another one; one rule per gauge, in its description', () => {
    using own = createMetricsRegistry()
    const metrics = [createThreadMetrics(), createThreadMetrics()] as const
    const merged = createMergedMetrics(own, () => metrics)
    for (const [at, value] of [Number.NaN, 5].entries()) {
      const registry = createMetricsRegistry({ shared: { onFamily: (family) => metrics[at]?.add(family) } })
      for (const merge of ['max', 'min'] as const)
        registry.gauge(`sluice_test_${merge}`, 'x', { read: () => value, merge })
      registry.counter('sluice_test_total', 'x')
    }
    assert.equal(merged.value('sluice_test_max'), 5)
    assert.equal(merged.value('sluice_test_min'), 5)
    assert.deepEqual(
      merged.describe().map(({ name, merge }) => [name, merge]),
      [
        ['sluice_test_max', 'max'],
        ['sluice_test_min', 'min'],
        ['sluice_test_total', undefined],
      ],
    )
    const other = createMetricsRegistry({ shared: { onFamily: metrics[1].add } })
    other.gauge('sluice_test_max', 'x', { merge: 'min' })
    assert.throws(() => merged.describe(), /sluice_test_max differs between threads/)
  })

  test('label lists that differ between threads are joined, and a value that one thread lists is not `other` of the next', async () => {
    using own = createMetricsRegistry()
    const metrics = [createThreadMetrics(), createThreadMetrics()] as const
    const merged = createMergedMetrics(own, () => metrics)
    for (const [at, path] of ['rpc', 'quic'].entries()) {
      const registry = createMetricsRegistry({ shared: { onFamily: (family) => metrics[at]?.add(family) } })
      const sent = registry.counter('sluice_test_sent_total', 'x', { labels: { path: [path], way: ['x'] } })
      sent.inc({ path, way: 'x' }, 1 + at)
      sent.inc({ path: 'nowhere', way: 'x' }, 10)
    }
    assert.equal(merged.value('sluice_test_sent_total', { path: 'rpc', way: 'x' }), 1)
    assert.equal(merged.value('sluice_test_sent_total', { path: 'quic', way: 'x' }), 2)
    assert.equal(merged.value('sluice_test_sent_total', { path: 'nowhere', way: 'x' }), 20)
    assert.deepEqual(merged.describe()[0]?.labels['path'], ['rpc', 'quic', 'other'])
    const lines = (await merged.text()).split('\n').filter((line) => line.startsWith('sluice'))
    assert.deepEqual(lines, [
      'sluice_test_sent_total{path="rpc",way="x"} 1',
      'sluice_test_sent_total{path="other",way="x"} 20',
      'sluice_test_sent_total{path="quic",way="x"} 2',
    ])
  })

  test('counts continue where a new configuration gives the next instance other label values', () => {
    using own = createMetricsRegistry()
    const metrics = createThreadMetrics()
    const merged = createMergedMetrics(own, () => [metrics])
    const start = (path: string[]) => {
      const shared = { previous: structuredClone(metrics.families), onFamily: metrics.add }
      const registry = createMetricsRegistry({ shared })
      return {
        sent: registry.counter('sluice_test_sent_total', 'x', { labels: { path, way: ['x', 'y'] } }),
        seconds: registry.histogram('sluice_test_seconds', 'x', { labels: { path }, buckets: [1] }),
      }
    }
    const first = start(['a', 'b'])
    first.sent.inc({ path: 'b', way: 'y' }, 5)
    first.seconds.observe(2, { path: 'b' })
    const second = start(['c', 'b'])
    second.sent.inc({ path: 'b', way: 'y' })
    second.sent.inc({ path: 'c', way: 'y' })
    assert.equal(merged.value('sluice_test_sent_total', { path: 'b', way: 'y' }), 6)
    assert.equal(merged.value('sluice_test_sent_total', { path: 'c', way: 'y' }), 1)
    assert.equal(merged.value('sluice_test_seconds', { path: 'b' }), 1)
  })

  test('a counter that is read does not go back when its source begins again', () => {
    using registry = createMetricsRegistry()
    let events = 5
    registry.counter('sluice_test_events_total', 'x', { read: () => events })
    assert.equal(registry.value('sluice_test_events_total'), 5)
    events = 2
    assert.equal(registry.value('sluice_test_events_total'), 7)
    events = 3
    assert.equal(registry.value('sluice_test_events_total'), 8)
  })
})
