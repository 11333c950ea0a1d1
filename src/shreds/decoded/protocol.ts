import type { EngineOptions } from './engine.ts'
import type { EngineCounts, SlotReport } from './events.ts'
import type { TableAccount, TableChanges } from './lookup-tables.ts'

/** What the engine's thread is started with: plain data and shared memory. */
export type DecodedThreadOptions = {
  readonly engine: EngineOptions
  readonly lookupTablesMax: number
  /** Of input-ring.ts. */
  readonly input: SharedArrayBuffer
  /** Of output-ring.ts. */
  readonly output: SharedArrayBuffer
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
  /** Data sets that were too long for the output ring. */
  readonly tooLong: number
  /** Shreds that found the input ring full, since the memory was made. */
  readonly inputDropped: number
  /** Slots closed since the previous report. */
  readonly slots: readonly SlotReport[]
}
