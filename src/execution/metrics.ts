import { EXECUTION_RPC_METHODS } from '../contract/execution-routes.ts'
import { FIGURE_KINDS, type StreamErrorCode } from '../contract/stream-events.ts'
import type { MergeRule } from '../platform/telemetry/metric-memory.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { LIMIT_NAMES } from './rpc/failure.ts'
import { NO_STATS, type SourceStats } from './source/message.ts'

const KINDS = [...FIGURE_KINDS, 'Events', 'Warning'] as const
const JOINS = ['resume', 'snapshot', 'out_of_window'] as const
const REFUSALS = ['address_limit', 'subscription_limit', 'connections', 'token', 'path', 'work'] as const
const SUBSCRIBE_ERRORS = [
  'empty_subscribe',
  'subscribe_limit',
  'invalid_subscribe',
  'rate_limited',
] as const satisfies StreamErrorCode[]
const CLOSES = ['client', 'slow', 'heartbeat', 'policy', 'restart', 'token'] as const
const METHODS = [...EXECUTION_RPC_METHODS, 'other'] as const
const OUTCOMES = ['ok', 'error'] as const

/** Values that are read at scrape time. */
export type ExecutionReadings = {
  connections(): number
  waitingFrames(): number
  window(): { entries: number; bytes: number; entriesMax: number }
  ring(): { seqno: number; lagEvents: number; stats: SourceStats }
  ageSeconds(): number
  isHealthy(): boolean
  isSimulated(): boolean
  blockNumber(): number
  tps(): number
  blocksHeld(): number
  heldRange(): { from: number; to: number } | undefined
  archive(): { blocks: number; bytes: number; skipped: number }
  history(): { blocks: number; bytes: number; failures: number }
  readonly rpc: RpcReadings
}

export type RpcReadings = { requests(): number; unreadBytes(): number; renderedBytes(): number }

export type ExecutionMetrics = ReturnType<typeof executionMetrics>
export type WsCloseReason = (typeof CLOSES)[number]

