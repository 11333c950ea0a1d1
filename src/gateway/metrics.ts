import type { CustomerLog } from '../access/customer-log.ts'
import { ERRORS } from '../contract/errors.ts'
import { LIMIT_LABELS } from '../contract/limits.ts'
import { COUNTED_METHODS } from '../contract/rpc-methods.ts'
import { OTHER } from '../platform/telemetry/metric-series.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { DecodedMeter } from './geyser/decoded/streams.ts'

const INTERFACES = ['rpc', 'ws', 'grpc'] as const
const STREAMING = ['ws', 'grpc'] as const
/** The limits of a plan and those of every plan, by their name in a refusal. */
const LIMITS: readonly string[] = [
  ...Object.keys(LIMIT_LABELS),
  'callsInFlight',
  'responseBytes',
  'freeMessages',
  'controlPings',
  'cancelledCalls',
  'pagesPerSecond',
  'documentsPerSecond',
  'reflectionStreams',
  'grpcUnaryCalls',
  'grpcKinds',
  'grpcBlockedOwners',
  'decodedFiltersPerStream',
  'grpcRequestBytes',
  'grpcRequestFields',
  'grpcRequestFilters',
  'readable',
  'knownFields',
  'singleFields',
  'inflateRatio',
  'healthPerSecond',
  'openRequestsPerSecond',
  'healthWatches',
  'heldBytes',
  'heldBytesPerSubscription',
  'nodeConnectionsPerSubscription',
  'upstreamSubscriptionsPerSubscription',
]
const CACHE_RESULTS = ['hit', 'miss'] as const
const RESUME_RESULTS = ['resumed', 'ended'] as const
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

type Count = { inc(by?: number): void }

/** Whose request a server refused, and with which error. */
export type RefusalSubject = {
  readonly subscription: string
  readonly code: 'too-large' | 'response-too-large' | 'rate-limited' | 'invalid-params' | 'overloaded'
}

/** The metrics of one server. */
export type ListenerMeter = {
  /** An admitted request; a method that is on no list counts as `other`. */
  request(method: string): void
  /** A refusal, by its limit. `request` is given where the refusal has to be logged here; those of `access` are logged there. */
  refused(limit: string, request?: RefusalSubject): void
  /** Time of a call from its admission to its response, or to the beginning of a large one. */
  tookMs(ms: number): void
  /** Refusals of a token that were delayed. */
  readonly delayedRefusals: Count
}

/** The metrics of a server whose connections stay open. */
export type StreamMeter = ListenerMeter & {
  readonly open: { inc(): void; dec(): void }
  readonly messagesOut: Count
  readonly bytesOut: Count
  readonly slow: Count
}

const DECODED_LOSSES = ['client', 'thread'] as const
const DECODED_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1]

/** Metrics of the gateway. Series of the hot path are looked up once, here. */
export type GatewayMetrics = {
  readonly rpc: ListenerMeter
  readonly ws: StreamMeter
  readonly grpc: StreamMeter
  /** Gap notifications sent. */
  readonly gapsReported: Count
  /** Streams of a lost node whose plan has grpcResume, by result. */
  readonly resumes: Readonly<Record<(typeof RESUME_RESULTS)[number], Count>>
  readonly cache: Readonly<Record<(typeof CACHE_RESULTS)[number], Count>>
  readonly decoded: DecodedMeter
}

/** Values read at each scrape. */
export type GatewayReadings = {
  cache(): { readonly entries: number; readonly bytes: number }
  upstreamSubscriptions(): number
}

