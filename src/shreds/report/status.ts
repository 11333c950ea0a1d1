import type { GrantedSchedule } from '../../platform/native/thread-schedule.ts'
import type { LeaseDecisions, LeaseRefusal } from '../destinations/leases.ts'
import { keyOf } from '../relay/fan-out.ts'
import {
  type DestinationState,
  type Lease,
  newRelayCounts,
  type RelayCounts,
  type RelayReport,
} from '../relay/protocol.ts'
import type { RelayReady } from '../relay/relay-in-worker.ts'
import type { Alarm } from './alarms.ts'

/** The `shreds` response of the control socket. */
export type ShredsStatus = {
  readonly engine: string
  readonly address: { readonly host: string; readonly port: number }
  readonly receiveBufferBytes: number
  /** Priority and processor of the relay thread, and what was not permitted. */
  readonly schedule: GrantedSchedule
  readonly newestSlot: number | null
  readonly version: number | null
  /** Packets per second over about the last ten seconds, in the order of `shreds.sources`. */
  readonly sourceRates: readonly number[]
  /** Since the start. */
  readonly counts: RelayCounts
  readonly overruns: number
  readonly alarms: readonly Alarm[]
  readonly destinations: readonly {
    readonly subscriptionId: string
    readonly state: DestinationState
    /** The value of the metric label `destination`; null for a destination that shares the label `more`. */
    readonly destinationIndex: number | null
    readonly packets: number
    readonly bytes: number
    readonly unsent: number
    readonly lastFault: string | null
  }[]
  readonly refused: readonly { readonly subscriptionId: string; readonly reason: LeaseRefusal }[]
}

type StatusInput = {
  readonly served: readonly Lease[]
  readonly refusals: LeaseDecisions['refusals']
  readonly alarms: readonly Alarm[]
  destinationIndexOf(subscriptionId: string): number | undefined
  totals(subscriptionId: string): { packets: number; bytes: number; unsent: number }
}

/** Reports over which the source rates are averaged: ten seconds of them. */
const REPORTS_MAX = 50
const REPORT_SECONDS = 0.2

export function createShredsStatus() {
  const counts = newRelayCounts()
  const recent: (readonly number[])[] = []
  let ready: RelayReady | undefined
  let last: RelayReport | undefined

  return {
    readings: {
      newestSlot: (): number | undefined => last?.newestSlot,
      receiveBufferBytes: (): number => ready?.receiveBufferBytes ?? 0,
    },
    setReady(message: RelayReady): void {
      ready = message
    },
    record(report: RelayReport): void {
      last = report
      recent.push(report.perSource)
      if (recent.length > REPORTS_MAX) recent.shift()
      addCounts(counts, report.counts)
    },
    read({ served, refusals, alarms, destinationIndexOf, totals }: StatusInput): ShredsStatus {
      const seconds = Math.max(1, recent.length) * REPORT_SECONDS
      const sourceCount = recent.at(-1)?.length ?? 0
      const states = new Map(last?.destinations.map((each) => [keyOf(each.lease), each]))
      return {
        engine: ready?.engine ?? '',
        address: ready?.address ?? { host: '', port: 0 },
        receiveBufferBytes: ready?.receiveBufferBytes ?? 0,
        schedule: ready?.schedule ?? { priority: 'normal', core: null, refused: [] },
        newestSlot: last?.newestSlot ?? null,
        version: last?.version ?? null,
        sourceRates: Array.from({ length: sourceCount }, (_, at) =>
          Math.round(recent.reduce((sum, each) => sum + (each[at] ?? 0), 0) / seconds),
        ),
        counts: structuredClone(counts),
        overruns: last?.overruns ?? 0,
        alarms,
        destinations: served.map((lease) => {
          const known = states.get(keyOf(lease))
          return {
            subscriptionId: lease.subscriptionId,
            state: known?.state ?? 'sending',
            destinationIndex: destinationIndexOf(lease.subscriptionId) ?? null,
            ...totals(lease.subscriptionId),
            lastFault: known?.lastFault ?? null,
          }
        }),
        refused: [...refusals].map(([subscriptionId, reason]) => ({ subscriptionId, reason })),
      }
    },
  }
}

function addCounts(sum: RelayCounts, more: RelayCounts): void {
  sum.received += more.received
  sum.relayed += more.relayed
  sum.unchecked += more.unchecked
  sum.checkedHere += more.checkedHere
  sum.behind += more.behind
  for (const [reason, count] of entriesOf(more.dropped)) sum.dropped[reason] += count
  for (const [fault, count] of entriesOf(more.faults)) sum.faults[fault] += count
}

function entriesOf<Key extends string>(record: Record<Key, number>): [Key, number][] {
  return Object.entries(record) as [Key, number][]
}
