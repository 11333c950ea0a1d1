import { z } from 'zod'
import {
  type ConflictData,
  type ContentionData,
  FIGURE_KINDS,
  FILTER_LIMITS,
  type Hello,
  type Lifecycle,
  RAW_EVENTS,
  type RawEvent,
  type Stage,
  type StreamError,
  type StreamFrame,
  type Subscribed,
  type SubscribeMessage,
  type TopAccesses,
  type Warning,
} from '../stream-events.ts'
import { type Same, same } from './same.ts'

/** Schemas of the frames of the execution stream. */

export const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])
const count = z.int().min(0)
const list = <Item extends z.ZodType>(item: Item) => z.array(item).readonly()

export const stage = z.enum(['Proposed', 'Voted', 'Finalized', 'Verified', 'Rejected'])
same<Same<z.output<typeof stage>, Stage>>()

const rawEventName = z.enum(RAW_EVENTS)
const streamItem = z.enum([...FIGURE_KINDS, ...RAW_EVENTS])

const address = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]{40}$/)])
const topic = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]{64}$/)])
const oneOrMore = <Item extends z.ZodType>(item: Item) =>
  z.union([item, z.array(item).min(1).max(FILTER_LIMITS.values).readonly()])
const range = z
  .strictObject({ min: z.exactOptional(count), max: z.exactOptional(count) })
  .refine((bounds) => Object.keys(bounds).length > 0, 'give min or max')
  .meta({ minProperties: 1 })
const eventFilter = z.strictObject({
  events: z.exactOptional(z.array(rawEventName).min(1).readonly()),
  txn_index: z.exactOptional(range),
  log_index: z.exactOptional(range).describe('Index within the transaction.'),
  address: z.exactOptional(oneOrMore(address)),
  topics: z
    .exactOptional(
      z
        .array(z.union([oneOrMore(topic), z.null()]))
        .max(FILTER_LIMITS.topics)
        .readonly(),
    )
    .describe('Leading topics; null matches any.'),
})
const filters = z.array(eventFilter).max(FILTER_LIMITS.filters).readonly()
const accepted = {
  events: list(streamItem),
  filters,
  correlate: z.boolean(),
  min_stage: z.literal('Proposed'),
}

const subscribedItems = z.array(streamItem).min(1).readonly()
export const subscribeMessage = z.strictObject({
  subscribe: z.union([
    subscribedItems,
    z.strictObject({
      events: subscribedItems,
      filters: z.exactOptional(filters),
      correlate: z.exactOptional(z.boolean()),
      min_stage: z.exactOptional(z.literal('Proposed')),
    }),
  ]),
})
same<Same<z.output<typeof subscribeMessage>, SubscribeMessage>>()

const hello = z.strictObject({
  protocol_version: z.literal(1),
  server_version: z.string(),
  chain_id: z.int().nullable().describe('Null until the first block is seen.'),
  block_number: count,
  available_filters: list(z.string()),
  blocked_events: list(rawEventName),
  limits: z.strictObject({
    backfill_events: count,
    buffer_per_client: count,
    slow_off_limit: count,
    heartbeat_interval: z.number(),
    heartbeat_timeout: z.number(),
    max_subscribes: count,
  }),
  resumed: z.boolean(),
  newest_seqno: count,
  subscribed: z.strictObject(accepted),
  snapshot: count.describe('Frames of a snapshot that follow.'),
  source: z.strictObject({
    kind: z.enum(['ring', 'evm-node']),
    timings: z.boolean(),
    simulated: z.boolean().describe('True: all data is made up by a simulated chain.'),
  }),
})
same<Same<z.output<typeof hello>, Hello>>()

const subscribed = z.strictObject({ ...accepted, snapshot: count })
same<Same<z.output<typeof subscribed>, Subscribed>>()

const warning = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('backpressure'),
    dropped: count,
    drop_limit: count,
    from_seq: count,
    to_seq: count,
  }),
  z.strictObject({
    type: z.literal('resume_out_of_window'),
    requested: z.string(),
    oldest_seqno: count,
    newest_seqno: count,
    reason: z.enum(['too_old', 'ahead', 'invalid', 'not_recorded']),
  }),
  z.strictObject({ type: z.literal('ring_gap'), from_seqno: count, to_seqno: count, blocks_dropped: count }),
  z.strictObject({ type: z.literal('ring_restart'), previous_ring_seqno: count }),
])
same<Same<z.output<typeof warning>, Warning>>()

