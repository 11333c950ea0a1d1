import { readdirSync, readFileSync } from 'node:fs'
import { addEventLoopMetrics } from './event-loop-metrics.ts'
import { createMetricsRegistry, type MetricsRegistry, type MetricsRegistryOptions } from './metrics-registry.ts'
import { loadMetricsPrinter } from './metrics-text.ts'
import { MAIN_THREAD } from './thread-supervision-metrics.ts'

/** The registry of a process that serves its metrics; it also has those of the process itself. */
export function createProcessRegistry(options: Pick<MetricsRegistryOptions, 'build'> = {}): MetricsRegistry {
  void loadMetricsPrinter()
  const registry = createMetricsRegistry(options)
  addProcessMetrics(registry)
  return withEventLoop(registry, MAIN_THREAD)
}

/** The registry of a thread whose metrics the main thread serves. What is one for the process is not in it. */
export function createThreadRegistry({
  thread,
  shared,
}: Required<Pick<MetricsRegistryOptions, 'shared'>> & {
  readonly thread: string
}): MetricsRegistry {
  return withEventLoop(createMetricsRegistry({ shared }), thread)
}

function withEventLoop(registry: MetricsRegistry, thread: string): MetricsRegistry {
  const added = addEventLoopMetrics(registry, thread)
  return {
    ...registry,
    [Symbol.dispose]() {
      added[Symbol.dispose]()
      registry[Symbol.dispose]()
    },
  }
}

/** Not prom-client's default metrics: they fail `promtool check metrics` (gauges named `_total`). */
function addProcessMetrics(registry: MetricsRegistry): void {
  const gauge = (name: string, help: string, read: () => number) => registry.gauge(name, help, { read, merge: 'max' })
  gauge('sluice_process_resident_memory_bytes', 'Resident memory of the process.', () => process.memoryUsage.rss())
  registry.counter('sluice_process_cpu_seconds_total', 'CPU time, user and system.', {
    read() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
  })
  const startedSeconds = Math.round(performance.timeOrigin / 1000)
  gauge('sluice_process_start_timestamp_seconds', 'Start time of the process.', () => startedSeconds)
  gauge('sluice_process_open_descriptors', 'Open files and sockets; -1 if unknown.', openDescriptors)
  const limit = descriptorLimit()
  gauge('sluice_process_descriptors_limit', 'Limit of open files and sockets; -1 if unknown.', () => limit)
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
