import type { ParsedTransaction } from '../../../solana/transaction/types.ts'

/**
 * Transactions that were put together from shreds, as one gateway thread reads them. The engine runs in another thread; `processes` connects the two.
 * All calls of one read are followed by `onBatchEnd`.
 */
export type DecodedSource = {
  /** Calls the reader with everything from now on. One reader at a time. */
  read(reader: DecodedReader): Disposable
}

export type DecodedReader = {
  /** The bytes of the data set are valid until the call returns. */
  onDataSet(set: DecodedDataSet): void
  onSlot(slot: DecodedSlot): void
  /** This thread fell behind the engine: so many data sets did not reach its streams. */
  onLost(dataSets: number): void
  /** The next read waits for the promise. */
  onBatchEnd(): Promise<void> | undefined
}

/** The data shreds [startIndex, endIndex) of a slot. */
export type DecodedDataSet = {
  readonly slot: number
  readonly startIndex: number
  readonly endIndex: number
  /**
   * Bincode of a vector of entries. Undefined where the transactions come from a node, and for a part of a large data set that ends inside an entry: the
   * whole entry comes with a later part.
   */
  readonly entries: Uint8Array | undefined
  readonly transactions: readonly DecodedTransaction[]
  /** Monotonic time at which the shred arrived that completed it. */
  readonly arrivalNanos: number
}

export type DecodedTransaction = {
  readonly parsed: ParsedTransaction
  /** The wire form, which shreds have and nodes do not send: reading it takes less time than `parsed`. */
  readonly wire?: Uint8Array | undefined
  readonly isVote: boolean
  readonly loadedWritable: readonly Uint8Array[]
  readonly loadedReadonly: readonly Uint8Array[]
  /** The same without an array for each, where they stand one after the other. */
  readonly loaded?: LoadedRange | undefined
  /** A lookup table of it is not known, so its loaded addresses are missing. */
  readonly hasUnknownTable: boolean
}

/** Loaded addresses of 32 bytes each, one after the other from `at` on: the writable ones first. */
export type LoadedRange = {
  readonly bytes: Uint8Array
  readonly at: number
  readonly writable: number
  readonly readonly: number
}

/** What happened to a slot. */
export type DecodedSlot =
  | { readonly kind: 'first-shred'; readonly slot: number; readonly parentSlot: number | undefined }
  /** All its data sets were delivered. */
  | { readonly kind: 'completed'; readonly slot: number; readonly parentSlot: number | undefined }
  /** The leader has changed the parent, if it is known to this one. */
  | {
      readonly kind: 'parent-changed'
      readonly slot: number
      readonly parentSlot: number | undefined
      /** Data sets that end at this shred or before it are void. */
      readonly voidBeforeIndex: number
    }
  /** Part of it is lost; the reason is a text for the client. */
  | {
      readonly kind: 'lost'
      readonly slot: number
      readonly parentSlot: number | undefined
      readonly reason: string
      /** All shreds of it arrived, and this server did not deliver what they contain. */
      readonly isDecoded?: boolean
    }
