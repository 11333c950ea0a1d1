import type { ClickHouseStoreOptions } from '../clickhouse/store.ts'
import type { RowOptions } from '../ingest/block-rows.ts'
import type { BlockLink } from '../ingest/frontier.ts'
import type { RawBlock } from '../ingest/raw-block.ts'
import type { SlotRange } from '../ingest/slot-ranges.ts'
import type { QueryErrorName } from '../query/error.ts'
import type { StoreProgress } from '../store.ts'
import type { StopReason } from './query-runner.ts'
import type { ResultBudgetOptions } from './result-budget.ts'
import type { QueryJob, QuerySummary } from './run-query.ts'

/** What the parent asks of the process that holds the database. */
export type StoreRequest =
  | { readonly kind: 'open'; readonly options: StoreOptions }
  /** Looks into a block and keeps what it means until it is written or forgotten. */
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
  /** A customer's statement; `id` names it from then on, and `owner` is whose it is. */
  | { readonly kind: 'query'; readonly id: number; readonly job: QueryJob; readonly owner: string }
  | { readonly kind: 'interrupt'; readonly id: number; readonly why: StopReason }
  /** The next part of its result; a message is never larger than one. */
  | { readonly kind: 'read'; readonly id: number }
  | { readonly kind: 'discard'; readonly id: number }
  /** Leaves the file in order and ends. */
  | { readonly kind: 'close' }

export type StoreOptions = {
  /** The operator's server instead of the embedded database; what follows is of no concern to it then, but for `rows`. */
  readonly clickhouse?: ClickHouseStoreOptions | undefined
  readonly path: string
  readonly memoryBytes: number
  readonly threads: number
  readonly rows: RowOptions
  readonly results: ResultBudgetOptions
}

/** What it answers, by the kind of the request. */
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
  /** The result has `bytes`; what does not fit into `first` is read part by part. */
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
