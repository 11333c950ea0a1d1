/** The wire format of merkle shreds and the rules that a shred must obey to be relayed (SIMD-0504, family 1). */
export const DATA_SHRED_BYTES = 1203
export const CODING_SHRED_BYTES = 1228
/** Data shreds in a FEC set; it has as many coding shreds. */
export const FEC_SET_DATA_SHREDS = 32
/** Shred indexes of a slot of 400 ms are below this; shorter slots have proportionally fewer (SIMD-0525). */
export const INDEX_MAX = 32_768

export const SIGNATURE_BYTES = 64
export const ROOT_BYTES = 32
export const PROOF_ENTRIES = 6
export const PROOF_ENTRY_BYTES = 20
export const DATA_HEADER_BYTES = 88
export const CODING_HEADER_BYTES = 89

export const FLAG_DATA_COMPLETE = 0x40
export const FLAG_LAST_IN_SLOT = 0xc0
export const REFERENCE_TICK_MASK = 0x3f

/** Offsets of the header fields; all numbers are little endian. */
export const VARIANT_AT = 64
export const SLOT_AT = 65
export const INDEX_AT = 73
export const VERSION_AT = 77
export const FEC_SET_INDEX_AT = 79
/** Data shreds. */
export const PARENT_OFFSET_AT = 83
export const FLAGS_AT = 85
export const SIZE_AT = 86
/** Coding shreds. */
export const DATA_COUNT_AT = 83
export const CODING_COUNT_AT = 85
export const POSITION_AT = 87

/** The layout of the shreds of one variant, in which the offsets of proof and chained root differ. */
export type ShredLayout = {
  readonly variant: number
  readonly kind: 'data' | 'code'
  /** Resigned shreds end with a signature of the retransmitter, which is not under the merkle root. */
  readonly resigned: boolean
  readonly length: number
  readonly proofAt: number
  readonly chainedRootAt: number
  /** The bytes covered by the erasure code: [erasureFrom, chainedRootAt). */
  readonly erasureFrom: number
}

export const LAYOUTS = {
  data: layoutOf(0x96, 'data', false),
  resignedData: layoutOf(0xb6, 'data', true),
  code: layoutOf(0x66, 'code', false),
  resignedCode: layoutOf(0x76, 'code', true),
}

type ShredCommon = {
  /** A view of the shred without trailing bytes of the packet (repair nonce, padding). */
  readonly bytes: Uint8Array
  readonly layout: ShredLayout
  readonly slot: number
  readonly index: number
  readonly version: number
  /** The index of the first data shred of the FEC set. */
  readonly fecSetIndex: number
}

export type DataShred = ShredCommon & {
  readonly kind: 'data'
  readonly parentOffset: number
  readonly flags: number
  /** Headers and payload. */
  readonly size: number
}

export type CodingShred = ShredCommon & { readonly kind: 'code'; readonly position: number }

export type Shred = DataShred | CodingShred

/** Why a packet is not a valid shred; the numbers are those of the rules in SIMD-0504. Rule 1, the signature, needs the leader. */
export const SHRED_FAULTS = [
  'too-short',
  /** 6 */
  'variant',
  /** 7 */
  'proof-length',
  /** At or above 2^53, which no chain will reach. */
  'slot',
  /** 2 */
  'index-too-large',
  /** 4 */
  'set-index-unaligned',
  /** 5 */
  'set-index-too-large',
  /** 3 */
  'index-outside-set',
  /** 8 */
  'flags',
  /** 9 */
  'complete-inside-set',
  /** 10 */
  'parent-before-genesis',
  /** 11 */
  'parent-is-self',
  /** 12 */
  'size',
  /** 15 */
  'set-size',
  /** 13, 14, 16 */
  'position',
] as const
export type ShredFault = (typeof SHRED_FAULTS)[number]

export type ShredParse =
  | { readonly ok: true; readonly shred: Shred }
  | { readonly ok: false; readonly reason: ShredFault }

/** The header fields of a packet, in an object that is reused for every packet. */
export type ShredHead = {
  layout: ShredLayout
  slot: number
  index: number
  version: number
  fecSetIndex: number
  /** From here on: data shreds only. */
  parentOffset: number
  flags: number
  size: number
}

export function createShredHead(): ShredHead {
  return { layout: LAYOUTS.data, slot: 0, index: 0, version: 0, fecSetIndex: 0, parentOffset: 0, flags: 0, size: 0 }
}

