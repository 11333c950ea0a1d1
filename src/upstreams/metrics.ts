import { NODE_STATES, type NodeState } from '../contract/node-states.ts'
import { recordOf } from '../core/records.ts'
import type { MergeRule } from '../platform/telemetry/metric-memory.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { SLOT_MS_DEFAULT } from '../solana/slot-pace.ts'
import { NODES_MAX } from './nodes-max.ts'

const CALL_OUTCOMES = ['responded', 'failed', 'timeout'] as const
const RETRY_REASONS = ['connect', 'stale', 'broken', 'silent', 'status', 'response'] as const
const LOSSES = ['closed', 'dead', 'stalled', 'protocol', 'too-slow', 'connect'] as const
/** The nodes of the configuration, as many that a reload has removed and whose calls have not ended, and the dedicated ones. */
const LABELS_MAX = 2 * NODES_MAX + 1
/** Dedicated nodes come and go with provisioning; they share one label. */
export const DEDICATED = 'dedicated'
const LATENCY_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

export type LossReason = (typeof LOSSES)[number]
export type RetryReason = (typeof RETRY_REASONS)[number]

type Count = { inc(by?: number): void }
type Gauge = { set(value: number): void }

export type NodeMeter = {
  inFlight(by: 1 | -1): void
  call(outcome: (typeof CALL_OUTCOMES)[number], tookMs: number): void
  readonly wsConnections: { inc(): void; dec(): void }
  readonly wsSubscriptions: { inc(): void; dec(): void }
  readonly grpcStreams: { inc(): void; dec(): void }
  readonly wsLosses: Readonly<Record<LossReason, Count>>
  readonly grpcLosses: Readonly<Record<LossReason, Count>>
  /** Only for the nodes of the config: one series cannot stand for several nodes. */
  readonly health:
    | {
        readonly slot: Gauge
        readonly lag: Gauge
        readonly lagSeconds: Gauge
        state(now: NodeState): void
      }
    | undefined
}

/** Metrics of the upstreams. The names of the nodes in the config are the label, and nothing else. */
export type UpstreamsMetrics = {
  of(node: string): NodeMeter
  /** A node with this label is in use. The series of a label exist while it has users. */
  add(node: string): void
  remove(node: string): void
  readonly retries: Readonly<Record<RetryReason, Count>>
  readonly retriesRefused: Count
  readonly noUpstream: Count
}

/** Values read at each scrape. */
export type UpstreamsReadings = {
  /** 1 while every available shared node lags. */
  allBehind(): number
  /** 1 while no shared node takes WebSocket connections. */
  wsDown(): number
  dedicated(): number
  dedicatedFailing(): number
  slotLengthSeconds(): number
}

