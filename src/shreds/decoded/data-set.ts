import { copyBytes } from '../../core/copy-bytes.ts'
import { decodeBatch } from '../../solana/shred/entry.ts'
import { DATA_HEADER_BYTES, FEC_SET_DATA_SHREDS, SIZE_AT } from '../../solana/shred/shred.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import type { DataSet, MarkerSet } from './events.ts'
import type { FecSet } from './fec-set.ts'
import { cellAt, inCell, type ShredCells } from './shred-cells.ts'

/** Behind its zero count a marker has a version u16 and, in version 1, a kind u8; this kind changes the parent of the block (SIMD-0337). */
const MARKER_VERSION_AT = 8
const MARKER_KIND_AT = 10
const MARKER_VERSION = 1
const UPDATE_PARENT = 2

/** Joins the payloads of the data set that ends with this FEC set and parses them; undefined when they are not entries. */
export function decodeDataSet(
  slot: number,
  last: FecSet,
  cells: ShredCells,
  arrivalNanos: number,
): DataSet | MarkerSet | undefined {
  const bytes = joinPayloads(last, cells)
  const place = {
    slot,
    startIndex: last.start * FEC_SET_DATA_SHREDS,
    endIndex: (last.index + 1) * FEC_SET_DATA_SHREDS,
    arrivalNanos,
  }
  if (isMarker(bytes)) return { kind: 'marker', ...place, bytes, isParentUpdate: isParentUpdate(bytes) }
  const decoded = decodeBatch(bytes)
  if (!decoded.ok || decoded.kind !== 'entries') return undefined
  const transactions: ParsedTransaction[] = []
  for (const entry of decoded.entries) for (const transaction of entry.transactions) transactions.push(transaction)
  let wasRecovered = false
  let isVerified = true
  for (let set: FecSet | undefined = last; set !== undefined; set = set.previous) {
    wasRecovered ||= set.wasRecovered
    isVerified &&= set.isVerified
  }
  return {
    kind: 'data-set',
    ...place,
    entriesBytes: bytes,
    entries: decoded.entries.length,
    transactions,
    wasRecovered,
    isVerified,
  }
}

/** A batch whose entry count is zero. What follows is kept as it is: new kinds of markers are no error. */
function isMarker(bytes: Uint8Array): boolean {
  if (bytes.length < 8) return false
  for (let i = 0; i < 8; i++) if (bytes[i] !== 0) return false
  return true
}

function isParentUpdate(bytes: Uint8Array): boolean {
  const version = (bytes[MARKER_VERSION_AT] ?? 0) | ((bytes[MARKER_VERSION_AT + 1] ?? 0) << 8)
  return version === MARKER_VERSION && bytes[MARKER_KIND_AT] === UPDATE_PARENT
}

function joinPayloads(last: FecSet, cells: ShredCells): Uint8Array {
  let length = 0
  for (let set: FecSet | undefined = last; set !== undefined; set = set.previous) length += payloadBytes(set, cells)
  const bytes = new Uint8Array(length)
  let end = length
  for (let set: FecSet | undefined = last; set !== undefined; set = set.previous) {
    end -= payloadBytes(set, cells)
    copyPayloads(set, cells, bytes, end)
  }
  return bytes
}

function payloadBytes(set: FecSet, cells: ShredCells): number {
  let length = 0
  for (let i = 0; i < FEC_SET_DATA_SHREDS; i++)
    length += sizeAt(cells.bytes, cellAt(set.block, set.cells[i] as number)) - DATA_HEADER_BYTES
  return length
}

function copyPayloads(set: FecSet, cells: ShredCells, to: Uint8Array, at: number): void {
  let next = at
  for (let i = 0; i < FEC_SET_DATA_SHREDS; i++) {
    const cell = cellAt(set.block, set.cells[i] as number)
    const size = sizeAt(cells.bytes, cell)
    copyBytes(cells.bytes, cell + inCell(DATA_HEADER_BYTES), cell + inCell(size), to, next)
    next += size - DATA_HEADER_BYTES
  }
}

/** Headers and payload of the data shred in this cell. */
function sizeAt(bytes: Uint8Array, cell: number): number {
  const at = cell + inCell(SIZE_AT)
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
}