/** Checks every rule that needs only the packet itself, and fills `head` with its header. Never throws. */
export function scanShred(
  bytes: Uint8Array,
  at: number,
  length: number,
  head: ShredHead,
  indexMax: number = INDEX_MAX,
): ShredFault | undefined {
  if (length < DATA_SHRED_BYTES) return 'too-short'
  const layout = layoutOfVariant(bytes[at + VARIANT_AT] as number)
  if (typeof layout === 'string') return layout
  if (length < layout.length) return 'too-short'

  const slotHigh = readU32(bytes, at + SLOT_AT + 4)
  if (slotHigh > 0x1fffff) return 'slot'
  const slot = slotHigh * 0x1_0000_0000 + readU32(bytes, at + SLOT_AT)
  const index = readU32(bytes, at + INDEX_AT)
  const fecSetIndex = readU32(bytes, at + FEC_SET_INDEX_AT)
  if (index >= indexMax) return 'index-too-large'
  if (fecSetIndex % FEC_SET_DATA_SHREDS !== 0) return 'set-index-unaligned'
  if (fecSetIndex > indexMax - FEC_SET_DATA_SHREDS) return 'set-index-too-large'
  if (index < fecSetIndex || index >= fecSetIndex + FEC_SET_DATA_SHREDS) return 'index-outside-set'

  head.layout = layout
  head.slot = slot
  head.index = index
  head.version = readU16(bytes, at + VERSION_AT)
  head.fecSetIndex = fecSetIndex
  if (layout.kind === 'data') {
    head.parentOffset = readU16(bytes, at + PARENT_OFFSET_AT)
    head.flags = bytes[at + FLAGS_AT] as number
    head.size = readU16(bytes, at + SIZE_AT)
    return dataFaultOf(head)
  }
  if (
    readU16(bytes, at + DATA_COUNT_AT) !== FEC_SET_DATA_SHREDS ||
    readU16(bytes, at + CODING_COUNT_AT) !== FEC_SET_DATA_SHREDS
  )
    return 'set-size'
  return readU16(bytes, at + POSITION_AT) === index - fecSetIndex ? undefined : 'position'
}

function dataFaultOf({ flags, index, parentOffset, slot, size, layout }: ShredHead): ShredFault | undefined {
  if ((flags & FLAG_LAST_IN_SLOT) === 0x80) return 'flags'
  if ((flags & FLAG_DATA_COMPLETE) !== 0 && index % FEC_SET_DATA_SHREDS !== FEC_SET_DATA_SHREDS - 1)
    return 'complete-inside-set'
  if (parentOffset > slot) return 'parent-before-genesis'
  if ((parentOffset === 0) !== (slot === 0)) return 'parent-is-self'
  if (size < DATA_HEADER_BYTES || size > layout.chainedRootAt) return 'size'
  return undefined
}

/** As `scanShred`, but returns a new value, whose `bytes` is a view of the packet. Never throws. */
export function parseShred(packet: Uint8Array, indexMax: number = INDEX_MAX): ShredParse {
  const head = createShredHead()
  const reason = scanShred(packet, 0, packet.length, head, indexMax)
  if (reason !== undefined) return { ok: false, reason }
  const { layout, slot, index, version, fecSetIndex, parentOffset, flags, size } = head
  const bytes = new Uint8Array(packet.buffer, packet.byteOffset, layout.length)
  const common = { bytes, layout, slot, index, version, fecSetIndex }
  const shred: Shred =
    layout.kind === 'data'
      ? { ...common, kind: 'data', parentOffset, flags, size }
      : { ...common, kind: 'code', position: index - fecSetIndex }
  return { ok: true, shred }
}

export function signatureOf(shred: Shred): Uint8Array {
  return shred.bytes.subarray(0, SIGNATURE_BYTES)
}

export function erasureShardOf({ bytes, layout }: Shred): Uint8Array {
  return bytes.subarray(layout.erasureFrom, layout.chainedRootAt)
}

export function payloadOf({ bytes, size }: DataShred): Uint8Array {
  return bytes.subarray(DATA_HEADER_BYTES, size)
}

export function isDataComplete(shred: DataShred): boolean {
  return (shred.flags & FLAG_DATA_COMPLETE) !== 0
}

export function isLastInSlot(shred: DataShred): boolean {
  return (shred.flags & FLAG_LAST_IN_SLOT) === FLAG_LAST_IN_SLOT
}

/** The shred's position among the 64 of its FEC set: data shreds first, then coding shreds. */
export function positionInFecSet(shred: Shred): number {
  return shred.kind === 'data' ? shred.index - shred.fecSetIndex : FEC_SET_DATA_SHREDS + shred.position
}

function layoutOf(variant: number, kind: 'data' | 'code', resigned: boolean): ShredLayout {
  const length = kind === 'data' ? DATA_SHRED_BYTES : CODING_SHRED_BYTES
  const proofAt = length - (resigned ? SIGNATURE_BYTES : 0) - PROOF_ENTRIES * PROOF_ENTRY_BYTES
  const erasureFrom = kind === 'data' ? SIGNATURE_BYTES : CODING_HEADER_BYTES
  return { variant, kind, resigned, length, proofAt, chainedRootAt: proofAt - ROOT_BYTES, erasureFrom }
}

/** High nibble: kind; low nibble: entries of the merkle proof, 6 for a FEC set of 64. */
function layoutOfVariant(variant: number): ShredLayout | 'variant' | 'proof-length' {
  switch (variant) {
    case 0x96:
      return LAYOUTS.data
    case 0xb6:
      return LAYOUTS.resignedData
    case 0x66:
      return LAYOUTS.code
    case 0x76:
      return LAYOUTS.resignedCode
    default: {
      const kind = variant >> 4
      return kind === 0x9 || kind === 0xb || kind === 0x6 || kind === 0x7 ? 'proof-length' : 'variant'
    }
  }
}

function readU16(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
}

function readU32(bytes: Uint8Array, at: number): number {
  return (readU16(bytes, at) | (readU16(bytes, at + 2) << 16)) >>> 0
}
