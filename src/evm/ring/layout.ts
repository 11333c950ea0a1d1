/**
 * Layout of Monad's execution event ring: one file with a header, an array of 64-byte descriptors, a payload buffer and a context
 * area, each on a 2 MiB boundary. Source: the public headers of category-labs/monad. All integers are little-endian. Every reader and
 * writer takes its offsets from the tables here.
 */

export const SECTION_BYTES = 2 ** 21
export const HEADER_BYTES = 192
export const DESCRIPTOR_BYTES = 64
/** Payloads are allocated in steps of this many bytes. */
export const PAYLOAD_ALIGN = 16
/** The valid window of the payload buffer moves in steps of this size. */
export const WINDOW_STEP_BYTES = 2 ** 24

const RING_MAGIC = 'RING01'
const CONTENT_TYPE_EXECUTION = 2
export const SCHEMA_HASH = '8933f907c432c98ac0c8db62f9aa164c0c3f1672f41290e4ea3408df6c6723f3'

/** Former schema hashes. Their layouts differ, so they are refused like unknown ones, with a more precise message. */
const RETIRED_SCHEMAS: ReadonlySet<string> = new Set([
  '51be78e073ef1b5f9f207c96478c2ddb8df2591af9d0d3f9700108dee30cf276',
  'ddc58d9afcabb6ae55d525d281ef9fd2f9b4dbceb27ac118067cdafd70e9016b',
])

/** Sums with the size of a ring stay exact below it. */
const REGISTER_MAX = 2 ** 52

/** Byte offsets in the header. */
export const HEADER = {
  contentType: 6,
  schemaHash: 8,
  descriptorCapacity: 40,
  payloadBytes: 48,
  contextBytes: 56,
  lastSeqno: 64,
  nextPayloadByte: 72,
  windowStart: 128,
} as const

/** Byte offsets in a descriptor. */
export const DESCRIPTOR = {
  /** 0 until the event is committed. */
  seqno: 0,
  type: 8,
  payloadSize: 12,
  timeNs: 16,
  payloadOffset: 24,
  /** Sequence number of the BLOCK_START of the block; 0 outside a block. */
  blockSeqno: 32,
  /** Index of the transaction plus 1; 0 outside a transaction. */
  txnId: 40,
  accountIndex: 48,
} as const

export type RingGeometry = {
  /** Descriptors in the array, a power of two. */
  capacity: number
  /** Size of the payload buffer, a power of two. */
  payloadBytes: number
  contextBytes: number
}

export type RingLimits = { capacityMin: number; capacityMax: number; payloadBytesMin: number; payloadBytesMax: number }

export const RING_LIMITS: RingLimits = {
  capacityMin: 2 ** 16,
  capacityMax: 2 ** 32,
  payloadBytesMin: 2 ** 27,
  payloadBytesMax: 2 ** 40,
}

export type RingRefusal = {
  ok: false
  reason: 'not-a-ring' | 'version' | 'content-type' | 'schema' | 'geometry' | 'too-short'
  message: string
}

export type RingCheck = { ok: true; geometry: RingGeometry } | RingRefusal

/** Whether these 192 bytes are the header of an execution ring that this build can read. */
export function checkRingHeader(header: Uint8Array, limits: RingLimits = RING_LIMITS): RingCheck {
  if (header.length < HEADER_BYTES) return refuse('not-a-ring', `the file has only ${header.length} bytes`)
  const magic = String.fromCharCode(...header.subarray(0, RING_MAGIC.length))
  if (!magic.startsWith('RING')) return refuse('not-a-ring', 'the file does not begin with RING01')
  if (magic !== RING_MAGIC) {
    return refuse('version', `ring format ${JSON.stringify(magic)} is unknown; this build reads ${RING_MAGIC}`)
  }
  const view = viewOf(header)
  const contentType = view.getUint16(HEADER.contentType, true)
  if (contentType !== CONTENT_TYPE_EXECUTION) {
    return refuse('content-type', `the ring holds content type ${contentType}, not execution events (2)`)
  }
  const schema = Buffer.from(header.subarray(HEADER.schemaHash, HEADER.schemaHash + 32)).toString('hex')
  if (schema !== SCHEMA_HASH) {
    const age = RETIRED_SCHEMAS.has(schema) ? 'retired' : 'unknown'
    return refuse('schema', `the ring has the ${age} schema hash ${schema}; this build reads ${SCHEMA_HASH}`)
  }
  const geometry = {
    capacity: u64At(view, HEADER.descriptorCapacity),
    payloadBytes: u64At(view, HEADER.payloadBytes),
    contextBytes: u64At(view, HEADER.contextBytes),
  }
  const { capacity, payloadBytes } = geometry
  if (!isPowerOfTwo(capacity) || capacity < limits.capacityMin || capacity > limits.capacityMax) {
    return refuse('geometry', `a descriptor capacity of ${capacity} is impossible`)
  }
  if (!isPowerOfTwo(payloadBytes) || payloadBytes < limits.payloadBytesMin || payloadBytes > limits.payloadBytesMax) {
    return refuse('geometry', `a payload buffer of ${payloadBytes} bytes is impossible`)
  }
  return { ok: true, geometry }
}

