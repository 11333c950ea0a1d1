import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { MetricsRegistry } from './metrics-registry.ts'

/** Delays are summed up over this long; the figures shown are those of the last whole period. */
const LOOP_PERIOD_MS = 10_000
const NANOSECONDS = 1e9

/** Chosen by hand: the library's own set fails `promtool check metrics` (gauges named `_total`). */
export function addProcessMetrics(registry: MetricsRegistry): Disposable {
  registry.gauge({
    name: 'sluice_process_resident_memory_bytes',
    help: 'Memory of the process held in RAM.',
    read: () => process.memoryUsage.rss(),
  })
  registry.gauge({
    name: 'sluice_process_heap_used_bytes',
    help: 'JavaScript heap in use.',
    read: () => process.memoryUsage().heapUsed,
  })
  registry.counter({
    name: 'sluice_process_cpu_seconds_total',
    help: 'Processor time used, user and system.',
    read() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
  })
  const startedSeconds = Math.round(performance.timeOrigin / 1000)
  registry.gauge({
    name: 'sluice_process_start_timestamp_seconds',
    help: 'When the process started.',
    read: () => startedSeconds,
  })
  registry.gauge({
    name: 'sluice_process_open_descriptors',
    help: 'Open files and sockets; -1 where the system does not tell.',
    read: openDescriptors,
  })
  const limit = descriptorLimit()
  registry.gauge({
    name: 'sluice_process_descriptors_limit',
    help: 'How many files and sockets the process may open; -1 where the system does not tell.',
    read: () => limit,
  })
  return addLoopDelay(registry)
}

function addLoopDelay(registry: MetricsRegistry): Disposable {
  const percents = { p50: 50, p99: 99, max: 100 } as const
  const gauge = registry.gauge({
    name: 'sluice_process_event_loop_delay_seconds',
    help: 'How late timers ran during the last 10 s: median, 99th percentile, worst.',
    labels: { stat: ['p50', 'p99', 'max'] },
  })
  const resolutionMs = 20
  const monitor = monitorEventLoopDelay({ resolution: resolutionMs })
  monitor.enable()
  const publish = () => {
    for (const [stat, percent] of Object.entries(percents)) {
      // The monitor measures the whole gap between its own ticks; what exceeds the tick is delay.
      const delayNs = Math.max(0, monitor.percentile(percent) - resolutionMs * 1e6)
      gauge.set(delayNs / NANOSECONDS, { stat })
    }
    monitor.reset()
  }
  publish()
  const timer = setInterval(publish, LOOP_PERIOD_MS).unref()
  return {
    [Symbol.dispose]() {
      clearInterval(timer)
      monitor.disable()
    },
  }
}

function openDescriptors(): number {
  try {
    // One of them is the listing itself.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return -1
  }
}

/** -1 where the system does not tell, or where no descriptor is left to ask with. */
export function descriptorLimit(): number {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
    return line ? Number(line[1]) : -1
  } catch {
    return -1
  }
}
