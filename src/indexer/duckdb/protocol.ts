import type { ClickHouseStoreOptions } from '../clickhouse/store.ts'
import type { RowOptions } from '../ingest/block-rows.ts'
import type { BlockLink } from '../ingest/frontier.ts'
import type { RawBlock } from '../ingest/raw-block.ts'
import type { SlotRange } from '../ingest/slot-ranges.ts'
import type { QueryErrorName } from '../query/error.ts'
import type { QueryJob } from '../query/request.ts'
import type { SessionChange } from '../session/session-statement.ts'
import type { StoreProgress } from '../store.ts'
import type { ResultBudgetOptions } from './held-result.ts'

/** What the response headers state about a result. */
export type QuerySummary = {
  readonly format: string
  readonly contentType: string
  readonly rows: number
  readonly elapsedSeconds: number
  /** Newest slot up to which the tables were complete when the query ran. */
  readonly coverageSlot: number
  /** What the statement changes for the later ones of its session. */
  readonly sessionChange?: SessionChange | undefined
}

export type StopReason = 'timeout' | 'cancelled'

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
      readonly finalizedSlot: number
      readonly tipSlot: number
    }
  | { readonly kind: 'forget'; readonly ids: readonly number[] }
  | { readonly kind: 'rewind'; readonly fromSlot: number }
  | { readonly kind: 'progress' }
  /** A customer's statement; `id` identifies it in later requests, and `owner` is its subscription. */
  | { readonly kind: 'query'; readonly id: number; readonly job: QueryJob; readonly owner: string }
  | { readonly kind: 'interrupt'; readonly id: number; readonly reason: StopReason }
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
  readonly threads: number
  readonly rows: RowOptions
  readonly results: ResultBudgetOptions
}

/** Responses, by the kind of the request. */
export type StoreResponses = {
  readonly open: StoreProgress
  readonly decode: DecodeResponse
  readonly write: null
  readonly forget: null
  readonly rewind: null
  readonly progress: StoreProgress
  readonly query: QueryResponse
  readonly interrupt: null
  readonly read: Uint8Array
  readonly discard: null
  readonly close: null
}

export type QueryResponse =
  /** The result has `bytes` in total; `first` is its first part, and `read` requests the others. */
  | { readonly ok: true; readonly done: QuerySummary & { readonly bytes: number; readonly first: Uint8Array } }
  | {
      readonly ok: false
      readonly type: QueryErrorName
      readonly message: string
      readonly retryAfterSeconds?: number | undefined
    }

export type DecodeResponse =
  | { readonly ok: true; readonly link: BlockLink; readonly transactions: number }
  | { readonly ok: false; readonly fault: string }

export type ToStoreProcess = { readonly seq: number; readonly request: StoreRequest }
export type FromStoreProcess =
  | { readonly seq: number; readonly ok: true; readonly response: unknown }
  | { readonly seq: number; readonly ok: false; readonly message: string }
