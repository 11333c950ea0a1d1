import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Clock } from '../../core/clock.ts'
import { systemClock } from '../process/clock.ts'
import type { MetricsRegistry } from './metrics-registry.ts'

/** The figures are measured over this period; scrapes get those of the last complete one. */
const PERIOD_MS = 10_000
const RESOLUTION_MS = 20
const NANOSECONDS = 1e9
const PERCENTS = { p50: 50, p99: 99, max: 100 } as const
const STATS = Object.keys(PERCENTS)

/**
 * Event loop and heap of the calling thread, under its name. The figures of the process come with them: the delay of its slowest thread, and the heaps of all
 * threads together.
 */
export function addEventLoopMetrics(
  registry: MetricsRegistry,
  thread: string,
  clock: Pick<Clock, 'setRepeating'> = systemClock,
): Disposable {
  const worst = registry.gauge(
    'sluice_process_event_loop_delay_seconds',
    'Event loop delay in the last 10 s, of the slowest thread: median, 99th percentile, maximum.',
    { labels: { stat: STATS }, merge: 'max' },
  )
  const delay = registry.gauge(
    'sluice_thread_event_loop_delay_seconds',
    'Event loop delay of the thread in the last 10 s: median, 99th percentile, maximum.',
    { labels: { thread: [thread], stat: STATS }, merge: 'max' },
  )
  const busy = registry
    .gauge(
      'sluice_thread_event_loop_busy_ratio',
      'Share of the last 10 s in which the event loop of the thread worked.',
      {
        labels: { thread: [thread] },
        merge: 'max',
      },
    )
    .with({ thread })
  const heap = registry
    .gauge('sluice_thread_heap_bytes', 'JavaScript heap of the thread in use, measured every 10 s.', {
      labels: { thread: [thread] },
      merge: 'max',
    })
    .with({ thread })
  registry.gauge('sluice_process_heap_used_bytes', 'JavaScript heap of all threads in use.', {
    read: () => process.memoryUsage().heapUsed,
  })

  const monitor = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  monitor.enable()
  let utilization = performance.eventLoopUtilization()
  const publish = () => {
    for (const [stat, percent] of Object.entries(PERCENTS)) {
      // The monitor measures the full time between its ticks; what exceeds one tick is the delay.
      const seconds = Math.max(0, monitor.percentile(percent) - RESOLUTION_MS * 1e6) / NANOSECONDS
      worst.set(seconds, { stat })
      delay.set(seconds, { thread, stat })
    }
    monitor.reset()
    const now = performance.eventLoopUtilization()
    busy.set(performance.eventLoopUtilization(now, utilization).utilization)
    utilization = now
    heap.set(process.memoryUsage().heapUsed)
  }
  publish()
  const timer = clock.setRepeating(PERIOD_MS, publish)
  timer.unref?.()
  return {
    [Symbol.dispose]() {
      timer.cancel()
      monitor.disable()
    },
  }
}
