import { ENTRY_HEAD_BYTES } from '../../solana/shred/entry.ts'
import { type ScannedTransaction, scanTransaction } from '../../solana/transaction/scan.ts'
import { isMarker } from './data-set.ts'
import type { DataSet } from './events.ts'
import { copyPayloads, type HeldShreds, payloadBytes, type ShredCells } from './shred-cells.ts'

/** FEC sets of a data set that is decoded with the shred that completes it: 123 kB. Leaders make data sets of one or two. */
export const DIRECT_FEC_SETS_MAX = 4
/** A larger one is delivered in parts of this length, or up to twice as long where an entry is. */
const PART_BYTES = 128 * 1024
/** Copied in one step: 1 MB. */
const FEC_SETS_PER_STEP = 32
const COUNT_BYTES = 8

export type LargeDataSet = Omit<DataSet, 'kind' | 'entriesBytes' | 'entries' | 'transactions' | 'part'> & {
  /** In order. */
  readonly sets: readonly HeldShreds[]
}

/** A run of entries in the batch. */
type Part = {
  readonly from: number
  readonly to: number
  /** That begin in it. */
  readonly entries: number
  /** Where its transactions begin. */
  readonly transactionsAt: readonly number[]
  readonly isContinuation: boolean
  readonly isContinued: boolean
}

/**
 * Decodes a data set in steps of about a millisecond: a slot may be one data set of 31 MB. Each step gives the next part of it, or nothing. The
 * batch is read twice, because nothing of it is delivered unless all of it is valid. Returns false when it is not. `release` is called for each FEC
 * set whose shreds are copied.
 */
export function* decodeLargeDataSet(
  { sets, ...place }: LargeDataSet,
  memory: ShredCells,
  release: (block: number) => void,
): Generator<DataSet | undefined, boolean> {
  let length = 0
  for (const set of sets) length += payloadBytes(set, memory)
  const bytes = new Uint8Array(length)
  let end = 0
  for (const [i, set] of sets.entries()) {
    end = copyPayloads(set, memory, bytes, end)
    release(set.block)
    if (i % FEC_SETS_PER_STEP === 0) yield undefined
  }
  // The length of a marker has 16 bits.
  if (isMarker(bytes)) return false
  const parts = yield* findParts(bytes)
  if (parts === undefined) return false
  for (const part of parts) yield readPart(part, bytes, place, part === parts.at(-1))
  return true
}

/** Cuts the batch between entries, and an entry that is longer than a part between its transactions. Undefined when it is not valid. */
function* findParts(bytes: Uint8Array): Generator<undefined, Part[] | undefined> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const parts: Part[] = []
  let from = COUNT_BYTES
  let at = COUNT_BYTES
  let entries = 0
  let transactionsAt: number[] = []
  let isContinuation = false

  const cut = (isContinued: boolean): undefined => {
    parts.push({ from, to: at, entries, transactionsAt, isContinuation, isContinued })
    from = at
    entries = 0
    transactionsAt = []
    isContinuation = isContinued
  }

  if (bytes.length < COUNT_BYTES) return undefined
  const count = view.getBigUint64(0, true)
  if (count > BigInt(Math.floor((bytes.length - COUNT_BYTES) / ENTRY_HEAD_BYTES))) return undefined
  for (let left = Number(count); left > 0; left--) {
    if (at + ENTRY_HEAD_BYTES > bytes.length) return undefined
    const transactions = view.getBigUint64(at + ENTRY_HEAD_BYTES - COUNT_BYTES, true)
    let pieceFrom = at
    entries += 1
    at += ENTRY_HEAD_BYTES
    if (transactions > BigInt(bytes.length - at)) return undefined
    for (let rest = Number(transactions); rest > 0; rest--) {
      const transaction = scanTransaction(bytes, at)
      if (transaction === undefined) return undefined
      transactionsAt.push(at)
      at += transaction.wireLength
      if (rest === 1 || at - pieceFrom < PART_BYTES) continue
      pieceFrom = at
      yield cut(true)
    }
    if (left === 1 || isContinuation || at - from >= PART_BYTES) yield cut(false)
  }
  // Bytes after the last entry are ignored, as by decodeBatch.
  return parts
}

/** A part is a batch of its own, with the number of its entries. One that continues an entry has no such number. */
function readPart(part: Part, batch: Uint8Array, place: Omit<LargeDataSet, 'sets'>, isLast: boolean): DataSet {
  const { from, to, entries, isContinuation, isContinued } = part
  const headBytes = isContinuation ? 0 : COUNT_BYTES
  const bytes = new Uint8Array(headBytes + to - from)
  if (!isContinuation) new DataView(bytes.buffer).setBigUint64(0, BigInt(entries), true)
  bytes.set(batch.subarray(from, to), headBytes)
  // Valid, as was found before.
  const transactions = part.transactionsAt.map(
    (at) => scanTransaction(bytes, headBytes + at - from) as ScannedTransaction,
  )
  return {
    kind: 'data-set',
    ...place,
    entriesBytes: bytes,
    entries,
    transactions,
    part: { isContinuation, isContinued, isLast },
  }
}
