/**
 * The WebSocket stream of the execution service: every frame a server sends and every message a client may send. Frames are JSON
 * objects with two keys, `seq` first and then the name of their kind: `{"seq":9,"TPS":172}`.
 *
 * `seq` grows with every frame of the service, across restarts too, and is the cursor of a resume. Missing numbers are normal: frames
 * outside the subscription have a number too and are not delivered. Control frames (Hello, Subscribed, Warning, Error) have
 * `seq` 0 and never move a cursor. Frames of a snapshot share the newest number at that moment; `snapshot` in Hello and Subscribed
 * is their count. The `seq` of all other frames grows strictly on each connection.
 */

export type Hex = `0x${string}`

/** The default subscription. */
export const DEFAULT_KINDS = ['TPS', 'ContentionData', 'TopAccesses', 'Lifecycle'] as const

/** Kinds folded from events; ConflictData only on request. */
export const FIGURE_KINDS = [...DEFAULT_KINDS, 'ConflictData'] as const
export type FigureKind = (typeof FIGURE_KINDS)[number]

/** Raw events of the ring that can be subscribed to; they arrive in `Events` frames. */
export const RAW_EVENTS = [
  'RecordError',
  'BlockStart',
  'BlockReject',
  'BlockPerfEvmEnter',
  'BlockPerfEvmExit',
  'BlockEnd',
  'BlockQC',
  'BlockFinalized',
  'BlockVerified',
  'TxnHeaderStart',
  'TxnAccessListEntry',
  'TxnAuthListEntry',
  'TxnHeaderEnd',
  'TxnReject',
  'TxnPerfEvmEnter',
  'TxnPerfEvmExit',
  'TxnEvmOutput',
  'TxnLog',
  'TxnCallFrame',
  'TxnEnd',
  'AccountAccessListHeader',
  'AccountAccess',
  'StorageAccess',
  'EvmError',
] as const
export type RawEventName = (typeof RAW_EVENTS)[number]

/** Not offered by default: most of the volume of a ring, useful to few clients. */
export const BLOCKED_BY_DEFAULT = [
  'RecordError',
  'BlockPerfEvmEnter',
  'BlockPerfEvmExit',
  'TxnAccessListEntry',
  'TxnAuthListEntry',
  'TxnHeaderEnd',
  'TxnPerfEvmEnter',
  'TxnPerfEvmExit',
  'AccountAccessListHeader',
  'AccountAccess',
  'StorageAccess',
  'EvmError',
] as const satisfies readonly RawEventName[]

export type StreamItem = FigureKind | RawEventName

/** Paths of the WebSocket endpoint. */
export const STREAM_PATHS = ['/v1/ws', '/ws', '/'] as const

// ---- messages of the client

/** Fields of one filter are combined with AND, filters with OR. An event without the field does not match. */
export type EventFilter = {
  /** Events that this filter applies to; by default all subscribed ones. Events without a filter pass. */
  readonly events?: readonly RawEventName[]
  readonly txn_index?: { readonly min?: number; readonly max?: number }
  /** Index within the transaction, as in the ring. */
  readonly log_index?: { readonly min?: number; readonly max?: number }
  /** Any of these: emitter of a log, target or caller of a call frame, sender or receiver of a transaction. */
  readonly address?: Hex | readonly Hex[]
  /** Leading topics of a log; null matches any. */
  readonly topics?: readonly (Hex | readonly Hex[] | null)[]
}

/** Names of the fields a filter may have, as Hello lists them. */
export const AVAILABLE_FILTERS = ['txn_index', 'log_index', 'address', 'topics'] as const
/** Filters of a subscription, topics of a filter, and values of an address or of one topic, at most. */
export const FILTER_LIMITS = { filters: 16, topics: 4, values: 64 } as const

export type ExtendedSubscribe = {
  readonly events: readonly StreamItem[]
  readonly filters?: readonly EventFilter[]
  /** When a TxnHeaderStart passes its filters, every later event of that transaction that is not blocked follows. */
  readonly correlate?: boolean
  /** Only "Proposed": events are sent as they happen. For later stages follow Lifecycle. */
  readonly min_stage?: 'Proposed'
}

/**
 * Replaces the subscription. Also in the URL: `?subscribe=TPS,Lifecycle`, or the extended form as JSON. `?resume_from=N` continues
 * after frame N of a connection with the same subscription.
 */
