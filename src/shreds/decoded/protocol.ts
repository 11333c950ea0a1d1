import type { EngineOptions } from './engine.ts'
import type { EngineCounts, SlotReport } from './events.ts'
import type { TableAccount, TableChanges } from './lookup-tables.ts'
import type { MergeCounts } from './node-streams/merge.ts'
import type { MergeWindowOptions } from './node-streams/merge-window.ts'

/** What the engine's thread is started with: plain data and shared memory. */
export type DecodedThreadOptions = {
  readonly engine: EngineOptions
  readonly lookupTablesMax: number
  /** Memory of input-ring.ts. */
  readonly input: SharedArrayBuffer
  /** Memory of output-ring.ts. */
  readonly output: SharedArrayBuffer
  /** Transactions of nodes that are merged; missing where there are none. */
  readonly upstream?: (MergeWindowOptions & { readonly records: SharedArrayBuffer }) | undefined
}

export type ToDecoded =
  | { readonly kind: 'tables'; readonly accounts: readonly TableAccount[] }
  | { readonly kind: 'slot-length'; readonly ms: number }
  | { readonly kind: 'stop' }

export type FromDecoded =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly message: string }
  | ({ readonly kind: 'tables' } & TableChanges)
  | DecodedThreadReport
  | { readonly kind: 'stopped' }

export type DecodedThreadReport = {
  readonly kind: 'report'
  /** Since the thread started. */
  readonly counts: EngineCounts
  readonly newestSlot: number | undefined
  readonly openSlots: number
  readonly heldBytes: number
  readonly lookupTables: number
  /** Transactions delivered without loaded addresses because a lookup table was not known. */
  readonly unresolved: number
  /** Data sets that were larger than a record of the output ring. */
  readonly dataSetsTooLarge: number
  /** Shreds that found the input ring full, since the memory was made. */
  readonly inputDropped: number
  readonly merge?: MergeReport | undefined
  /** Slots closed since the previous report. */
  readonly slots: readonly SlotReport[]
}

export type MergeReport = {
  readonly counts: MergeCounts
  /** Seconds by which a source was before the other, since the previous report. */
  readonly leads: { readonly own: readonly number[]; readonly upstream: readonly number[] }
}
