import type { EndingReport } from '../../../access/ending.ts'
import type { AccessSnapshot } from '../../../access/snapshot/snapshot.ts'
import type { UsageState } from '../../../access/usage/writer.ts'
import type { Clock } from '../../../core/clock.ts'
import type { HealthReason, HealthState, Lifecycle } from '../../../platform/process/lifecycle.ts'
import type { SlotLength } from '../../../upstreams/slot-length.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
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
  readonly services: readonly { readonly name: string; readonly address: string; readonly note?: string }[]
  /** Services that are enabled but do not run. A process of an earlier version does not report them. */
  readonly off?: readonly { readonly name: string; readonly reason: string }[]
  /** The threads of services, in the order of their index. */
  readonly threads?: readonly ThreadState[]
  /** Usage rows that are not in the store yet, those of them on the disk, and those dropped since the start. */
  readonly usage?: Pick<UsageState, 'waitingRows' | 'spooledRows' | 'lostRows'>
  /** Subscriptions that end within seven days. */
  readonly ending?: EndingReport
  /** Shared nodes, and those of them that do not take calls. */
  readonly nodes?: {
    readonly count: number
    readonly failing: readonly { readonly name: string; readonly reason: string }[]
  }
  /** Length of a slot of the chain, in a process that learns it from its nodes. */
  readonly slotLength?: { readonly ms: number; readonly isLearned: boolean }
}

export type ThreadState = { readonly name: string; readonly isRunning: boolean; readonly restarts: number }

export type StatusSources = {
  readonly lifecycle: Pick<Lifecycle, 'health'>
  readonly clock: Clock
  readonly store: string
  readonly snapshot: () => AccessSnapshot
  readonly services: StatusReport['services']
  readonly off: NonNullable<StatusReport['off']>
  readonly usage?: () => UsageState | undefined
  readonly ending?: () => EndingReport | undefined
  readonly nodes?: () => readonly NodeStatus[]
  readonly threads?: () => readonly ThreadState[]
  readonly slotLength?: SlotLength | undefined
}

export function createStatusReport(sources: StatusSources): () => StatusReport {
  const { lifecycle, clock, store, services, off, slotLength } = sources
  return () => {
    const { state, reasons, startedMs } = lifecycle.health()
    const snapshot = sources.snapshot()
    const usage = sources.usage?.()
    const ending = sources.ending?.()
    const threads = sources.threads?.() ?? []
    const shared = sources.nodes?.().filter(({ owner }) => owner === null) ?? []
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
      off,
      ...(threads.length > 0 && {
        threads: threads.map(({ name, isRunning, restarts }) => ({ name, isRunning, restarts })),
      }),
      ...(ending && { ending }),
      ...(shared.length > 0 && { nodes: { count: shared.length, failing: failingOf(shared) } }),
      ...(slotLength && { slotLength: { ms: Math.round(slotLength.ms()), isLearned: slotLength.isLearned } }),
      ...(usage && {
        usage: { waitingRows: usage.waitingRows, spooledRows: usage.spooledRows, lostRows: usage.lostRows },
      }),
    }
  }
}

function failingOf(nodes: readonly NodeStatus[]): { name: string; reason: string }[] {
  return nodes.filter(({ state }) => state === 'failing').map(({ name, reason }) => ({ name, reason }))
}
