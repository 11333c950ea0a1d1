import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'

export type ProcessHealthReadings = {
  /** Parts that work with a fault. */
  degraded(): number
  /** Unix ms; undefined where no backup is recorded. */
  lastBackupMs(): number | undefined
}

/** What `sluice status` and the notices show, for alerts. */
export function processHealthMetrics(registry: MetricsRegistry, read: ProcessHealthReadings): void {
  registry.gauge('sluice_process_degraded_parts', 'Parts that work with a fault; `sluice status` names them.', {
    read: read.degraded,
  })
  registry.gauge(
    'sluice_backup_last_timestamp_seconds',
    'When the last backup was made with `sluice backup` on this state folder; 0 where none is recorded.',
    { read: () => (read.lastBackupMs() ?? 0) / 1000, merge: 'max' },
  )
}
