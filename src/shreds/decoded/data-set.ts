import { decodeBlockMarker } from '../../solana/shred/block-marker.ts'
import { scanBatch } from '../../solana/shred/scan-batch.ts'
import { FEC_SET_DATA_SHREDS } from '../../solana/shred/shred.ts'
import type { DataSet, MarkerSet } from './events.ts'
import type { FecSet } from './fec-set.ts'
import { copyPayloads, payloadBytes, type ShredCells } from './shred-cells.ts'

/** Behind its zero count a marker has a version u16 and, in version 1, a kind u8; this kind changes the parent of the block (SIMD-0337). */
const MARKER_VERSION_AT = 8
const MARKER_KIND_AT = 10
const MARKER_VERSION = 1
const UPDATE_PARENT = 2

/** Joins the payloads of the data set that ends with this FEC set and scans them; undefined when they are not entries. */
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
  const batch = scanBatch(bytes)
  if (batch === undefined) return undefined
  return {
    kind: 'data-set',
    ...place,
    entriesBytes: bytes.subarray(0, batch.length),
    entries: batch.entries,
    transactions: batch.transactions,
    part: undefined,
    ...originOf(last),
  }
}

/** What is true of all FEC sets of the data set. */
export function originOf(last: FecSet): Pick<DataSet, 'wasRecovered' | 'isVerified'> {
  let wasRecovered = false
  let isVerified = true
  for (let set: FecSet | undefined = last; set !== undefined; set = set.previous) {
    wasRecovered ||= set.wasRecovered
    isVerified &&= set.isVerified
  }
  return { wasRecovered, isVerified }
}

/** A batch whose entry count is zero. What follows is kept as it is: new kinds of markers are no error. */
export function isMarker(bytes: Uint8Array): boolean {
  if (bytes.length < 8) return false
  for (let i = 0; i < 8; i++) if (bytes[i] !== 0) return false
  return true
}

function isParentUpdate(bytes: Uint8Array): boolean {
  const version = (bytes[MARKER_VERSION_AT] ?? 0) | ((bytes[MARKER_VERSION_AT + 1] ?? 0) << 8)
  return version === MARKER_VERSION && bytes[MARKER_KIND_AT] === UPDATE_PARENT
}

/** The parent that a marker sets; undefined where its form is not known, or where that slot is not before its own. */
export function parentOf({ slot, bytes }: Pick<MarkerSet, 'slot' | 'bytes'>): number | undefined {
  const decoded = decodeBlockMarker(bytes)
  const content = decoded.ok ? decoded.marker.content : undefined
  return content?.variant === 'update-parent' && content.parentSlot < slot ? content.parentSlot : undefined
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
