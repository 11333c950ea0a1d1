import type { RowOptions } from './block-rows.ts'
import type { ClickHouseStoreOptions } from './clickhouse-store.ts'
import type { BlockLink } from './frontier.ts'
import type { QueryErrorName } from './query-error.ts'
import type { QueryDone, QueryJob } from './query-run.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'
import type { StoreProgress } from './store.ts'

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
  /** A customer's statement; `id` names it for `interrupt`. */
  | { readonly kind: 'query'; readonly id: number; readonly job: QueryJob }
  | { readonly kind: 'interrupt'; readonly id: number }
  /** Leaves the file in order and ends. */
  | { readonly kind: 'close' }

export type StoreOptions = {
  /** The operator's server instead of the embedded database; what follows is of no concern to it then, but for `rows`. */
  readonly clickhouse?: ClickHouseStoreOptions | undefined
  readonly path: string
  readonly memoryBytes: number
  readonly threads: number
  readonly rows: RowOptions
}

/** What it answers, by the kind of the request. */
export type StoreAnswers = {
  readonly open: StoreProgress
  readonly decode: DecodeAnswer
  readonly write: null
  readonly forget: null
  readonly rewind: null
  readonly progress: StoreProgress
  readonly query: QueryAnswer
  readonly interrupt: null
  readonly close: null
}

export type QueryAnswer =
  | { readonly ok: true; readonly done: QueryDone }
  | { readonly ok: false; readonly type: QueryErrorName; readonly message: string }

export type DecodeAnswer =
  | { readonly ok: true; readonly link: BlockLink; readonly transactions: number }
  | { readonly ok: false; readonly fault: string }

export type ToStoreProcess = { readonly seq: number; readonly request: StoreRequest }
export type FromStoreProcess =
  | { readonly seq: number; readonly ok: true; readonly answer: unknown }
  | { readonly seq: number; readonly ok: false; readonly says: string }
