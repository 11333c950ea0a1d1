import { type ScannedTransaction, scanTransaction } from '../transaction/scan.ts'
import { ENTRY_HEAD_BYTES } from './entry.ts'

export type ScannedBatch = {
  readonly entries: number
  /** Where the last entry ends. */
  readonly length: number
  /** The transactions of all entries, in order. */
  readonly transactions: readonly ScannedTransaction[]
}

const COUNT_BYTES = 8

/** As `decodeBatch`, for a batch with entries: undefined where that does not accept it, or where it is a marker. */
export function scanBatch(bytes: Uint8Array): ScannedBatch | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (bytes.length < COUNT_BYTES) return undefined
  const count = countAt(view, 0)
  if (count === 0 || count > (bytes.length - COUNT_BYTES) / ENTRY_HEAD_BYTES) return undefined
  const transactions: ScannedTransaction[] = []
  let at = COUNT_BYTES
  for (let left = count; left > 0; left--) {
    if (at + ENTRY_HEAD_BYTES > bytes.length) return undefined
    const inEntry = countAt(view, at + ENTRY_HEAD_BYTES - COUNT_BYTES)
    at += ENTRY_HEAD_BYTES
    if (inEntry > bytes.length - at) return undefined
    for (let rest = inEntry; rest > 0; rest--) {
      const transaction = scanTransaction(bytes, at)
      if (transaction === undefined) return undefined
      transactions.push(transaction)
      at += transaction.wireLength
    }
  }
  return { entries: count, length: at, transactions }
}

/** A u64. It is exact up to 2^53, and no batch has so many bytes. */
function countAt(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * 0x1_0000_0000
}