export type SubscribeMessage = { readonly subscribe: readonly StreamItem[] | ExtendedSubscribe }

// ---- control frames, all with seq 0

export type StreamLimits = {
  /** Maximum number of frames in a resume. */
  readonly backfill_events: number
  /** Frames queued for one client; further frames are dropped and reported. */
  readonly buffer_per_client: number
  /** Frames dropped for one client before it is closed with 1008. */
  readonly slow_off_limit: number
  /** Seconds between pings of the server. */
  readonly heartbeat_interval: number
  /** Seconds without any frame from the client, pongs included, before it is disconnected. */
  readonly heartbeat_timeout: number
  /** Items one subscription may have. */
  readonly max_subscribes: number
}

/** The first frame of every connection. */
export type Hello = {
  readonly protocol_version: 1
  readonly server_version: string
  /** Null until the first block is seen. */
  readonly chain_id: number | null
  readonly block_number: number
  readonly available_filters: readonly string[]
  readonly blocked_events: readonly RawEventName[]
  readonly limits: StreamLimits
  /** True when the frames after the cursor follow; false when a snapshot does. */
  readonly resumed: boolean
  /** Newest `seq` of the service: the cursor of a client that has received nothing else. */
  readonly newest_seqno: number
  /** The complete subscription in effect. */
  readonly subscribed: AcceptedSubscription
  /** Frames of a snapshot that follow (after a Warning, if one comes). */
  readonly snapshot: number
  /**
   * A source without timings (traces of a node) has 0 for every duration in ContentionData. `simulated`: all data is made up by a simulated chain.
   */
  readonly source: { readonly kind: 'ring' | 'evm-node'; readonly timings: boolean; readonly simulated: boolean }
}

export type AcceptedSubscription = {
  readonly events: readonly StreamItem[]
  readonly filters: readonly EventFilter[]
  readonly correlate: boolean
  readonly min_stage: 'Proposed'
}

/** The response to a subscribe message that changed the subscription. */
export type Subscribed = AcceptedSubscription & {
  /** Frames of a snapshot that follow, for kinds that were not in the set before. */
  readonly snapshot: number
}

export type Warning =
  /** Frames were dropped because this client is too slow. Sent before the next delivered frame, and for each 1,000 dropped. */
  | {
      readonly type: 'backpressure'
      /** Frames dropped on this connection so far. */
      readonly dropped: number
      readonly drop_limit: number
      /** Numbers of the first and last frame dropped since the last of these warnings. */
      readonly from_seq: number
      readonly to_seq: number
    }
  | {
      readonly type: 'resume_out_of_window'
      /** As in the URL. */
      readonly requested: string
      readonly oldest_seqno: number
      readonly newest_seqno: number
      /** `not_recorded`: raw events of this subscription were not recorded continuously since the cursor. */
      readonly reason: 'too_old' | 'ahead' | 'invalid' | 'not_recorded'
    }
  /** Events of the ring were lost before they could be read. Blocks they belonged to have no figures. */
  | {
      readonly type: 'ring_gap'
      readonly from_seqno: number
      readonly to_seqno: number
      readonly blocks_dropped: number
    }
  /** The node restarted: windows and counters start again. */
  | { readonly type: 'ring_restart'; readonly previous_ring_seqno: number }

export type StreamErrorCode = 'empty_subscribe' | 'subscribe_limit' | 'invalid_subscribe' | 'rate_limited'

/** A message was refused; the subscription is unchanged. */
export type StreamError = { readonly code: StreamErrorCode; readonly message: string }

// ---- payloads

export type Stage = 'Proposed' | 'Voted' | 'Finalized' | 'Verified' | 'Rejected'

/** Which proposal the figures belong to: before finalization several proposals may share a number. */
export type ProposalIdentity = {
  readonly block_number: number
  /** The consensus id of the proposal, as `block_hash` of Lifecycle; not the Ethereum hash. */
  readonly block_id: Hex
  /** Another proposal of the same number was executed before; these figures replace its figures. Left out where there was none. */
  readonly replaces_block_id?: Hex
}