/** Prometheus metrics of the module. Created once per process; a restarted service attaches its own readings. */
export function executionMetrics(registry: MetricsRegistry) {
  let read: ExecutionReadings = NOTHING_TO_READ
  const gauge = (name: string, help: string, value: () => number, merge: MergeRule = 'sum') =>
    registry.gauge(`sluice_execution_${name}`, help, { read: value, merge })
  const total = (name: string, help: string, value: (stats: SourceStats) => number) =>
    registry.counter(`sluice_execution_${name}_total`, help, { read: () => value(read.ring().stats) })
  const count = (name: string, help: string) => registry.counter(`sluice_execution_${name}_total`, help).with({})

  gauge('ws_connections', 'Open WebSocket connections.', () => read.connections())
  gauge('ws_waiting_frames', 'Frames queued for slow clients.', () => read.waitingFrames())
  gauge('resume_entries', 'Frames in the resume buffer.', () => read.window().entries)
  gauge('resume_bytes', 'Bytes in the resume buffer.', () => read.window().bytes)
  gauge(
    'resume_used_ratio',
    'Share of the resume buffer in use.',
    () => {
      const { entries, entriesMax } = read.window()
      return entries / entriesMax
    },
    'max',
  )
  gauge('ring_seqno', 'Last event read from the ring.', () => read.ring().seqno, 'max')
  gauge('ring_lag_events', 'Unread events in the ring.', () => read.ring().lagEvents, 'max')
  gauge('last_event_age_seconds', 'Time since the last event.', () => read.ageSeconds(), 'max')
  gauge('healthy', '1 while events arrive, 0 after 30 s without one.', () => (read.isHealthy() ? 1 : 0), 'min')
  gauge(
    'simulated',
    '1 where the data is that of the simulated chain, 0 for real data.',
    () => (read.isSimulated() ? 1 : 0),
    'max',
  )
  gauge('block_number', 'Newest block seen.', () => read.blockNumber(), 'max')
  gauge('transactions_per_second', 'TPS as published.', () => read.tps(), 'max')
  gauge('blocks_held', 'Blocks held for JSON-RPC in memory.', () => read.blocksHeld())
  gauge(
    'blocks_held_from',
    'Lowest block number that JSON-RPC serves; 0 without blocks.',
    () => read.heldRange()?.from ?? 0,
    'min',
  )
  gauge(
    'blocks_held_to',
    'Highest block number that JSON-RPC serves; 0 without blocks.',
    () => read.heldRange()?.to ?? 0,
    'max',
  )
  gauge('archive_blocks', 'Blocks held for JSON-RPC on disk.', () => read.archive().blocks)
  gauge('archive_bytes', 'Bytes of blocks on disk.', () => read.archive().bytes)
  registry.counter(
    'sluice_execution_archive_skipped_total',
    'Blocks that were not written to disk, because the disk failed or was too slow.',
    { read: () => read.archive().skipped },
  )
  gauge('history_blocks', 'Proposals in the history.', () => read.history().blocks)
  gauge('history_bytes', 'Bytes of the history on disk.', () => read.history().bytes)
  registry.counter('sluice_execution_history_failures_total', 'Writes of the history to disk that failed.', {
    read: () => read.history().failures,
  })
  gauge('rpc_requests', 'Requests of POST / that are queued, in progress or being sent.', () => read.rpc.requests())
  gauge('rpc_unread_bytes', 'Bytes of responses of POST / that clients have not read yet.', () =>
    read.rpc.unreadBytes(),
  )
  gauge('rpc_rendered_bytes', 'Bytes in the cache of rendered blocks and receipts.', () => read.rpc.renderedBytes())
  total('ring_events', 'Events folded.', ({ events }) => events)
  total('ring_gaps', 'Times events were overwritten before they were read.', ({ gaps }) => gaps)
  total('ring_events_lost', 'Events lost in gaps.', ({ eventsLost }) => eventsLost)
  total('ring_payload_expired', 'Events whose payload was overwritten.', ({ payloadsLost }) => payloadsLost)
  total('ring_unknown_events', 'Events of an unknown type.', ({ unknownTypes }) => unknownTypes)
  total('record_errors', 'Events that the node could not record.', ({ recordErrors }) => recordErrors)
  total('blocks_dropped', 'Blocks dropped before their end.', ({ blocksDropped }) => blocksDropped)
  total(
    'unknown_block_events',
    'Consensus events of blocks that were not seen, as after a start or a gap.',
    ({ unknownBlocks }) => unknownBlocks,
  )
  total('blocks_incomplete', 'Blocks without contention figures.', ({ blocksIncomplete }) => blocksIncomplete)

  return {
    attach(readings: ExecutionReadings): void {
      read = readings
    },
    published: registry.counter(
      'sluice_execution_published_total',
      'Frames published, by kind, with or without subscribers.',
      { labels: { kind: KINDS } },
    ),
    delivered: count('ws_delivered', 'Frames written to clients.'),
    dropped: count('ws_dropped', 'Frames dropped because a client was too slow.'),
    deflatedFrom: count('ws_deflate_in_bytes', 'Bytes of frames before compression; each frame is compressed once.'),
    deflatedTo: count('ws_deflate_out_bytes', 'Bytes of frames after compression.'),
    joined: registry.counter(
      'sluice_execution_ws_joins_total',
      'Connections by how they started: resumed, with a snapshot, or with a cursor outside the window.',
      { labels: { how: JOINS } },
    ),
    closed: registry.counter('sluice_execution_ws_closes_total', 'Connections closed, by reason.', {
      labels: { reason: CLOSES },
    }),
    refused: registry.counter('sluice_execution_ws_refused_total', 'Handshakes refused, by reason.', {
      labels: { reason: REFUSALS },
    }),
    subscribeRefused: registry.counter(
      'sluice_execution_ws_subscribe_refused_total',
      'Subscribe messages refused, by code.',
      { labels: { code: SUBSCRIBE_ERRORS } },
    ),
    ringRestarts: count('ring_restarts', 'Times that the ring was replaced.'),
    serviceRestarts: count('service_restarts', 'Times that the service restarted because its source was silent.'),
    calls: registry.counter('sluice_execution_rpc_calls_total', 'JSON-RPC calls, by method and outcome.', {
      labels: { method: METHODS, outcome: OUTCOMES },
    }),
    limits: registry.counter(
      'sluice_execution_limits_reached_total',
      'Requests, calls and messages refused because of a limit, by the value of data.limit.',
      { labels: { limit: LIMIT_NAMES } },
    ),
    finalize: registry.histogram(
      'sluice_execution_finalize_seconds',
      'Time from the start of a block to its finalization, by the timestamps of the ring.',
      { buckets: [0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3, 5, 10] },
    ),
    publish: registry.histogram(
      'sluice_execution_publish_seconds',
      'Time from reading events to publishing their results.',
      { buckets: [0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1] },
    ),
    flush: registry.histogram(
      'sluice_execution_ws_flush_seconds',
      'Time to write one batch of frames to all sockets.',
      { buckets: [0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1] },
    ),
  }
}

/** Used before the first start and for generated documentation. */
const NOTHING_TO_READ: ExecutionReadings = {
  connections: () => 0,
  waitingFrames: () => 0,
  window: () => ({ entries: 0, bytes: 0, entriesMax: 1 }),
  ring: () => ({ seqno: 0, lagEvents: 0, stats: NO_STATS }),
  ageSeconds: () => 0,
  isHealthy: () => false,
  isSimulated: () => false,
  blockNumber: () => 0,
  tps: () => 0,
  blocksHeld: () => 0,
  heldRange: () => undefined,
  archive: () => ({ blocks: 0, bytes: 0, skipped: 0 }),
  history: () => ({ blocks: 0, bytes: 0, failures: 0 }),
  rpc: { requests: () => 0, unreadBytes: () => 0, renderedBytes: () => 0 },
}
