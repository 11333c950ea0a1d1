import { TOKEN_REFUSALS, type TokenRefusal } from '../contract/errors.ts'
import { LIMIT_LABELS, type LimitName } from '../contract/limits.ts'
import { recordOf } from '../core/records.ts'
import type { MergeRule } from '../platform/telemetry/metric-memory.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { EndingReport } from './ending.ts'
import { PERMIT_NAMES } from './quota/permit-table.ts'
import type { PermitCounts } from './quota/permits.ts'
import type { UsageInterface } from './store/model.ts'
import { USAGE_INTERFACES } from './usage/counter.ts'
import type { UsageState } from './usage/writer.ts'

const LIMITS = Object.keys(LIMIT_LABELS) as LimitName[]
const SYNC_RESULTS = ['booked', 'failed'] as const

type Count = { inc(by?: number): void }

/** What each thread counts of its own calls. Counters of the hot path are resolved once, here. */
export type CallMetrics = {
  readonly admitted: Readonly<Record<UsageInterface, Count>>
  readonly units: Readonly<Record<UsageInterface, Count>>
  readonly refused: Readonly<Record<TokenRefusal, Count>>
  readonly limited: Readonly<Record<LimitName, Count>>
  readonly notAssigned: Count
}

/** The metrics of the main thread. */
export type AccessMetrics = CallMetrics & {
  readonly snapshotSwaps: Count
  readonly sharedSyncs: Readonly<Record<(typeof SYNC_RESULTS)[number], Count>>
}

/** Values read at each scrape. */
export type AccessReadings = {
  usage(): UsageState
  ending(): Pick<EndingReport, 'within1d' | 'within7d'>
  permits(): PermitCounts
  snapshot(): { revision: number; subscriptions: number; tokens: number }
  /** Undefined where the quota is not shared. */
  shared(): { isUp: boolean; processes: number } | undefined
}

export function callMetrics(registry: MetricsRegistry): CallMetrics {
  const perInterface = (name: string, help: string) => {
    const counter = registry.counter(name, help, { labels: { interface: USAGE_INTERFACES } })
    return recordOf(USAGE_INTERFACES, (value) => counter.with({ interface: value }))
  }
  const refused = registry.counter(
    'sluice_access_refused_total',
    'Requests refused for lack of a valid token, by reason.',
    { labels: { reason: TOKEN_REFUSALS } },
  )
  const limited = registry.counter(
    'sluice_access_limited_total',
    'Calls refused because a limit of the subscription was reached, by limit.',
    { labels: { limit: LIMITS } },
  )
  return {
    admitted: perInterface('sluice_access_admitted_total', 'Calls admitted and charged, by interface.'),
    units: perInterface('sluice_access_units_total', 'Units charged, by interface.'),
    refused: recordOf(TOKEN_REFUSALS, (reason) => refused.with({ reason })),
    limited: recordOf(LIMITS, (limit) => limited.with({ limit })),
    notAssigned: registry
      .counter(
        'sluice_access_not_assigned_total',
        'Calls and connections refused because no dedicated node is assigned to the subscription.',
      )
      .with({}),
  }
}

/** Counts, and gauges of what the process has once: only the main thread registers these. */
export function accessMetrics(registry: MetricsRegistry, read: AccessReadings = NO_READINGS): AccessMetrics {
  const syncs = registry.counter(
    'sluice_access_quota_syncs_total',
    'Syncs of spent quota with the shared quota store and failed heartbeats, by result.',
    { labels: { result: SYNC_RESULTS } },
  )
  // The main thread alone has these gauges: it reads the store, the usage and the permits of all threads, which are in shared memory. The rule is for
  // a thread that has its own copy of them.
  const gauge = (name: string, help: string, value: () => number, merge: MergeRule = 'max') =>
    registry.gauge(name, help, { read: value, merge })
  const counter = (name: string, help: string, value: () => number) => registry.counter(name, help, { read: value })

  counter('sluice_access_usage_flushes_total', 'Writes of usage to the store.', () => read.usage().flushes)
  counter(
    'sluice_access_usage_failures_total',
    'Failed writes of usage to the store. Each is followed by a save on the disk.',
    () => read.usage().failures,
  )
  counter(
    'sluice_access_usage_lost_total',
    'Usage rows dropped because the store could not be written.',
    () => read.usage().lostRows,
  )
  gauge(
    'sluice_access_usage_waiting_rows',
    'Usage rows waiting to be written to the store.',
    () => read.usage().waitingRows,
    'sum',
  )
  gauge(
    'sluice_access_usage_spooled_rows',
    'Usage rows kept on the disk because the store cannot be written.',
    () => read.usage().spooledRows,
    'sum',
  )
  gauge(
    'sluice_access_usage_unsafe',
    '1 while usage can be written neither to the store nor to the disk, and would be lost with the process.',
    () => (read.usage().spoolFailing === undefined ? 0 : 1),
  )
  gauge(
    'sluice_access_snapshot_revision',
    'Store revision of the current snapshot.',
    () => read.snapshot().revision,
    'min',
  )
  gauge(
    'sluice_access_subscriptions',
    'Subscriptions in the snapshot, in any state.',
    () => read.snapshot().subscriptions,
  )
  gauge(
    'sluice_access_subscriptions_ending_week',
    'Subscriptions that work now and end within seven days.',
    () => read.ending().within7d,
  )
  gauge(
    'sluice_access_subscriptions_ending_day',
    'Subscriptions that work now and end within a day.',
    () => read.ending().within1d,
  )
  gauge('sluice_access_tokens', 'Tokens in the snapshot, in any state.', () => read.snapshot().tokens)
  for (const name of PERMIT_NAMES)
    gauge(PERMIT_METRICS[name], `${LIMIT_LABELS[name]} of all subscriptions.`, () => read.permits()[name])
  gauge(
    'sluice_access_quota_shared_up',
    '1 while the shared ledger is reachable, 0 while local shares are used or the quota is not shared.',
    () => (read.shared()?.isUp === true ? 1 : 0),
    'min',
  )
  gauge(
    'sluice_access_quota_processes',
    'Processes that share the quota, as last reported by the shared ledger.',
    () => read.shared()?.processes ?? 1,
  )

  return {
    ...callMetrics(registry),
    snapshotSwaps: registry
      .counter('sluice_access_snapshot_swaps_total', 'Times the snapshot was replaced by a newer one.')
      .with({}),
    sharedSyncs: recordOf(SYNC_RESULTS, (result) => syncs.with({ result })),
  }
}

/** For a registry that is only used to list the metrics. */
const NO_READINGS: AccessReadings = {
  usage: () => ({
    waitingRows: 0,
    spooledRows: 0,
    lostRows: 0,
    flushes: 0,
    failures: 0,
    failing: undefined,
    spoolFailing: undefined,
  }),
  ending: () => ({ within1d: 0, within7d: 0 }),
  permits: () => ({ wsConnections: 0, wsSubscriptions: 0, grpcStreams: 0 }),
  snapshot: () => ({ revision: 0, subscriptions: 0, tokens: 0 }),
  shared: () => undefined,
}

const PERMIT_METRICS = {
  wsConnections: 'sluice_access_ws_connections',
  wsSubscriptions: 'sluice_access_ws_subscriptions',
  grpcStreams: 'sluice_access_grpc_streams',
} as const
