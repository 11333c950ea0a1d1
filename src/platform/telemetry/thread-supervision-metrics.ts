import type { MetricsRegistry } from './metrics-registry.ts'

/** What the supervisor reports about a thread. */
export type ThreadSupervisionMetrics = {
  setUp(thread: string, isUp: boolean): void
  restarted(thread: string): void
}

/** Metrics of the main thread about all threads. The names are known when the process is composed; `main` is one of them. */
export function threadSupervisionMetrics(
  registry: MetricsRegistry,
  threads: readonly string[],
): ThreadSupervisionMetrics {
  const up = registry.gauge('sluice_thread_up', '1 while the thread runs, 0 from its end to its next start.', {
    labels: { thread: threads },
    merge: 'max',
  })
  const restarts = registry.counter('sluice_thread_restarts_total', 'Starts of the thread after it had ended.', {
    labels: { thread: threads },
  })
  for (const thread of threads) {
    up.set(thread === MAIN_THREAD ? 1 : 0, { thread })
    // Shown at zero from the start, also where there are many threads: Prometheus sees no increase in a series that begins with its first restart.
    restarts.inc({ thread }, 0)
  }
  return {
    setUp: (thread, isUp) => up.set(isUp ? 1 : 0, { thread }),
    restarted: (thread) => restarts.inc({ thread }),
  }
}

export const MAIN_THREAD = 'main'
