import type { LifecycleRecord } from '../../contract/execution-routes.ts'
import type {
  ConflictData,
  ContentionData,
  Hex,
  Lifecycle,
  RawEventName,
  TopAccesses,
} from '../../contract/stream-events.ts'
import type { ContractAccesses } from '../../evm/fold/contention.ts'
import type { RawEventSelection } from './raw-event-demand.ts'

/**
 * The messages of a source of execution data, in the order in which they are published. A source may run in another thread, so they
 * are plain data.
 */
export type SourceMessage =
  /** Events were read: the source is alive. The last message of a batch. */
  | { kind: 'progress'; position: SourcePosition }
  /** A block entered a stage; `record` is its complete lifecycle record. `timeMs`: when its event was recorded (unix ms). */
  | { kind: 'lifecycle'; change: Lifecycle; record: LifecycleRecord; timeMs?: number }
  /** A block was executed: its lifecycle record has more fields, its stage is the same. */
  | { kind: 'lifecycle-record'; record: LifecycleRecord }
  /** Blocks that are no longer tracked. */
  | { kind: 'forgotten'; ids: Hex[] | 'all' }
  /** A block has ended. `tps` is null where its window is not whole. */
  | { kind: 'tps'; tps: number | null; blockNumber: number; id?: Hex; timeMs?: number }
  | { kind: 'contention'; data: ContentionData; conflicts: ConflictData; accesses?: ContractAccesses }
  /** `accountsSeen`: all accesses of accounts since the last reset. */
  | { kind: 'top-accesses'; data: TopAccesses; accountsSeen?: number }
  /** A complete block, for JSON-RPC. */
  | { kind: 'block'; block: BlockContent }
  /** From here on all raw events of these names are sent, and no others. */
  | { kind: 'raw-events-active'; names: RawEventName[]; version: number }
  | { kind: 'events'; events: RawEventPart[] }
  /** Source events were lost. */
  | { kind: 'gap'; fromSeqno: number; toSeqno: number; blocksDropped: number }
  /** The source starts again, as after a restart of the node. */
  | { kind: 'restart'; previousSeqno: number }
  /** A ring was opened; `mode` is how it is read. */
  | { kind: 'opened'; mode: 'positional' | 'mapped' | 'unpacked' }
  /** Why the source cannot be read; undefined when it can again. */
  | { kind: 'failure'; failure: SourceFailure | undefined }

export type SourcePosition = {
  /** The last event read. */
  seqno: number
  lagEvents: number
  /** When these events were read, on the clock of `processTimeMs`. */
  readMs: number
  /** When the newest event was recorded (unix ms), if it may be older than the reading of it, as in the ring of a node that has ended. */
  recordedMs?: number
  /** Totals since the source started. */
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
  /** Consensus events of blocks that were never seen. */
  unknownBlocks: number
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
  unknownBlocks: 0,
}

export type SourceFailure = { code: 'missing' | 'refused' | 'unreadable'; message: string }

/** A block as its encoded events; they are decoded when a JSON-RPC call needs them. */
export type BlockContent = {
  readonly number: number
  /** Consensus id; the block hash for a node without one. */
  readonly id: Hex
  readonly hash: Hex
  readonly chainId: number | null
  readonly descriptors: Uint8Array
  readonly payloads: Uint8Array
  readonly payloadAt: Int32Array
}

/** One raw event, encoded once, with the fields that filters use. */
export type RawEventPart = {
  name: RawEventName
  /** The element of an `Events` frame. */
  json: string
  fields: FilterFields
  /** Fields of its transaction's TxnHeaderStart, once that has been seen. */
  header: FilterFields | undefined
}

export type FilterFields = { txnIndex?: number; logIndex?: number; addresses?: Hex[]; topics?: Hex[] }

/** A running source. */
export type Source = AsyncDisposable & {
  readonly kind: 'ring' | 'evm-node'
  /** False where the source has no durations. */
  readonly hasTimings: boolean
  /** The data is made up. */
  readonly isSimulated: boolean
  /** Sets the raw events to produce. The message `raw-events-active` confirms it once it is in effect. */
  selectRawEvents(selection: RawEventSelection): void
}

/** Starts a source. `onMessages` may be called until the source is closed. */
export type StartSource = (onMessages: (messages: SourceMessage[]) => void) => Source | Promise<Source>