const streamError = z.strictObject({
  code: z.enum(['empty_subscribe', 'subscribe_limit', 'invalid_subscribe', 'rate_limited']),
  message: z.string(),
})
same<Same<z.output<typeof streamError>, StreamError>>()

const proposalIdentity = {
  block_number: count,
  block_id: hex.describe('The consensus id of the proposal, as block_hash of Lifecycle; not the Ethereum hash.'),
  replaces_block_id: z
    .exactOptional(hex)
    .describe('Another proposal of this number was executed before: these figures replace its figures.'),
}

export const contentionData = z.strictObject({
  ...proposalIdentity,
  block_wall_time_ns: count,
  total_tx_time_ns: count,
  parallel_efficiency_pct: z.number().describe('90 and above is excellent, below 70 means much sequential execution.'),
  total_unique_slots: count,
  contended_slot_count: count,
  contention_ratio: z.number(),
  total_txn_count: count,
  top_contended_slots: list(z.strictObject({ address: hex, slot: hex, txn_count: count, access_count: count })),
  top_contended_contracts: list(
    z.strictObject({
      address: hex,
      total_slots: count,
      contended_slots: count,
      total_accesses: count,
      contention_score: z.number(),
    }),
  ),
  contract_edges: list(z.strictObject({ contract_a: hex, contract_b: hex, shared_txn_count: count })),
})
same<Same<z.output<typeof contentionData>, ContentionData>>()

export const conflictData = z.strictObject({
  ...proposalIdentity,
  contended_with_writer: count,
  evm_time_ns: count.nullable(),
  commit_time_ns: count.nullable(),
  depth: count,
  waves: list(count),
  factor: z.number(),
  score: z.number(),
  conflict_share: z.number(),
})
same<Same<z.output<typeof conflictData>, ConflictData>>()

export const topAccesses = z.strictObject({
  account: list(z.strictObject({ key: hex, count })),
  storage: list(z.strictObject({ key: z.tuple([hex, hex]).readonly(), count })),
})
same<Same<z.output<typeof topAccesses>, TopAccesses>>()

export const lifecycleFields = {
  block_hash: hex.describe('The consensus id, not the Ethereum hash.'),
  block_number: count,
  from_stage: stage.nullable(),
  to_stage: stage,
  time_in_previous_stage_ms: z.number().nullable(),
  block_age_ms: z.number(),
  txn_count: count,
  gas_used: count.nullable().describe('Null until the block has been executed to its end.'),
}
const lifecycle = z.strictObject(lifecycleFields)
same<Same<z.output<typeof lifecycle>, Lifecycle>>()

const rawEvent = z.strictObject({
  event_name: rawEventName,
  block_number: z.union([count, z.string().regex(/^\d+$/)]).nullable(),
  txn_idx: count.nullable(),
  txn_hash: hex.nullable(),
  commit_stage: stage.nullable(),
  payload: z.looseObject({ type: rawEventName }),
  seqno: count.describe('Sequence number in the ring, for information; not a cursor.'),
  timestamp_ns: z.string(),
})
same<Same<Pick<z.output<typeof rawEvent>, 'payload'>['payload']['type'], RawEvent['payload']['type']>>()
same<Same<Omit<z.output<typeof rawEvent>, 'payload'>, Omit<RawEvent, 'payload'>>>()

const control = z.literal(0)
const seq = z.int().min(0)

/** Every frame the server sends, by the name of its kind. */
export const STREAM_FRAMES = {
  Hello: z.strictObject({ seq: control, Hello: hello }),
  Subscribed: z.strictObject({ seq: control, Subscribed: subscribed }),
  Warning: z.strictObject({ seq: control, Warning: warning }),
  Error: z.strictObject({ seq: control, Error: streamError }),
  TPS: z.strictObject({
    seq,
    TPS: count.describe('Sent at the end of a block whose window of 2.5 blocks is whole; a block number counts once.'),
  }),
  ContentionData: z.strictObject({ seq, ContentionData: contentionData }),
  ConflictData: z.strictObject({ seq, ConflictData: conflictData }),
  TopAccesses: z.strictObject({ seq, TopAccesses: topAccesses }),
  Lifecycle: z.strictObject({ seq, Lifecycle: lifecycle }),
  Events: z.strictObject({ seq, Events: list(rawEvent) }),
} as const
type KindOf<Frame> = Frame extends unknown ? Exclude<keyof Frame, 'seq'> : never
same<Same<keyof typeof STREAM_FRAMES, KindOf<StreamFrame>>>()
