import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChangingLabel } from './changing-label.ts'
import { createMetricsRegistry } from './metrics-registry.ts'

test('series come and go with their label value, and a reused slot starts at zero', async () => {
  const node = new ChangingLabel(2)
  using registry = createMetricsRegistry()
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

test('a value stays while it has a user, and a value without a free slot counts as other', () => {
  const label = new ChangingLabel(1)
  label.acquire('a')
  label.acquire('a')
  label.release('a')
  assert.equal(label.slotOf('a'), 0)
  label.acquire('b')
  assert.equal(label.slotOf('b'), -1)
  label.release('b')
  label.release('a')
  assert.deepEqual(label.values, [])
  label.acquire('b')
  assert.equal(label.slotOf('b'), 0)
})
