import type { LifecycleRecord } from '../../contract/execution-routes.ts'
import type {
  ConflictData,
  ContentionData,
  Hex,
  Lifecycle,
  RawEventName,
  TopAccesses,
} from '../../contract/stream-events.ts'

/**
 * What a source of execution data tells the service, in the order in which it is to be published. A source may run in another thread,
 * so these are plain data. The ring source (`ring-source.ts`) and the node source both speak it.
 */
export type SourceMessage =
  /** Events were taken in: the source is alive. Comes last in its batch of messages. */
  | { kind: 'progress'; position: SourcePosition }
  /** A block entered a stage; `record` is all that is known of it. */
  | { kind: 'lifecycle'; change: Lifecycle; record: LifecycleRecord }
  /** A block was executed: more is known of it, but its stage is the same. */
  | { kind: 'record'; record: LifecycleRecord }
  /** Blocks that nobody will hear of again. */
  | { kind: 'forgotten'; ids: Hex[] | 'all' }
  | { kind: 'tps'; tps: number; blockNumber: number }
  | { kind: 'contention'; data: ContentionData; conflicts: ConflictData }
  | { kind: 'top-accesses'; data: TopAccesses }
  /** A whole block, for JSON-RPC. */
  | { kind: 'block'; block: BlockContent }
  /** From here on all raw events of these names are told, and of no others. */
  | { kind: 'recording'; names: RawEventName[]; version: number }
  | { kind: 'events'; events: RawEventPart[] }
  /** Source events were lost. */
  | { kind: 'gap'; fromSeqno: number; toSeqno: number; blocksDropped: number }
  /** The source begins anew, as after a restart of the node. */
  | { kind: 'restart'; previousSeqno: number }
  /** A ring was opened, and is read this way from now on. */
  | { kind: 'opened'; mode: 'positional' | 'mapped' | 'unpacked' }
  /** Why nothing can be read at the moment; undefined when it can again. */
  | { kind: 'failure'; failure: SourceFailure | undefined }

export type SourcePosition = {
  /** The last event read; for a node the last block. */
  seqno: number
  lagEvents: number
  /** When these events were taken from their source, as `processTimeMs` counts. */
  readMs: number
  /** Totals since the source was started. */
  stats: SourceStats
}

export type SourceStats = {
  events: number
  gaps: number
  eventsLost: number
  payloadsLost: number
  recordErrors: number
  unknownTypes: number
  blocksDropped: number
  blocksIncomplete: number
}

export const NO_STATS: Readonly<SourceStats> = {
  events: 0,
  gaps: 0,
  eventsLost: 0,
  payloadsLost: 0,
  recordErrors: 0,
  unknownTypes: 0,
  blocksDropped: 0,
  blocksIncomplete: 0,
}

export type SourceFailure = { code: 'missing' | 'refused' | 'unreadable'; message: string }

/** A block as the events it consists of, which are decoded when a JSON-RPC call asks for them. */
export type BlockContent = {
  readonly number: number
  /** Consensus id; a node without one gives the hash. */
  readonly id: Hex
  readonly hash: Hex
  readonly chainId: number | null
  readonly descriptors: Uint8Array
  readonly payloads: Uint8Array
  readonly payloadAt: Int32Array
}

/** One raw event, encoded once, with what filters ask about. */
export type RawEventPart = {
  name: RawEventName
  /** The element of an `Events` frame. */
  json: string
  fields: FilterFields
  /** Fields of its transaction's TxnHeaderStart, once that has been seen. */
  header: FilterFields | undefined
}

export type FilterFields = { txnIndex?: number; logIndex?: number; addresses?: Hex[]; topics?: Hex[] }

/** What every source is to the service. */
export type Source = AsyncDisposable & {
  readonly kind: 'ring' | 'evm-node'
  /** False where durations are not known. */
  readonly timings: boolean
  /** Raw events that somebody listens to; others need not be made. Answered by a `recording` message once it holds. */
  setWanted(wanted: { readonly names: readonly RawEventName[]; readonly version: number }): void
}

/** Starts a source; `onMessages` gets what belongs together, in order. It may be called until the source is closed. */
export type StartSource = (onMessages: (messages: SourceMessage[]) => void) => Source | Promise<Source>