/** Once per executed proposal, at its end. */
export type ContentionData = ProposalIdentity & {
  readonly block_wall_time_ns: number
  readonly total_tx_time_ns: number
  /**
   * 90 and above is excellent, below 70 means much sequential execution. The time of a transaction includes waiting for the one before
   * it, so values in the high nineties are normal even with heavy conflicts: look at ConflictData too.
   */
  readonly parallel_efficiency_pct: number
  readonly total_unique_slots: number
  readonly contended_slot_count: number
  readonly contention_ratio: number
  readonly total_txn_count: number
  readonly top_contended_slots: readonly ContendedSlot[]
  readonly top_contended_contracts: readonly ContendedContract[]
  readonly contract_edges: readonly ContractEdge[]
}

export type ContendedSlot = {
  readonly address: Hex
  readonly slot: Hex
  readonly txn_count: number
  readonly access_count: number
}

export type ContendedContract = {
  readonly address: Hex
  readonly total_slots: number
  readonly contended_slots: number
  readonly total_accesses: number
  readonly contention_score: number
}

export type ContractEdge = { readonly contract_a: Hex; readonly contract_b: Hex; readonly shared_txn_count: number }

/** Right after ContentionData: real conflicts instead of shared reads, and the phases of execution. */
export type ConflictData = ProposalIdentity & {
  /** Contended storage slots that a transaction changed. */
  readonly contended_with_writer: number
  /** Between the block's perf markers; null without them. */
  readonly evm_time_ns: number | null
  /** From the end of the EVM to the end of the block. */
  readonly commit_time_ns: number | null
  /** Waves of transactions needed one after the other. */
  readonly depth: number
  /** Transactions in each of the first 64 waves. */
  readonly waves: readonly number[]
  /** Transactions / depth. */
  readonly factor: number
  /** round(100 × (1 − 1 / factor)). */
  readonly score: number
  /** Share of transactions that must wait for an earlier one. These are not retries, which the ring does not record. */
  readonly conflict_share: number
}

/** Most accessed accounts and storage slots since the last reset, in descending order. A count is too high by at most the smallest count listed. */
export type TopAccesses = {
  readonly account: readonly { readonly key: Hex; readonly count: number }[]
  readonly storage: readonly { readonly key: readonly [address: Hex, slot: Hex]; readonly count: number }[]
}

/** A block entered a stage. Times are those of the source. */
export type Lifecycle = {
  /** The consensus id, not the Ethereum hash. */
  readonly block_hash: Hex
  readonly block_number: number
  readonly from_stage: Stage | null
  readonly to_stage: Stage
  readonly time_in_previous_stage_ms: number | null
  readonly block_age_ms: number
  readonly txn_count: number
  /** Null until the block has been executed to its end. */
  readonly gas_used: number | null
}

/** One event of the ring. Integers above 2^53 - 1 are decimal text; 256-bit ones are hex quantities. */
export type RawEvent = {
  readonly event_name: RawEventName
  /** The number of the block that the event belongs to or refers to. */
  readonly block_number: number | string | null
  readonly txn_idx: number | null
  readonly txn_hash: Hex | null
  /** Stage of its block at the event; null for events without a block. */
  readonly commit_stage: Stage | null
  readonly payload: { readonly type: RawEventName } & Readonly<Record<string, unknown>>
  /** Sequence number in the ring, for information; not a cursor. */
  readonly seqno: number
  readonly timestamp_ns: string
}

// ---- frames

type ControlFrame =
  | { readonly seq: 0; readonly Hello: Hello }
  | { readonly seq: 0; readonly Subscribed: Subscribed }
  | { readonly seq: 0; readonly Warning: Warning }
  | { readonly seq: 0; readonly Error: StreamError }

type MetricFrame =
  | { readonly seq: number; readonly TPS: number }
  | { readonly seq: number; readonly ContentionData: ContentionData }
  | { readonly seq: number; readonly ConflictData: ConflictData }
  | { readonly seq: number; readonly TopAccesses: TopAccesses }
  | { readonly seq: number; readonly Lifecycle: Lifecycle }
  | { readonly seq: number; readonly Events: readonly RawEvent[] }

export type StreamFrame = ControlFrame | MetricFrame

/** Close codes of the server. 1000 is never sent on an error. */
export const STREAM_CLOSE = {
  /** Too many frames dropped, or too many messages. */
  policy: 1008,
  messageTooBig: 1009,
  /** The service restarts: reconnect with the cursor. */
  restart: 1012,
  /** The token expired or was revoked. */
  unauthorized: 4401,
} as const
