import { CODING_SHRED_BYTES, DATA_SHRED_BYTES, VARIANT_AT } from '../../solana/shred/shred.ts'
import { type ByteReader, createByteReader } from './capture-bytes.ts'

const CAPTURE_FORMATS = ['pcap', 'pcapng', 'ar', 'plain'] as const
export type CaptureFormat = (typeof CAPTURE_FORMATS)[number]

/** One record of a capture: a network frame, or a bare shred where there is no link type. */
export type CaptureRecord = {
  readonly link: number | undefined
  readonly bytes: Uint8Array
  readonly atMs: number | undefined
}

export type Capture = {
  readonly format: CaptureFormat
  readonly records: AsyncIterable<CaptureRecord>
  /** After the last record: why reading stopped before the end of the file, if it did. */
  damage(): string | undefined
}

/** The snapshot limit of libpcap; a longer frame means that the file is damaged. */
const FRAME_BYTES_MAX = 262_144
const BLOCK_BYTES_MAX = 16 * 1024 * 1024
const INTERFACES_MAX = 1024
const MEMBER_BYTES_MAX = 65_536

const PCAP_MAGICS = new Map<number, { isLittle: boolean; perSecond: number }>([
  [0xa1b2c3d4, { isLittle: false, perSecond: 1e6 }],
  [0xd4c3b2a1, { isLittle: true, perSecond: 1e6 }],
  [0xa1b23c4d, { isLittle: false, perSecond: 1e9 }],
  [0x4d3cb2a1, { isLittle: true, perSecond: 1e9 }],
])
const PCAPNG_SECTION = 0x0a0d0d0a
const PCAPNG_ORDER = 0x1a2b3c4d
const AR_MAGIC = '!<arch>\n'

/**
 * Reads pcap and pcapng in both byte orders, Unix archives with one shred per member, and files of concatenated shreds. A truncated or damaged
 * file gives the records before the damage.
 */
export async function openCapture(chunks: AsyncIterable<Uint8Array>): Promise<Capture> {
  const reader = createByteReader(chunks)
  const state: { damage?: string } = {}
  const fail = (message: string): void => {
    state.damage ??= `${message} at byte ${reader.position()}`
  }
  const capture = (format: CaptureFormat, records: AsyncIterable<CaptureRecord>): Capture => ({
    format,
    records,
    damage: () => state.damage,
  })

  const start = await reader.peek(8)
  if (start === undefined) return capture('plain', readPlain(reader, fail))
  const magic = viewOf(start).getUint32(0)
  const pcap = PCAP_MAGICS.get(magic)
  if (pcap !== undefined) return capture('pcap', readPcap(reader, pcap, fail))
  if (magic === PCAPNG_SECTION) return capture('pcapng', readPcapng(reader, fail))
  if (new TextDecoder('latin1').decode(start) === AR_MAGIC) return capture('ar', readArchive(reader, fail))
  return capture('plain', readPlain(reader, fail))
}

type Fail = (message: string) => void

async function* readPcap(
  reader: ByteReader,
  { isLittle, perSecond }: { isLittle: boolean; perSecond: number },
  fail: Fail,
): AsyncIterable<CaptureRecord> {
  const head = await reader.take(24)
  if (head === undefined) return fail('the file ends inside its header')
  // The upper bits state whether frames end with a checksum, which is not used here.
  const link = viewOf(head).getUint32(20, isLittle) & 0xffff
  for (;;) {
    const record = await reader.take(16)
    if (record === undefined) return reader.remaining() > 0 ? fail('the file ends inside a record') : undefined
    const view = viewOf(record)
    const length = view.getUint32(8, isLittle)
    const atMs = view.getUint32(0, isLittle) * 1000 + (view.getUint32(4, isLittle) / perSecond) * 1000
    if (length > FRAME_BYTES_MAX) return fail(`a record of ${length} bytes`)
    const bytes = await reader.take(length)
    if (bytes === undefined) return fail('the file ends inside a record')
    yield { link, bytes, atMs }
  }
}

type Interface = { readonly link: number; readonly snapBytes: number; readonly unitsPerSecond: number }

async function* readPcapng(reader: ByteReader, fail: Fail): AsyncIterable<CaptureRecord> {
  let isLittle = true
  let interfaces: Interface[] = []
  for (;;) {
    const head = await reader.peek(12)
    if (head === undefined) return reader.remaining() > 0 ? fail('the file ends inside a block') : undefined
    if (viewOf(head).getUint32(0) === PCAPNG_SECTION) {
      const order = viewOf(head).getUint32(8)
      isLittle = order !== PCAPNG_ORDER
      if (isLittle && viewOf(head).getUint32(8, true) !== PCAPNG_ORDER) return fail('a section of unknown byte order')
      interfaces = []
    }
    const length = viewOf(head).getUint32(4, isLittle)
    if (length < 12 || length % 4 !== 0 || length > BLOCK_BYTES_MAX) return fail(`a block of ${length} bytes`)
    const block = await reader.take(length)
    if (block === undefined) return fail('the file ends inside a block')
    const view = viewOf(block)
    const type = view.getUint32(0, isLittle)
    if (type === 1 && length >= 20) {
      if (interfaces.length >= INTERFACES_MAX) return fail(`more than ${INTERFACES_MAX} interfaces`)
      interfaces.push(interfaceOf(view, isLittle))
      continue
    }
    const record = recordOf(type, view, block, isLittle, interfaces)
    if (record === 'damaged') return fail('a packet that does not fit its block')
    if (record !== undefined) yield record
  }
}