export function gatewayMetrics(registry: MetricsRegistry, read: GatewayReadings = NOTHING_TO_READ): GatewayMetrics {
  const requests = registry.counter('sluice_bundle_requests_total', 'Requests admitted, by interface and method.', {
    labels: { interface: INTERFACES, method: COUNTED_METHODS },
  })
  const refused = registry.counter(
    'sluice_bundle_refused_total',
    'Requests and connections refused by a limit, by interface and limit.',
    { labels: { interface: INTERFACES, limit: LIMITS } },
  )
  const seconds = registry.histogram(
    'sluice_bundle_response_seconds',
    'From the admission of a call to its response, or to the beginning of a large one, by interface.',
    { labels: { interface: INTERFACES }, buckets: SECONDS, former: { name: 'sluice_bundle_answer_seconds' } },
  )
  const delayed = registry.counter(
    'sluice_bundle_delayed_refusals_total',
    'Refusals of a token that were delayed because their address had shown too many, by interface.',
    { labels: { interface: INTERFACES }, former: { name: 'sluice_bundle_late_refusals_total' } },
  )
  const open = registry.gauge('sluice_bundle_connections', 'Open WebSockets and gRPC streams.', {
    labels: { interface: STREAMING },
  })
  const streaming = (name: string, help: string) => registry.counter(name, help, { labels: { interface: STREAMING } })
  const messages = streaming('sluice_bundle_messages_out_total', 'Messages sent on open connections.')
  const bytes = streaming('sluice_bundle_bytes_out_total', 'Bytes sent on open connections, framing included.')
  const slow = streaming('sluice_bundle_slow_consumers_total', 'Connections closed because their client did not read.')
  const gaps = registry.counter(
    'sluice_bundle_gaps_reported_total',
    'Gap notifications sent to WebSocket clients that requested them.',
    { former: { name: 'sluice_bundle_gaps_told_total' } },
  )
  const resumes = registry.counter(
    'sluice_bundle_grpc_resumes_total',
    'Streams of a lost node whose plan has grpcResume, by whether another node took them over.',
    { labels: { result: RESUME_RESULTS } },
  )
  const cache = registry.counter(
    'sluice_bundle_cache_lookups_total',
    'Calls whose response never changes, by whether it was cached.',
    { labels: { result: CACHE_RESULTS } },
  )
  const decodedDelivery = registry.histogram(
    'sluice_decoded_delivery_seconds',
    'From the arrival of the shred that completed a data set until its messages were written.',
    { buckets: DECODED_BUCKETS },
  )
  const decodedLost = registry.counter(
    'sluice_decoded_messages_lost_total',
    'Messages of decoded streams that were lost because a client did not read (client), and data sets because a gateway thread fell behind (thread).',
    { labels: { by: DECODED_LOSSES } },
  )
  registry.gauge('sluice_bundle_cache_entries', 'Cached responses.', { read: () => read.cache().entries })
  registry.gauge('sluice_bundle_cache_bytes', 'Bytes of the cached responses.', { read: () => read.cache().bytes })
  registry.gauge(
    'sluice_bundle_upstream_subscriptions',
    'Subscriptions at nodes, each shared by any number of clients.',
    { read: () => read.upstreamSubscriptions() },
  )

  function listenerMeter(name: (typeof INTERFACES)[number]): ListenerMeter {
    const byMethod = byName([...COUNTED_METHODS, OTHER], (method) => requests.with({ interface: name, method }))
    const other = byMethod.get(OTHER) as Count
    const took = seconds.with({ interface: name })
    return {
      request: (method) => (byMethod.get(method) ?? other).inc(),
      refused: (limit) => refused.inc({ interface: name, limit }),
      tookMs: (ms) => took.observe(ms / 1000),
      delayedRefusals: delayed.with({ interface: name }),
    }
  }

  function streamMeter(name: (typeof STREAMING)[number]): StreamMeter {
    return {
      ...listenerMeter(name),
      open: open.with({ interface: name }),
      messagesOut: messages.with({ interface: name }),
      bytesOut: bytes.with({ interface: name }),
      slow: slow.with({ interface: name }),
    }
  }

  return {
    rpc: listenerMeter('rpc'),
    ws: streamMeter('ws'),
    grpc: streamMeter('grpc'),
    gapsReported: gaps.with({}),
    resumes: { resumed: resumes.with({ result: 'resumed' }), ended: resumes.with({ result: 'ended' }) },
    cache: { hit: cache.with({ result: 'hit' }), miss: cache.with({ result: 'miss' }) },
    decoded: {
      delivered: (seconds) => decodedDelivery.observe(seconds),
      lost: (by, messages) => decodedLost.inc({ by }, messages),
    },
  }
}

/** The same meter, which also writes refusals that have a request to the customer's log. */
export function logRefusals<Meter extends ListenerMeter>(
  meter: Meter,
  server: 'rpc' | 'ws' | 'grpc',
  customerLog: Pick<CustomerLog, 'log'>,
): Meter {
  return {
    ...meter,
    refused(limit: string, request?: RefusalSubject) {
      meter.refused(limit)
      if (request === undefined) return
      const kind = { interface: server, limit, code: ERRORS[request.code].jsonRpc }
      customerLog.log({ subscription: request.subscription, message: 'refused', kind })
    },
  }
}

/** For the generated list of metrics. */
const NOTHING_TO_READ: GatewayReadings = {
  cache: () => ({ entries: 0, bytes: 0 }),
  upstreamSubscriptions: () => 0,
}

function byName<Value>(names: readonly string[], make: (name: string) => Value): ReadonlyMap<string, Value> {
  return new Map(names.map((name) => [name, make(name)]))
}