/** The fields of a header, whether or not this build can read the ring. */
export function describeHeader(header: Uint8Array) {
  const view = viewOf(header)
  return {
    magic: String.fromCharCode(...header.subarray(0, RING_MAGIC.length)),
    content_type: view.getUint16(HEADER.contentType, true),
    schema_hash: Buffer.from(header.subarray(HEADER.schemaHash, HEADER.schemaHash + 32)).toString('hex'),
    descriptor_capacity: u64At(view, HEADER.descriptorCapacity),
    payload_buf_size: u64At(view, HEADER.payloadBytes),
    context_area_size: u64At(view, HEADER.contextBytes),
    last_seqno: u64At(view, HEADER.lastSeqno),
    next_payload_byte: u64At(view, HEADER.nextPayloadByte),
    buffer_window_start: u64At(view, HEADER.windowStart),
  }
}

/** The header of a new ring: no events, control registers zero. */
export function encodeRingHeader({ capacity, payloadBytes, contextBytes }: RingGeometry): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES)
  const view = viewOf(header)
  header.set(Buffer.from(RING_MAGIC, 'latin1'))
  view.setUint16(HEADER.contentType, CONTENT_TYPE_EXECUTION, true)
  header.set(Buffer.from(SCHEMA_HASH, 'hex'), HEADER.schemaHash)
  view.setBigUint64(HEADER.descriptorCapacity, BigInt(capacity), true)
  view.setBigUint64(HEADER.payloadBytes, BigInt(payloadBytes), true)
  view.setBigUint64(HEADER.contextBytes, BigInt(contextBytes), true)
  return header
}

/** Size of the complete file. A live ring is never shorter; a snapshot may be, and the missing bytes read as zero. */
export function ringFileBytes({ capacity, payloadBytes, contextBytes }: RingGeometry): number {
  return SECTION_BYTES + capacity * DESCRIPTOR_BYTES + payloadBytes + contextBytes
}

/** File offset of the descriptor of a sequence number. */
export function descriptorOffset(geometry: RingGeometry, seqno: number): number {
  return SECTION_BYTES + descriptorIndex(geometry, seqno) * DESCRIPTOR_BYTES
}

export function descriptorIndex({ capacity }: RingGeometry, seqno: number): number {
  return (seqno - 1) % capacity
}

/** File offset of the payload buffer. */
export function payloadSectionOffset({ capacity }: RingGeometry): number {
  return SECTION_BYTES + capacity * DESCRIPTOR_BYTES
}

export function alignPayload(size: number): number {
  return Math.ceil(size / PAYLOAD_ALIGN) * PAYLOAD_ALIGN
}

/** The three registers that change while a ring is written. */
export type RingControl = {
  /** Last sequence number allocated; its descriptor, and lower ones, may not be committed yet. */
  lastSeqno: number
  nextPayloadByte: number
  /** Lowest unwrapped payload offset that is still valid. */
  windowStart: number
}

/** Throws where a register is too large to count with: such a ring is broken, and a search from there would never end. */
export function readControl(header: Uint8Array): RingControl {
  const view = viewOf(header)
  const control = {
    lastSeqno: u64At(view, HEADER.lastSeqno),
    nextPayloadByte: u64At(view, HEADER.nextPayloadByte),
    windowStart: u64At(view, HEADER.windowStart),
  }
  for (const [name, value] of Object.entries(control)) {
    if (value > REGISTER_MAX) throw new RangeError(`the ring is broken: its register ${name} is beyond 2^52`)
  }
  return control
}

/** A u64 as a Number: exact below 2^53, which sequence numbers and offsets do not reach in practice. */
function u64At(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function isPowerOfTwo(value: number): boolean {
  return value > 0 && Number.isInteger(Math.log2(value))
}

function refuse(reason: RingRefusal['reason'], message: string): RingRefusal {
  return { ok: false, reason, message }
}