function interfaceOf(view: DataView, isLittle: boolean): Interface {
  let unitsPerSecond = 1e6
  // Options: code, length, value padded to four bytes. Code 9 is the timestamp resolution: a power of ten, or of two when the high bit is set.
  for (let at = 16; at + 4 <= view.byteLength - 4; ) {
    const code = view.getUint16(at, isLittle)
    const length = view.getUint16(at + 2, isLittle)
    if (code === 0) break
    if (code === 9 && length === 1 && at + 5 <= view.byteLength) {
      const value = view.getUint8(at + 4)
      unitsPerSecond = value & 0x80 ? 2 ** (value & 0x7f) : 10 ** value
    }
    at += 4 + Math.ceil(length / 4) * 4
  }
  return { link: view.getUint16(8, isLittle), snapBytes: view.getUint32(12, isLittle), unitsPerSecond }
}

function recordOf(
  type: number,
  view: DataView,
  block: Uint8Array,
  isLittle: boolean,
  interfaces: readonly Interface[],
): CaptureRecord | 'damaged' | undefined {
  const body = view.byteLength - 4
  const slice = (
    from: number,
    length: number,
    interfaceIndex: number,
    ticks: number | undefined,
  ): CaptureRecord | 'damaged' => {
    const captured = interfaces[interfaceIndex]
    if (captured === undefined || length > FRAME_BYTES_MAX || from + length > body) return 'damaged'
    const atMs = ticks === undefined ? undefined : (ticks / captured.unitsPerSecond) * 1000
    return { link: captured.link, bytes: block.subarray(from, from + length), atMs }
  }
  const ticksAt = (at: number): number => view.getUint32(at, isLittle) * 2 ** 32 + view.getUint32(at + 4, isLittle)
  // Block types: 6 enhanced packet, 3 simple packet, 2 the obsolete packet block.
  if (type === 6) {
    if (body < 28) return 'damaged'
    return slice(28, view.getUint32(20, isLittle), view.getUint32(8, isLittle), ticksAt(12))
  }
  if (type === 2) {
    if (body < 28) return 'damaged'
    return slice(28, view.getUint32(20, isLittle), view.getUint16(8, isLittle), ticksAt(12))
  }
  if (type === 3) {
    if (body < 12) return 'damaged'
    const snapBytes = interfaces[0]?.snapBytes ?? 0
    const length = view.getUint32(8, isLittle)
    return slice(12, snapBytes === 0 ? length : Math.min(length, snapBytes), 0, undefined)
  }
  return undefined
}

/** Unix archives: each member has a header of 60 bytes whose bytes 48 to 58 are its size in decimal; members start at even offsets. */
async function* readArchive(reader: ByteReader, fail: Fail): AsyncIterable<CaptureRecord> {
  await reader.take(AR_MAGIC.length)
  for (;;) {
    const head = await reader.take(60)
    if (head === undefined) return reader.remaining() > 0 ? fail('the file ends inside a member') : undefined
    const text = new TextDecoder('latin1').decode(head)
    const size = Number(text.slice(48, 58))
    if (!Number.isInteger(size) || size < 0 || size > MEMBER_BYTES_MAX) return fail('a member of no valid size')
    const bytes = await reader.take(size)
    if (bytes === undefined) return fail('the file ends inside a member')
    // Members whose name begins with a slash are tables of the archive.
    if (!text.startsWith('/')) yield { link: undefined, bytes: Uint8Array.from(bytes), atMs: undefined }
    if (size % 2 === 1 && (await reader.take(1)) === undefined) return
  }
}

/** Concatenated shreds: the variant byte determines the length of each. */
async function* readPlain(reader: ByteReader, fail: Fail): AsyncIterable<CaptureRecord> {
  for (;;) {
    const head = await reader.peek(VARIANT_AT + 1)
    if (head === undefined) return reader.remaining() > 0 ? fail('the file ends inside a shred') : undefined
    const kind = (head[VARIANT_AT] as number) >> 4
    const length =
      kind === 0x9 || kind === 0xb ? DATA_SHRED_BYTES : kind === 0x6 || kind === 0x7 ? CODING_SHRED_BYTES : 0
    if (length === 0) return fail('neither a capture nor a shred')
    const bytes = await reader.take(length)
    if (bytes === undefined) return fail('the file ends inside a shred')
    yield { link: undefined, bytes, atMs: undefined }
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}
