import type { AccessSnapshot } from '../../../access/snapshot/snapshot.ts'
import type { Clock } from '../../../core/clock.ts'
import type { HealthReason, HealthState, Lifecycle } from '../../../platform/process/lifecycle.ts'
import { VERSION } from './version.ts'

/** What `sluice status` shows of a running process. */
export type StatusReport = {
  readonly state: HealthState
  readonly reasons: readonly HealthReason[]
  readonly version: string
  readonly pid: number
  readonly uptimeSeconds: number
  readonly store: string
  readonly revision: number
  readonly customers: number
  readonly subscriptions: number
  readonly tokens: number
  readonly services: readonly { readonly name: string; readonly address: string }[]
}

export type StatusSources = {
  readonly lifecycle: Pick<Lifecycle, 'health'>
  readonly clock: Clock
  readonly store: string
  readonly snapshot: () => AccessSnapshot
  readonly services: StatusReport['services']
}

export function createStatusReport(sources: StatusSources): () => StatusReport {
  const { lifecycle, clock, store, services } = sources
  return () => {
    const { state, reasons, startedMs } = lifecycle.health()
    const snapshot = sources.snapshot()
    return {
      state,
      reasons,
      version: VERSION,
      pid: process.pid,
      uptimeSeconds: Math.floor((clock.nowMs() - startedMs) / 1000),
      store,
      revision: snapshot.revision,
      ...snapshot.counts(),
      services,
    }
  }
}
