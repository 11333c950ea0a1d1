import type { AccessSnapshot } from '../../../access/snapshot/snapshot.ts'
import { LIMIT_LABELS } from '../../../contract/limits.ts'
import type { Clock } from '../../../core/clock.ts'
import type { BucketCounts } from '../../../platform/telemetry/bucket-quantile.ts'
import type { MetricsView } from '../../../platform/telemetry/metrics-view.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { StatusReport } from '../process/status.ts'
import { createMetricSum, type MetricSum } from './metric-sum.ts'
import type { UsageWatch } from './usage-watch.ts'

/** The response to `sluice top`. Counts are since the start; the client computes rates from two reports. */
export type TopReport = {
  /** Monotonic time of the process, for rates. */
  readonly atMs: number
  readonly status: StatusReport
  readonly process: {
    readonly memoryBytes: number
    readonly cpuSeconds: number
    readonly loopDelaySeconds: number
    readonly descriptors: number
  }
  /** Calls admitted, by interface. */
  readonly calls: Readonly<Record<string, number>>
  readonly units: number
  readonly streams: { readonly ws: number; readonly grpc: number; readonly wsSubscriptions: number }
  readonly out: {
    readonly messages: number
    readonly bytes: number
    readonly gapsReported: number
    readonly slow: number
  }
  readonly shreds: ShredFigures | null
  readonly sender: SenderFigures | null
  readonly indexer: IndexerFigures | null
  readonly execution: ExecutionFigures | null
  readonly upstreams: readonly NodeStatus[]
  readonly subscriptions: readonly SubscriptionFigures[]
  readonly refusals: readonly Refusal[]
}

export type ShredFigures = {
  readonly received: number
  readonly sent: number
  readonly dropped: number
  readonly destinations: number
  readonly newestSlot: number
  /** Seconds from the receipt of a shred until it was sent to all destinations. */
  readonly delays: BucketCounts
  readonly alarms: readonly string[]
}
export type SenderFigures = {
  readonly accepted: number
  readonly refused: number
  readonly landed: number
  readonly expired: number
  readonly pending: number
  readonly tipLamports: number
}
export type IndexerFigures = {
  readonly headSlot: number
  /** Null while it is unknown. */
  readonly tipSlot: number | null
  readonly blocks: number
  readonly queries: number
  readonly running: number
}
export type ExecutionFigures = {
  readonly tps: number
  readonly blockNumber: number
  readonly ageSeconds: number
  readonly clients: number
  readonly frames: number
  readonly lagEvents: number
  readonly gaps: number
  /** The data is made up by the simulated chain. */
  readonly simulated: boolean
}
export type SubscriptionFigures = {
  readonly id: string
  readonly name: string
  readonly customer: string
  readonly plan: string
  readonly calls: number
  readonly units: number
  readonly refused: number
  /** Payload bytes sent. Absent in the report of a process of an earlier version. */
  readonly bytes?: number
  readonly streams: number
}
/** One cause of refusals: the module and its limit or reason. */
export type Refusal = { readonly part: string; readonly reason: string; readonly count: number }

export type TopDeps = {
  /** Those of the whole process. */
  readonly registry: Pick<MetricsView, 'describe' | 'value' | 'buckets'>
  readonly clock: Clock
  readonly usage: Pick<UsageWatch, 'active'>
  readonly snapshot: () => AccessSnapshot
  readonly status: () => StatusReport
  readonly upstreams: () => readonly NodeStatus[]
  /** Open connections of a subscription. */
  readonly streamsOf: (subscriptionId: string) => number
  readonly runs: {
    readonly shreds: boolean
    readonly sender: boolean
    readonly indexer: boolean
    readonly execution: boolean
  }
}

/** A response is one line of the control socket, so lists have a maximum. */
const SUBSCRIPTIONS_MAX = 200
const UPSTREAMS_MAX = 200

export function createTopReport(deps: TopDeps): () => TopReport {
  const { clock, runs } = deps
  return () => {
    const figures = createMetricSum(deps.registry)
    const { sum } = figures
    return {
      atMs: clock.monotonicMs(),
      status: deps.status(),
      process: {
        memoryBytes: sum('sluice_process_resident_memory_bytes'),
        cpuSeconds: sum('sluice_process_cpu_seconds_total'),
        loopDelaySeconds: sum('sluice_process_event_loop_delay_seconds', { stat: 'p99' }),
        descriptors: sum('sluice_process_open_descriptors'),
      },
      calls: figures.by('sluice_access_admitted_total', 'interface'),
      units: sum('sluice_access_units_total'),
      streams: {
        ws: sum('sluice_bundle_connections', { interface: 'ws' }),
        grpc: sum('sluice_bundle_connections', { interface: 'grpc' }),
        wsSubscriptions: sum('sluice_access_ws_subscriptions'),
      },
      out: {
        messages: sum('sluice_bundle_messages_out_total'),
        bytes: sum('sluice_bundle_bytes_out_total'),
        gapsReported: sum('sluice_bundle_gaps_reported_total'),
        slow: sum('sluice_bundle_slow_consumers_total'),
      },
      shreds: runs.shreds ? shredFigures(figures) : null,
      sender: runs.sender ? senderFigures(figures) : null,
      indexer: runs.indexer ? indexerFigures(figures) : null,
      execution: runs.execution ? executionFigures(figures) : null,
      upstreams: deps.upstreams().slice(0, UPSTREAMS_MAX),
      subscriptions: subscriptions(deps),
      refusals: refusals(figures),
    }
  }
}

