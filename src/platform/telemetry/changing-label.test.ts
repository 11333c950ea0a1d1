import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ChangingLabel } from './changing-label.ts'
import { createMergedMetrics, createThreadMetrics, type ThreadMetrics } from './merged-metrics.ts'
import { createMetricsRegistry } from './metrics-registry.ts'

test('series come and go with their label value, and a reused index starts at zero', async () => {
  using registry = createMetricsRegistry()
  const node = registry.changingLabel('node', 2)
  const calls = registry.counter('sluice_x_total', 'x', { labels: { node, result: ['ok', 'bad'] } })
  const seconds = registry.histogram('sluice_x_seconds', 'x', { labels: { node }, buckets: [1] })
  node.acquire('a')
  node.acquire('b')
  calls.inc({ node: 'a', result: 'ok' }, 3)
  calls.inc({ node: 'b', result: 'bad' })
  seconds.observe(0.5, { node: 'a' })
  assert.equal(registry.value('sluice_x_total', { node: 'a', result: 'ok' }), 3)

  node.release('a')
  const text = await registry.text()
  assert.ok(!text.includes('node="a"'))
  assert.match(text, /sluice_x_total\{node="b",result="bad"\} 1/)
  calls.inc({ node: 'a', result: 'ok' })
  assert.equal(registry.value('sluice_x_total', { node: 'other', result: 'ok' }), 1)

  node.acquire('c')
  assert.equal(registry.value('sluice_x_total', { node: 'c', result: 'ok' }), undefined)
  calls.inc({ node: 'c', result: 'ok' })
  seconds.observe(2, { node: 'c' })
  assert.match(await registry.text(), /sluice_x_total\{node="c",result="ok"\} 1/)
  assert.equal(registry.value('sluice_x_seconds', { node: 'c' }), 1)
})

test('a value stays while it has a user, and a value without a free index counts as other', () => {
  const label = new ChangingLabel(1)
  label.acquire('a')
  label.acquire('a')
  label.release('a')
  assert.equal(label.indexOf('a'), 0)
  label.acquire('b')
  assert.equal(label.indexOf('b'), -1)
  label.release('b')
  label.release('a')
  assert.equal(label.names.nameAt(0), undefined)
  label.acquire('b')
  assert.equal(label.indexOf('b'), 0)
})

describe('a label in memory that threads share', () => {
  const start = (metrics: ThreadMetrics, max = 2) => {
    const shared = { previous: structuredClone(metrics.families), onFamily: metrics.add }
    const registry = createMetricsRegistry({ shared })
    const node = registry.changingLabel('node', max)
    const calls = registry.counter('sluice_x_total', 'x', { labels: { node, result: ['ok'] } })
    return { registry, node, inc: (name: string) => calls.inc({ node: name, result: 'ok' }) }
  }
  const setUp = () => {
    const metrics = createThreadMetrics()
    const merged = createMergedMetrics(createMetricsRegistry(), () => [metrics])
    const shown = async () =>
      Object.fromEntries(
        [...(await merged.text()).matchAll(/node="(\S+)",result="ok"\} (\S+)/g)].map((at) => at.slice(1)),
      )
    return { metrics, merged, shown }
  }

  test('counts of the next instance go on under the same name; names that it does not use end with its first refresh', async () => {
    const { metrics, merged, shown } = setUp()
    const first = start(metrics)
    for (const name of ['a', 'b']) {
      first.node.acquire(name)
      first.inc(name)
    }
    const second = start(metrics)
    assert.deepEqual(await shown(), { a: '1', b: '1' })
    second.node.acquire('b')
    second.inc('b')
    assert.deepEqual(await shown(), { a: '1', b: '2' })
    second.registry.refresh()
    assert.deepEqual(await shown(), { b: '2' })
    second.node.acquire('c')
    second.inc('c')
    assert.deepEqual(await shown(), { b: '2', c: '1' })
    assert.deepEqual(merged.describe()[0]?.labels['node'], ['c', 'b', 'other'])
  })

  test('a new name takes the index of one that only the former instance used, also before its metric is registered', async () => {
    const { metrics, shown } = setUp()
    const first = start(metrics, 1)
    first.node.acquire('a')
    first.inc('a')
    const shared = { previous: structuredClone(metrics.families), onFamily: metrics.add }
    const registry = createMetricsRegistry({ shared })
    const node = registry.changingLabel('node', 1)
    node.acquire('b')
    assert.deepEqual(await shown(), {})
    const calls = registry.counter('sluice_x_total', 'x', { labels: { node, result: ['ok'] } })
    assert.deepEqual(await shown(), {})
    calls.inc({ node: 'b', result: 'ok' })
    assert.deepEqual(await shown(), { b: '1' })
  })

  test('during a change, also one that a thread has died in, readers show what they read before', async () => {
    const { metrics, merged, shown } = setUp()
    const first = start(metrics)
    first.node.acquire('a')
    first.inc('a')
    assert.deepEqual(await shown(), { a: '1' })
    const die = () => {
      throw new Error('ended')
    }
    first.node.onAssigned(die)
    assert.throws(() => first.node.acquire('b'), /ended/)
    first.inc('a')
    assert.deepEqual(await shown(), { a: '1' })
    assert.equal(merged.value('sluice_x_total', { node: 'a', result: 'ok' }), 1)
    const second = start(metrics)
    assert.deepEqual(await shown(), { a: '2' })
    second.node.acquire('a')
    second.inc('a')
    assert.deepEqual(await shown(), { a: '3' })
    assert.equal(merged.value('sluice_x_total', { node: 'a', result: 'ok' }), 3)
  })

  test('the sum of one name is over the threads that have it, at whichever index', async () => {
    const metrics = [createThreadMetrics(), createThreadMetrics()] as const
    const merged = createMergedMetrics(createMetricsRegistry(), () => metrics)
    for (const [at, names] of [
      ['a', 'b'],
      ['b', 'c'],
    ].entries()) {
      const one = start(metrics[at] as ThreadMetrics)
      for (const name of names) {
        one.node.acquire(name)
        one.inc(name)
      }
    }
    const valueOf = (node: string) => merged.value('sluice_x_total', { node, result: 'ok' })
    assert.deepEqual(['a', 'b', 'c'].map(valueOf), [1, 2, 1])
    assert.match(await merged.text(), /node="b",result="ok"\} 2/)
  })

  test('a name that is too long for the memory counts as other', () => {
    const label = new ChangingLabel(1)
    label.acquire('x'.repeat(65))
    assert.equal(label.indexOf('x'.repeat(65)), -1)
    label.acquire('é'.repeat(32))
    assert.equal(label.indexOf('é'.repeat(32)), 0)
    assert.equal(label.names.nameAt(0), 'é'.repeat(32))
  })
})
