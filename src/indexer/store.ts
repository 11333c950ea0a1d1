import type { BatchRows } from './ingest/batch-rows.ts'
import type { SlotRange } from './ingest/slot-ranges.ts'

/** Everything a batch of blocks means, written in one go or not at all. */
export type WriteBatch = {
  /** Names the content: the same batch again has the same name, another one never. */
  readonly name: string
  /** Which slots become complete by it. */
  readonly range: SlotRange
  /** One piece after another; together they are the batch. */
  readonly rows: readonly BatchRows[]
  /** Blocks up to here are final. */
  readonly finalizedSlot: number
  readonly tipSlot: number
}

/** A block that is in the store, by what links it to its neighbours. */
export type StoredBlock = { readonly slot: number; readonly blockhash: string }

export type StoreProgress = {
  readonly ranges: readonly SlotRange[]
  /** The newest blocks of the last range, oldest first: enough to tell a fork. */
  readonly recent: readonly StoredBlock[]
  readonly finalizedSlot: number
  readonly lastBatch: string
}

/** Where rows are kept: the embedded database, or the operator's ClickHouse. */
export type Store = AsyncDisposable & {
  progress(): Promise<StoreProgress>
  /** Resolves when the batch is safe. Rejected, it may be tried again as it is: nothing is doubled. */
  write(batch: WriteBatch): Promise<void>
  /** Forgets every block from this slot on: the chain went another way. */
  rewind(fromSlot: number): Promise<void>
}

/** How many blocks back a fork is recognised: more than Solana lets pass until a block is final (32 slots). */
export const RECENT_BLOCKS = 256
