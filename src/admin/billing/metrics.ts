import type { MetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'

export type BillingReadings = {
  counts(): { readonly sent: number; readonly dead: number; readonly failures: number }
  figures(): { readonly waiting: number; readonly dead: number; readonly behindMs: number }
}

/** Registered by the main thread where a billing system is configured. */
export function billingMetrics(registry: MetricsRegistry, read: BillingReadings = NO_READINGS): void {
  const counter = (name: string, help: string, value: () => number) => registry.counter(name, help, { read: value })
  const gauge = (name: string, help: string, value: () => number) =>
    registry.gauge(name, help, { read: value, merge: 'max' })
  counter('sluice_billing_sent_total', 'Events that the billing system accepted.', () => read.counts().sent)
  counter('sluice_billing_dead_total', 'Events that became dead letters.', () => read.counts().dead)
  counter(
    'sluice_billing_failures_total',
    'Attempts that the billing system did not accept. They are repeated.',
    () => read.counts().failures,
  )
  gauge('sluice_billing_waiting_events', 'Events that wait to be sent.', () => read.figures().waiting)
  gauge(
    'sluice_billing_dead_letters',
    'Events that are not sent again until the operator decides.',
    () => read.figures().dead,
  )
  gauge(
    'sluice_billing_behind_seconds',
    'Time since the oldest hour whose usage is not sent completely could be sent.',
    () => read.figures().behindMs / 1000,
  )
}

const NO_READINGS: BillingReadings = {
  counts: () => ({ sent: 0, dead: 0, failures: 0 }),
  figures: () => ({ waiting: 0, dead: 0, behindMs: 0 }),
}