export function upstreamsMetrics(
  registry: MetricsRegistry,
  read: UpstreamsReadings = NOTHING_TO_READ,
): UpstreamsMetrics {
  const upstream = registry.changingLabel('upstream', LABELS_MAX)
  upstream.acquire(DEDICATED)
  const counter = (name: string, help: string) => registry.counter(name, help).with({})
  const calls = registry.counter(
    'sluice_upstreams_calls_total',
    'Calls forwarded to a node, by outcome; a retried call counts for each node.',
    {
      labels: { upstream, outcome: CALL_OUTCOMES },
      former: { labels: { outcome: 'result' }, values: { responded: 'answered' } },
    },
  )
  const seconds = registry.histogram(
    'sluice_upstreams_call_seconds',
    'From forwarding a call to the node to the end of its response, or the beginning of a large one.',
    { labels: { upstream }, buckets: LATENCY_BUCKETS },
  )
  const gauge = (name: string, help: string, merge: MergeRule = 'sum') =>
    registry.gauge(name, help, { labels: { upstream }, merge })
  const inFlight = gauge('sluice_upstreams_calls_in_flight', 'Calls sent to the node or waiting for a connection.')
  const slot = gauge('sluice_upstreams_slot', 'Newest processed slot seen of the node.', 'max')
  const lag = gauge('sluice_upstreams_lag_slots', 'Slots the node is behind the best one of its pool.', 'max')
  const lagSeconds = gauge(
    'sluice_upstreams_lag_seconds',
    'Time the node is behind the best one of its pool: its slots in the length of a slot of the chain.',
    'max',
  )
  const wsConnections = gauge('sluice_upstreams_ws_connections', 'Open WebSocket connections to the node.')
  const wsSubscriptions = gauge(
    'sluice_upstreams_ws_subscriptions',
    'Subscriptions on the WebSocket connections to the node.',
  )
  const grpcStreams = gauge('sluice_upstreams_grpc_streams', 'Open gRPC streams to the node.')
  const state = registry.gauge('sluice_upstreams_state', '1 for the current state of the node, 0 for the others.', {
    labels: { upstream, state: NODE_STATES },
    // Each thread has its own view of a node: a state that any of them sees is shown.
    merge: 'max',
  })
  const losses = (name: string, help: string) => registry.counter(name, help, { labels: { upstream, reason: LOSSES } })
  const wsLosses = losses(
    'sluice_upstreams_ws_losses_total',
    'WebSocket connections to a node that were lost or could not be opened.',
  )
  const grpcLosses = losses(
    'sluice_upstreams_grpc_losses_total',
    'gRPC connections to a node that were lost or could not be opened.',
  )
  const retries = registry.counter(
    'sluice_upstreams_retries_total',
    'Calls retried on a second node, by the failure of the first.',
    {
      labels: { failure: RETRY_REASONS },
      former: { labels: { failure: 'reason' }, values: { response: 'answer' } },
    },
  )
  registry.gauge(
    'sluice_upstreams_all_behind',
    '1 while every available shared node lags; they are used all the same.',
    { read: read.allBehind, merge: 'max' },
  )
  registry.gauge('sluice_upstreams_ws_down', '1 while no shared node takes WebSocket connections.', {
    read: read.wsDown,
    merge: 'max',
  })
  registry.gauge('sluice_upstreams_dedicated_nodes', 'Dedicated nodes that are assigned to a subscription.', {
    read: read.dedicated,
    // Every thread has all of them.
    merge: 'max',
  })
  registry.gauge(
    'sluice_upstreams_dedicated_failing',
    'Assigned dedicated nodes that do not respond, fail, or cannot be used because of their address or credential.',
    { read: read.dedicatedFailing, merge: 'max' },
  )

  registry.gauge(
    'sluice_slot_length_seconds',
    'Length of a slot of the chain, learned from the nodes; 0.4 until it is learned.',
    { read: read.slotLengthSeconds, merge: 'max' },
  )

  const meters = new Map<string, NodeMeter>()
  function meterOf(name: string, isListed: boolean): NodeMeter {
    const at = { upstream: name }
    const byOutcome = recordOf(CALL_OUTCOMES, (outcome) => calls.with({ ...at, outcome }))
    const took = seconds.with(at)
    const running = inFlight.with(at)
    const states = NODE_STATES.map((one) => ({ one, gauge: state.with({ ...at, state: one }) }))
    return {
      inFlight: (by) => running.inc(by),
      call(outcome, tookMs) {
        byOutcome[outcome].inc()
        took.observe(tookMs / 1000)
      },
      wsConnections: wsConnections.with(at),
      wsSubscriptions: wsSubscriptions.with(at),
      grpcStreams: grpcStreams.with(at),
      wsLosses: recordOf(LOSSES, (reason) => wsLosses.with({ ...at, reason })),
      grpcLosses: recordOf(LOSSES, (reason) => grpcLosses.with({ ...at, reason })),
      health: isListed
        ? {
            slot: slot.with(at),
            lag: lag.with(at),
            lagSeconds: lagSeconds.with(at),
            state: (now) => {
              for (const { one, gauge: series } of states) series.set(one === now ? 1 : 0)
            },
          }
        : undefined,
    }
  }
  const dedicated = meterOf(DEDICATED, false)

  return {
    of: (node) => meters.get(node) ?? dedicated,
    add(node) {
      if (node === DEDICATED) return
      upstream.acquire(node)
      if (!meters.has(node)) meters.set(node, meterOf(node, true))
    },
    remove(node) {
      if (node === DEDICATED) return
      upstream.release(node)
      if (upstream.indexOf(node) === -1) meters.delete(node)
    },
    retries: recordOf(RETRY_REASONS, (reason) => retries.with({ failure: reason })),
    retriesRefused: counter(
      'sluice_upstreams_retries_refused_total',
      'Retries not made because the retry budget was used up.',
    ),
    noUpstream: counter('sluice_upstreams_no_upstream_total', 'Calls for which no node was available.'),
  }
}

const NOTHING_TO_READ: UpstreamsReadings = {
  allBehind: () => 0,
  wsDown: () => 0,
  dedicated: () => 0,
  dedicatedFailing: () => 0,
  slotLengthSeconds: () => SLOT_MS_DEFAULT / 1000,
}