function shredFigures({ sum, by, buckets }: MetricSum): ShredFigures {
  return {
    received: sum('sluice_shreds_received_total'),
    sent: sum('sluice_shreds_sent_total'),
    dropped: sum('sluice_shreds_dropped_total'),
    destinations: sum('sluice_shreds_destinations'),
    newestSlot: sum('sluice_shreds_newest_slot'),
    delays: buckets('sluice_shreds_delay_seconds'),
    alarms: Object.keys(by('sluice_shreds_alarm', 'alarm')),
  }
}

function senderFigures({ sum, by }: MetricSum): SenderFigures {
  const received = by('sluice_sender_received_total', 'result')
  return {
    accepted: received['accepted'] ?? 0,
    refused: countsOf(received, SENDER_TAKEN).reduce((total, [, count]) => total + count, 0),
    landed: sum('sluice_sender_finished_total', { state: 'landed' }),
    expired: sum('sluice_sender_finished_total', { state: 'expired' }),
    pending: sum('sluice_sender_pending'),
    tipLamports: sum('sluice_sender_tip_lamports_total'),
  }
}

function indexerFigures({ sum }: MetricSum): IndexerFigures {
  return {
    headSlot: sum('sluice_indexer_head_slot'),
    tipSlot: knownOrNull(sum('sluice_indexer_tip_slot')),
    blocks: sum('sluice_indexer_blocks_total'),
    queries: sum('sluice_indexer_queries_total'),
    running: sum('sluice_indexer_running_queries'),
  }
}

/** JSON has no NaN. */
function knownOrNull(value: number): number | null {
  return Number.isNaN(value) ? null : value
}

function executionFigures({ sum }: MetricSum): ExecutionFigures {
  return {
    tps: sum('sluice_execution_transactions_per_second'),
    blockNumber: sum('sluice_execution_block_number'),
    ageSeconds: sum('sluice_execution_last_event_age_seconds'),
    clients: sum('sluice_execution_ws_connections'),
    frames: sum('sluice_execution_ws_delivered_total'),
    lagEvents: sum('sluice_execution_ring_lag_events'),
    gaps: sum('sluice_execution_ring_gaps_total'),
    simulated: sum('sluice_execution_simulated') > 0,
  }
}

function subscriptions({ usage, snapshot, streamsOf }: TopDeps): SubscriptionFigures[] {
  const known = snapshot()
  return usage
    .active()
    .slice(0, SUBSCRIPTIONS_MAX)
    .map(({ subscriptionId: id, calls, units, refused, bytes }) => {
      const subscription = known.subscription(id)
      return {
        id,
        name: subscription?.name ?? id,
        customer: (subscription && known.customer(subscription.customerId)?.name) ?? '',
        plan: subscription?.plan ?? '',
        calls,
        units,
        refused,
        bytes,
        streams: streamsOf(id),
      }
    })
}

/** Results that are not refusals. */
const SENDER_TAKEN = ['accepted', 'duplicate']
/** Counted by limit as well. */
const SENDER_LIMITED = 'rate-limited'

/** Each refusal once: `access` counts plan limits, so the gateway adds only its own limits; the sender counts a reached limit under its name and as a result. */
function refusals({ by, sum }: MetricSum): Refusal[] {
  const causes: [string, readonly (readonly [string, number])[]][] = [
    ['token', countsOf(by('sluice_access_refused_total', 'reason'))],
    ['plan', countsOf(by('sluice_access_limited_total', 'limit'))],
    ['gateway', countsOf(by('sluice_bundle_refused_total', 'limit'), Object.keys(LIMIT_LABELS))],
    ['sender', countsOf(by('sluice_sender_received_total', 'result'), [...SENDER_TAKEN, SENDER_LIMITED])],
    ['sender', countsOf(by('sluice_sender_limited_total', 'limit'))],
    ['execution', countsOf(by('sluice_execution_ws_refused_total', 'reason'))],
    ['connection', countsOf(by('sluice_process_connections_refused_total', 'reason'))],
    ['upstreams', [['no node available', sum('sluice_upstreams_no_upstream_total')]]],
  ]
  return causes.flatMap(([part, counts]) =>
    counts.filter(([, count]) => count > 0).map(([reason, count]) => ({ part, reason, count })),
  )
}

function countsOf(
  counts: Readonly<Record<string, number>>,
  leftOut: readonly string[] = [],
): (readonly [string, number])[] {
  return Object.entries(counts).filter(([name]) => !leftOut.includes(name))
}
