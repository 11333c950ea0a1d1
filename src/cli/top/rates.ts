import { type BucketCounts, bucketQuantile } from '../../platform/telemetry/bucket-quantile.ts'
import type { TopReport } from '../../processes/compose/top/report.ts'

/** What `sluice top` shows and prints with `--json`: rates over the time between two reports. */
export type TopView = {
  readonly status: TopReport['status']
  readonly process: {
    readonly memoryBytes: number
    /** 1 is one full CPU core. */
    readonly cpuRatio: number
    readonly loopDelaySeconds: number
    readonly descriptors: number
  }
  readonly calls: Readonly<Record<(typeof INTERFACES)[number], number>>
  readonly unitsPerSecond: number
  readonly streams: TopReport['streams']
  readonly out: {
    readonly messagesPerSecond: number
    readonly bytesPerSecond: number
    readonly gapsReported: number
    readonly slow: number
  }
  readonly shreds:
    | ({ readonly receivedPerSecond: number; readonly sentPerSecond: number; readonly droppedPerSecond: number } & Pick<
        NonNullable<TopReport['shreds']>,
        'destinations' | 'newestSlot' | 'alarms'
      > & {
          /** The delay of the shreds between the two reports; undefined where there were none. */
          readonly delayP50Seconds: number | undefined
          readonly delayP99Seconds: number | undefined
        })
    | null
  readonly sender:
    | ({
        readonly acceptedPerSecond: number
        readonly landedPerSecond: number
        readonly refusedPerSecond: number
      } & NonNullable<TopReport['sender']>)
    | null
  readonly indexer:
    | (NonNullable<TopReport['indexer']> & {
        /** Undefined while the tip of the chain is unknown. */
        readonly lagSlots: number | undefined
        readonly lagMs: number | undefined
        readonly blocksPerSecond: number
        readonly queriesPerSecond: number
      })
    | null
  readonly execution: (NonNullable<TopReport['execution']> & { readonly framesPerSecond: number }) | null
  readonly upstreams: TopReport['upstreams']
  readonly subscriptions: readonly {
    readonly name: string
    readonly customer: string
    readonly plan: string
    readonly callsPerSecond: number
    readonly unitsPerSecond: number
    readonly refusedPerSecond: number
    readonly bytesPerSecond: number
    readonly streams: number
  }[]
  readonly refusals: readonly {
    readonly part: string
    readonly reason: string
    readonly perSecond: number
    readonly count: number
  }[]
}

const INTERFACES = ['rpc', 'ws', 'grpc', 'indexer', 'shreds'] as const

/** Sorted by rate. After a restart between the reports all rates are 0. */
export function viewOf(before: TopReport, now: TopReport): TopView {
  const isSame = before.status.pid === now.status.pid && now.atMs > before.atMs
  const seconds = isSame ? (now.atMs - before.atMs) / 1000 : 1
  const rate = (was: number | undefined, is: number) => {
    const from = isSame && was !== undefined ? was : is
    return Math.max(0, round((is - from) / seconds))
  }
  const { shreds, sender, indexer, execution } = now
  const subscriptionsBefore = new Map(before.subscriptions.map((row) => [row.id, row]))
  const refusalsBefore = new Map(before.refusals.map(({ part, reason, count }) => [`${part} ${reason}`, count]))
  return {
    status: now.status,
    process: {
      memoryBytes: now.process.memoryBytes,
      cpuRatio: rate(before.process.cpuSeconds, now.process.cpuSeconds),
      loopDelaySeconds: now.process.loopDelaySeconds,
      descriptors: now.process.descriptors,
    },
    calls: Object.fromEntries(
      INTERFACES.map((name) => [name, rate(before.calls[name] ?? 0, now.calls[name] ?? 0)]),
    ) as TopView['calls'],
    unitsPerSecond: rate(before.units, now.units),
    streams: now.streams,
    out: {
      messagesPerSecond: rate(before.out.messages, now.out.messages),
      bytesPerSecond: rate(before.out.bytes, now.out.bytes),
      gapsReported: now.out.gapsReported,
      slow: now.out.slow,
    },
    shreds: shreds && {
      receivedPerSecond: rate(before.shreds?.received, shreds.received),
      sentPerSecond: rate(before.shreds?.sent, shreds.sent),
      droppedPerSecond: rate(before.shreds?.dropped, shreds.dropped),
      destinations: shreds.destinations,
      newestSlot: shreds.newestSlot,
      alarms: shreds.alarms,
      ...delaysOf(isSame ? before.shreds?.delays : undefined, shreds.delays),
    },
    sender: sender && {
      acceptedPerSecond: rate(before.sender?.accepted, sender.accepted),
      landedPerSecond: rate(before.sender?.landed, sender.landed),
      refusedPerSecond: rate(before.sender?.refused, sender.refused),
      ...sender,
    },
    indexer: indexer && {
      ...indexer,
      ...lagOf(indexer, now.status.slotLength?.ms),
      blocksPerSecond: rate(before.indexer?.blocks, indexer.blocks),
      queriesPerSecond: rate(before.indexer?.queries, indexer.queries),
    },
    execution: execution && { ...execution, framesPerSecond: rate(before.execution?.frames, execution.frames) },
    upstreams: now.upstreams,
    subscriptions: now.subscriptions
      .map(({ id, name, customer, plan, streams, calls, units, refused, bytes = 0 }) => {
        // New in this report: it had no calls before.
        const was = subscriptionsBefore.get(id) ?? { calls: 0, units: 0, refused: 0, bytes: 0 }
        return {
          name,
          customer,
          plan,
          callsPerSecond: rate(was.calls, calls),
          unitsPerSecond: rate(was.units, units),
          refusedPerSecond: rate(was.refused, refused),
          bytesPerSecond: rate(was.bytes ?? 0, bytes),
          streams,
        }
      })
      .toSorted((a, b) => b.callsPerSecond - a.callsPerSecond || a.name.localeCompare(b.name)),
    refusals: now.refusals
      .map(({ part, reason, count }) => ({
        part,
        reason,
        perSecond: rate(refusalsBefore.get(`${part} ${reason}`) ?? 0, count),
        count,
      }))
      .toSorted((a, b) => b.perSecond - a.perSecond || b.count - a.count),
  }
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}

/** A process of an earlier version does not report the length of a slot. */
function lagOf(
  { tipSlot, headSlot }: NonNullable<TopReport['indexer']>,
  slotMs = SLOT_MS_UNKNOWN,
): { readonly lagSlots: number | undefined; readonly lagMs: number | undefined } {
  if (tipSlot === null) return { lagSlots: undefined, lagMs: undefined }
  const lagSlots = Math.max(0, tipSlot - headSlot)
  return { lagSlots, lagMs: lagSlots * slotMs }
}

const SLOT_MS_UNKNOWN = 400

/** Quantiles of what was counted between two reports; since the start where there is no report before. */
function delaysOf(before: BucketCounts | undefined, { bounds, counts }: BucketCounts) {
  const fresh = { bounds, counts: counts.map((count, at) => count - (before?.counts[at] ?? 0)) }
  return { delayP50Seconds: bucketQuantile(0.5, fresh), delayP99Seconds: bucketQuantile(0.99, fresh) }
}
