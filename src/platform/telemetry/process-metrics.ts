import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import {
  createMetricsRegistry,
  loadMetricsPrinter,
  type MetricsRegistry,
  type MetricsRegistryOptions,
} from './metrics-registry.ts'

/** The event-loop delay is measured over this period; scrapes get the values of the last complete one. */
const LOOP_PERIOD_MS = 10_000
const NANOSECONDS = 1e9

/** The registry of a process that serves its metrics; it also has those of the process itself. */
export function createProcessRegistry(options: MetricsRegistryOptions = {}): MetricsRegistry {
  void loadMetricsPrinter()
  const registry = createMetricsRegistry(options)
  const added = addProcessMetrics(registry)
  return {
    ...registry,
    [Symbol.dispose]() {
      added[Symbol.dispose]()
      registry[Symbol.dispose]()
    },
  }
}

/** Not prom-client's default metrics: they fail `promtool check metrics` (gauges named `_total`). */
function addProcessMetrics(registry: MetricsRegistry): Disposable {
  registry.gauge('sluice_process_resident_memory_bytes', 'Resident memory of the process.', {
    read: () => process.memoryUsage.rss(),
  })
  registry.gauge('sluice_process_heap_used_bytes', 'JavaScript heap in use.', {
    read: () => process.memoryUsage().heapUsed,
  })
  registry.counter('sluice_process_cpu_seconds_total', 'CPU time, user and system.', {
    read() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
  })
  const startedSeconds = Math.round(performance.timeOrigin / 1000)
  registry.gauge('sluice_process_start_timestamp_seconds', 'Start time of the process.', { read: () => startedSeconds })
  registry.gauge('sluice_process_open_descriptors', 'Open files and sockets; -1 if unknown.', { read: openDescriptors })
  const limit = descriptorLimit()
  registry.gauge('sluice_process_descriptors_limit', 'Limit of open files and sockets; -1 if unknown.', {
    read: () => limit,
  })
  return addLoopDelay(registry)
}

function addLoopDelay(registry: MetricsRegistry): Disposable {
  const percents = { p50: 50, p99: 99, max: 100 } as const
  const gauge = registry.gauge(
    'sluice_process_event_loop_delay_seconds',
    'Event loop delay in the last 10 s: median, 99th percentile, maximum.',
    { labels: { stat: ['p50', 'p99', 'max'] } },
  )
  const resolutionMs = 20
  const monitor = monitorEventLoopDelay({ resolution: resolutionMs })
  monitor.enable()
  const publish = () => {
    for (const [stat, percent] of Object.entries(percents)) {
      // The monitor measures the full time between its ticks; what exceeds one tick is the delay.
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
    // One descriptor is that of the listing itself.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return -1
  }
}

/** -1 where /proc is not available, or no descriptor is left to read it. */
export function descriptorLimit(): number {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))
    return line ? Number(line[1]) : -1
  } catch {
    return -1
  }
}
