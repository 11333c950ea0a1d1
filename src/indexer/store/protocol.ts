import type { ClickHouseStoreOptions } from '../clickhouse/store.ts'
import type { ResultBudgetOptions } from '../duckdb/held-result.ts'
import type { RowOptions } from '../ingest/block-rows.ts'
import type { BlockLink } from '../ingest/frontier.ts'
import type { RawBlock } from '../ingest/raw-block.ts'
import type { SlotRange } from '../ingest/slot-ranges.ts'
import type { QueryErrorName } from '../query/error.ts'
import type { QueryJob } from '../query/request.ts'
import type { SessionChange } from '../session/session-statement.ts'
import type { StoreProgress } from './store.ts'

/** What is known about a result before its first row. */
export type ResultHead = {
  readonly format: string
  readonly contentType: string
  /** Newest slot up to which the tables were complete when the query ran. */
  readonly coverageSlot: number
  /** What the statement changes for the later ones of its session. */
  readonly sessionChange?: SessionChange | undefined
}

/** What is known about a result after its last row. */
export type ResultEnd = { readonly rows: number; readonly bytes: number; readonly elapsedSeconds: number }

export type InterruptReason = 'timeout' | 'cancelled'

/** Requests from the parent to the database process. */
export type StoreRequest =
  | { readonly kind: 'open'; readonly options: StoreOptions }
  /** Decodes a block and keeps its rows until they are written or forgotten. */
  | { readonly kind: 'decode'; readonly id: number; readonly raw: RawBlock }
  | {
      readonly kind: 'write'
      readonly ids: readonly number[]
      readonly name: string
      readonly range: SlotRange
      readonly rewindFrom?: number | undefined
      readonly finalizedSlot: number
      readonly tipSlot: number
    }
  | { readonly kind: 'forget'; readonly ids: readonly number[] }
  | { readonly kind: 'rewind'; readonly fromSlot: number }
  | { readonly kind: 'progress' }
  /** A customer's statement; `id` identifies it in later requests, and `owner` is its subscription. */
  | { readonly kind: 'query'; readonly id: number; readonly job: QueryJob; readonly owner: string }
  | { readonly kind: 'interrupt'; readonly id: number; readonly reason: InterruptReason }
  /** The next part of its result; a message is never larger than one part. */
  | { readonly kind: 'read'; readonly id: number }
  | { readonly kind: 'discard'; readonly id: number }
  /** Closes the database. */
  | { readonly kind: 'close' }

export type StoreOptions = {
  /** The operator's server in place of the embedded database; of the other options only `rows` applies to it. */
  readonly clickhouse?: ClickHouseStoreOptions | undefined
  readonly path: string
  readonly memoryBytes: number
  /** Embedded database only: bytes of appended texts after which a checkpoint moves its log into the file earlier. */
  readonly logTextBytesMax?: number | undefined
  /** Most bytes of cached pages while no query runs, where that is less than their share of `memoryBytes`. */
  readonly idleBytesMax?: number | undefined
  readonly threads: number
  readonly rows: RowOptions
  readonly results: ResultBudgetOptions
}

/** Responses, by the kind of the request. */
export type StoreResponses = {
  readonly open: StoreProgress
  readonly decode: DecodeResponse
  /** Why final states of accounts could not be moved to their table; the batch itself is written. */
  readonly write: string | null
  readonly forget: null
  readonly rewind: null
  readonly progress: StoreProgress
  readonly query: QueryResponse
  readonly interrupt: null
  readonly read: ReadResponse
  readonly discard: null
  readonly close: null
}

export type QueryResponse =
  /** `first` is the first part of the result, and `read` requests the others. `end` is undefined while the query is still running. */
  | { readonly ok: true; readonly head: ResultHead; readonly first: Uint8Array; readonly end: ResultEnd | undefined }
  | QueryFailure

export type QueryFailure = {
  readonly ok: false
  readonly type: QueryErrorName
  readonly message: string
  readonly retryAfterSeconds?: number | undefined
  /** The statement did not pass its checks, so it was not run. */
  readonly isUnrun?: boolean | undefined
}

/** `end` comes with the last part. */
export type ReadResponse =
  | { readonly ok: true; readonly part: Uint8Array; readonly end: ResultEnd | undefined }
  | QueryFailure

export type DecodeResponse =
  | { readonly ok: true; readonly link: BlockLink; readonly transactions: number }
  | { readonly ok: false; readonly fault: string }

export type ToStoreProcess = { readonly seq: number; readonly request: StoreRequest }
export type FromStoreProcess =
  | { readonly seq: number; readonly ok: true; readonly response: unknown }
  | { readonly seq: number; readonly ok: false; readonly message: string }
