import type { Lifecycle } from '../process/lifecycle.ts'
import type { MetricsRegistry } from '../telemetry/metrics-registry.ts'
import { LISTENER_REFUSALS, type ListenerDeps } from './listener.ts'

/** The two callbacks a server passes to its listener. */
export type ListenerMetrics = Required<Pick<ListenerDeps, 'onRefused' | 'onNotAfter'>>

/**
 * Metrics of all listeners of a process, by listener name. The list of names is fixed when the process is composed.
 * A listener whose renewed certificate cannot be loaded is a degraded part of the process.
 */
export function createListenerMetrics<const Listener extends string>(
  registry: MetricsRegistry,
  listeners: readonly Listener[],
  lifecycle?: Pick<Lifecycle, 'degraded' | 'recovered'>,
): (listener: Listener) => ListenerMetrics {
  const refused = registry.counter(
    'sluice_process_connections_refused_total',
    'Connections refused before their first request, by listener and limit.',
    { labels: { listener: listeners, reason: LISTENER_REFUSALS }, former: { labels: { listener: 'door' } } },
  )
  const notAfter = registry.gauge(
    'sluice_tls_not_after_timestamp_seconds',
    'When the certificate in use by this listener expires.',
    { labels: { listener: listeners }, former: { labels: { listener: 'door' } }, merge: 'min' },
  )
  return (listener) => {
    // Shown at zero from the start: Prometheus does not see an increase in a series that begins with its first refusal.
    for (const reason of LISTENER_REFUSALS) refused.inc({ listener, reason }, 0)
    return {
      onRefused: (reason) => refused.inc({ listener, reason }),
      onNotAfter(notAfterMs, failure) {
        notAfter.set(notAfterMs / 1000, { listener })
        const part = `certificate of ${listener}`
        if (failure === undefined) lifecycle?.recovered(part)
        else lifecycle?.degraded(part, `the new files cannot be loaded, the old certificate stays in use: ${failure}`)
      },
    }
  }
}
