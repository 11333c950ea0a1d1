import type { MetricsRegistry } from '../telemetry/metrics-registry.ts'
import { LISTENER_REFUSALS, type ListenerDeps } from './listener.ts'

/** The two callbacks a door passes to its listener. */
export type ListenerMetrics = Required<Pick<ListenerDeps, 'onRefused' | 'onNotAfter'>>

/** What all listeners of a process tell Prometheus, by door. The doors are named once, when the process is composed. */
export function createListenerMetrics<const Listener extends string>(
  registry: MetricsRegistry,
  listeners: readonly Listener[],
): (listener: Listener) => ListenerMetrics {
  const refused = registry.counter({
    name: 'sluice_process_connections_refused_total',
    help: 'Connections turned away before they could speak, by door and limit.',
    labels: { listener: listeners, reason: LISTENER_REFUSALS },
  })
  const notAfter = registry.gauge({
    name: 'sluice_tls_not_after_timestamp_seconds',
    help: 'When the certificate in use at this door ends.',
    labels: { listener: listeners },
  })
  return (listener) => ({
    onRefused: (reason) => refused.inc({ listener, reason }),
    onNotAfter: (notAfterMs) => notAfter.set(notAfterMs / 1000, { listener }),
  })
}
