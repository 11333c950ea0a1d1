import type { BatchRows } from '../ingest/batch-rows.ts'
import type { SlotRange } from '../ingest/slot-ranges.ts'

/** The rows of a batch of blocks, written completely or not at all. */
export type WriteBatch = {
  /** Identifies the content: a repeated batch has the same name, and no other batch has it. */
  readonly name: string
  /** Slots that are complete after the write. */
  readonly range: SlotRange
  /** Blocks from this slot on are of an abandoned fork: they are deleted together with the write. */
  readonly rewindFrom?: number | undefined
  /** Pieces of the batch, in order. */
  readonly rows: readonly BatchRows[]
  /** States of accounts that a later block of the batch replaced, in case that block is replaced itself. */
  readonly overwritten?: BatchRows | undefined
  /** Blocks up to this slot are finalized. */
  readonly finalizedSlot: number
  readonly tipSlot: number
}

/** A block in the store, by what links it to its child. */
export type StoredBlock = { readonly slot: number; readonly blockhash: string }

export type StoreProgress = {
  readonly ranges: readonly SlotRange[]
  /** The newest blocks of the last range, oldest first, to recognise a fork. */
  readonly recent: readonly StoredBlock[]
  readonly finalizedSlot: number
  readonly lastBatch: string
}

/** Stores rows: the embedded database, or the operator's ClickHouse. */
export type Store = AsyncDisposable & {
  progress(): Promise<StoreProgress>
  /** Resolves when the batch is durable. A rejected batch may be written again: no row is duplicated. */
  write(batch: WriteBatch): Promise<void>
  /** Deletes every block from this slot on, where nothing replaces them yet. */
  rewind(fromSlot: number): Promise<void>
}

/** Blocks within which a fork is recognised: more than Solana needs to finalize a block (32 slots). */
export const RECENT_BLOCKS = 256
