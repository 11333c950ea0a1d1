import type { MetricsRegistry } from '../telemetry/metrics-registry.ts'
import { LISTENER_REFUSALS, type ListenerDeps } from './listener.ts'

/** The two callbacks a door passes to its listener. */
export type DoorMetrics = Required<Pick<ListenerDeps, 'onRefused' | 'onNotAfter'>>

/** What all listeners of a process tell Prometheus, by door. The doors are named once, when the process is composed. */
export function createListenerMetrics<const Door extends string>(
  registry: MetricsRegistry,
  doors: readonly Door[],
): (door: Door) => DoorMetrics {
  const refused = registry.counter({
    name: 'sluice_process_connections_refused_total',
    help: 'Connections turned away before they could speak, by door and limit.',
    labels: { door: doors, reason: LISTENER_REFUSALS },
  })
  const notAfter = registry.gauge({
    name: 'sluice_tls_not_after_timestamp_seconds',
    help: 'When the certificate in use at this door ends.',
    labels: { door: doors },
  })
  return (door) => ({
    onRefused: (reason) => refused.inc({ door, reason }),
    onNotAfter: (notAfterMs) => notAfter.set(notAfterMs / 1000, { door }),
  })
}
