import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../process/test-wait.ts'
import { addEventLoopMetrics } from './event-loop-metrics.ts'
import { createMergedMetrics, createThreadMetrics } from './merged-metrics.ts'
import { createMetricsRegistry } from './metrics-registry.ts'
import { createProcessRegistry, createThreadRegistry } from './process-metrics.ts'
import { threadSupervisionMetrics } from './thread-supervision-metrics.ts'

test('the delay of the last period is reported for the thread and for the process', async () => {
  using registry = createMetricsRegistry()
  const clock = createManualClock()
  using _added = addEventLoopMetrics(registry, 'gateway-1', clock)
  const delay = (stat: string) =>
    registry.value('sluice_thread_event_loop_delay_seconds', { thread: 'gateway-1', stat })
  assert.equal(delay('max'), 0)
  await until('a blocked event loop is measured', () => {
    const blockedUntil = performance.now() + 100
    while (performance.now() < blockedUntil);
    clock.advance(10_000)
    return (delay('max') ?? 0) > 0.05
  })
  assert.equal(registry.value('sluice_process_event_loop_delay_seconds', { stat: 'max' }), delay('max'))
  assert.ok((registry.value('sluice_thread_event_loop_busy_ratio', { thread: 'gateway-1' }) ?? 0) > 0)
  assert.ok((registry.value('sluice_thread_heap_bytes', { thread: 'gateway-1' }) ?? 0) > 1e6)
})

test('a process reports its slowest thread and all heaps; figures of the process itself are there once', async () => {
  using own = createProcessRegistry({ build: { version: '1' } })
  const metrics = createThreadMetrics()
  using registry = createThreadRegistry({ thread: 'gateway-1', shared: { onFamily: metrics.add } })
  const merged = createMergedMetrics(own, () => [metrics])
  const name = 'sluice_process_event_loop_delay_seconds'
  assert.deepEqual(merged.describe().find((one) => one.name === name)?.merge, 'max')
  registry.refresh()
  const [both = 0, heap = 0] = [merged, own].map((one) => one.value('sluice_process_heap_used_bytes'))
  assert.ok(both > 1.5 * heap, `${both} ${heap}`)
  const text = await merged.text()
  for (const thread of ['main', 'gateway-1'])
    assert.match(text, new RegExp(`^sluice_thread_heap_bytes\\{thread="${thread}"\\} \\d{6,}$`, 'm'))
  assert.equal(registry.value('sluice_process_resident_memory_bytes'), undefined)
  assert.equal(registry.value('sluice_build_info'), undefined)
  assert.equal(merged.value('sluice_build_info', { version: '1', node: process.version }), 1)
})

test('threads are down until they have started; each restart counts', async () => {
  using registry = createMetricsRegistry()
  const names = ['main', ...Array.from({ length: 40 }, (_, at) => `gateway-${at + 1}`)]
  const threads = threadSupervisionMetrics(registry, names)
  const up = (thread: string) => registry.value('sluice_thread_up', { thread })
  assert.deepEqual(['main', 'gateway-1'].map(up), [1, 0])
  assert.match(await registry.text(), /^sluice_thread_restarts_total\{thread="gateway-40"\} 0$/m)
  threads.setUp('gateway-1', true)
  assert.equal(up('gateway-1'), 1)
  threads.setUp('gateway-1', false)
  threads.restarted('gateway-1')
  assert.equal(up('gateway-1'), 0)
  assert.equal(registry.value('sluice_thread_restarts_total', { thread: 'gateway-1' }), 1)
})
