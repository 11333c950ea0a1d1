import { readTransaction } from '../transaction/transaction.ts'
import { FORMAT_LIMITS, type ParsedTransaction, type TransactionFault } from '../transaction/types.ts'
import { type BlockMarker, decodeBlockMarker } from './block-marker.ts'

/** A proof-of-history entry. One without transactions is a tick. */
export type Entry = {
  readonly numHashes: bigint
  readonly hash: Uint8Array
  readonly transactions: readonly ParsedTransaction[]
}

/** An entry with its transactions in wire form. */
export type EntryToEncode = {
  readonly numHashes: bigint
  readonly hash: Uint8Array
  readonly transactions: readonly Uint8Array[]
}

export type BatchDecode =
  /** `length`: where the last entry ends. */
  | { readonly ok: true; readonly kind: 'entries'; readonly entries: readonly Entry[]; readonly length: number }
  | { readonly ok: true; readonly kind: 'marker'; readonly marker: BlockMarker }
  | { readonly ok: false; readonly reason: TransactionFault }

/** Hashes u64, hash, number of transactions u64. */
export const ENTRY_HEAD_BYTES = 48

/** The bytes of an entry batch: u64 count, then per entry u64 hashes, hash, u64 count, transactions. */
export function encodeEntries(entries: readonly EntryToEncode[]): Uint8Array {
  let length = 8
  for (const { transactions } of entries) {
    length += ENTRY_HEAD_BYTES
    for (const wire of transactions) length += wire.length
  }
  const bytes = new Uint8Array(length)
  const view = new DataView(bytes.buffer)
  view.setBigUint64(0, BigInt(entries.length), true)
  let at = 8
  for (const { numHashes, hash, transactions } of entries) {
    view.setBigUint64(at, numHashes, true)
    bytes.set(hash, at + 8)
    view.setBigUint64(at + 40, BigInt(transactions.length), true)
    at += ENTRY_HEAD_BYTES
    for (const wire of transactions) {
      bytes.set(wire, at)
      at += wire.length
    }
  }
  return bytes
}

/**
 * Decodes one batch. Never throws. The arrays of the result are views into `bytes`. As in Agave, bytes after the last entry are ignored, and a count of
 * zero alone is a batch without entries, with which a leader ends a block that it aborts; bytes after the body of a marker are ignored too.
 */
export function decodeBatch(bytes: Uint8Array): BatchDecode {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (bytes.length < 8) return { ok: false, reason: 'truncated' }
  const count = view.getBigUint64(0, true)
  if (count === 0n && bytes.length === 8) return { ok: true, kind: 'entries', entries: [], length: 8 }
  if (count === 0n) {
    const decoded = decodeBlockMarker(bytes)
    return decoded.ok ? { ok: true, kind: 'marker', marker: decoded.marker } : decoded
  }
  if (count > BigInt(Math.floor((bytes.length - 8) / ENTRY_HEAD_BYTES))) return { ok: false, reason: 'truncated' }

  const entries: Entry[] = []
  let at = 8
  for (let left = Number(count); left > 0; left--) {
    if (at + ENTRY_HEAD_BYTES > bytes.length) return { ok: false, reason: 'truncated' }
    const transactionCount = view.getBigUint64(at + 40, true)
    const head = {
      numHashes: view.getBigUint64(at, true),
      hash: new Uint8Array(bytes.buffer, bytes.byteOffset + at + 8, 32),
    }
    at += ENTRY_HEAD_BYTES
    if (transactionCount > BigInt(bytes.length - at)) return { ok: false, reason: 'truncated' }
    const transactions: ParsedTransaction[] = []
    for (let rest = Number(transactionCount); rest > 0; rest--) {
      const transaction = readTransaction(bytes, at, FORMAT_LIMITS)
      if (typeof transaction === 'string') return { ok: false, reason: transaction }
      transactions.push(transaction)
      at += transaction.wireLength
    }
    entries.push({ ...head, transactions })
  }
  return { ok: true, kind: 'entries', entries, length: at }
}
