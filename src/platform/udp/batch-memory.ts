import { BATCH_PACKETS, type PacketArena, SLOT_BYTES, type StagedGroup } from './port.ts'
import { LINUX, type UdpCalls } from './system-calls.ts'

/** Bytes of the kernel's structures on 64-bit machines: struct iovec, struct mmsghdr, and a place for a socket address. */
const IOVEC = 16
const MMSGHDR = 64
const NAME = 32
/** A control message with one u16: 16 bytes of header, the value, padding. */
const CONTROL = 24
const CONTROL_USED = 18

// Offsets inside struct mmsghdr.
const H_NAME = 0
const H_NAME_LENGTH = 8
const H_IOVECS = 16
const H_IOVEC_COUNT = 24
const H_CONTROL = 32
const H_CONTROL_LENGTH = 40
const H_LENGTH = 56

/**
 * Every structure that receiving and sending hand to the kernel, laid out once in one piece of memory: packets, where they came from, vectors,
 * message headers. A batch afterwards only changes a few counts in it.
 */
export type BatchMemory = PacketArena & {
  readonly receiveHeaders: number
  /** Two headers, one for each staged group, cut into packets by the kernel. */
  readonly segmentHeaders: readonly [number, number]
  /** The header of each staged packet for itself, those of the first group before those of the second. */
  plainHeader(packet: number): number
  /** The word of `words` where the address of a slot's sender begins: family and port first. */
  readonly nameWordAt: (slot: number) => number
  takeLengths(count: number): void
  /**
   * Joins the staged packets of each group. One long piece costs the kernel less than a list of short ones, by more than the copy costs here as
   * soon as there are a few destinations.
   */
  stage(slots: Uint8Array, first: StagedGroup, second: StagedGroup): void
  /** The place of the first packet of the second staged group. */
  secondStart(): number
  /** How many packets the two headers carry. */
  setCounts(first: number, second: number): void
}

export function createBatchMemory(calls: UdpCalls): BatchMemory {
  let end = 0
  const position = (bytes: number): number => {
    const start = end
    end += bytes
    return start
  }
  const at = {
    packets: position(BATCH_PACKETS * SLOT_BYTES),
    joined: position(BATCH_PACKETS * SLOT_BYTES),
    names: position(BATCH_PACKETS * NAME),
    receiveVectors: position(BATCH_PACKETS * IOVEC),
    receiveHeaders: position(BATCH_PACKETS * MMSGHDR),
    segmentVectors: position(2 * IOVEC),
    segments: position(2 * MMSGHDR),
    plainVectors: position(BATCH_PACKETS * IOVEC),
    plain: position(BATCH_PACKETS * MMSGHDR),
    control: position(2 * CONTROL),
  }

  const buffer = new ArrayBuffer(end)
  const base = calls.addressOf(buffer)
  const view = new DataView(buffer)
  const bytes = new Uint8Array(buffer)
  const words = new Int32Array(buffer)
  const pointer = (where: number, target: number) => view.setBigUint64(where, BigInt(base + target), true)
  const size = (where: number, value: number) => view.setBigUint64(where, BigInt(value), true)
  /** The same as `pointer`, for what is done with every batch: a BigInt is an object. */
  const pointerWords = (where: number, target: number) => {
    const address = base + target
    words[where >> 2] = (address % 0x1_0000_0000) | 0
    words[(where >> 2) + 1] = (address / 0x1_0000_0000) | 0
  }

  for (let i = 0; i < BATCH_PACKETS; i++) {
    const vector = at.receiveVectors + i * IOVEC
    pointer(vector, at.packets + i * SLOT_BYTES)
    size(vector + 8, SLOT_BYTES)
    const header = at.receiveHeaders + i * MMSGHDR
    pointer(header + H_NAME, at.names + i * NAME)
    view.setUint32(header + H_NAME_LENGTH, NAME, true)
    pointer(header + H_IOVECS, vector)
    size(header + H_IOVEC_COUNT, 1)
    const plain = at.plain + i * MMSGHDR
    pointer(plain + H_IOVECS, at.plainVectors + i * IOVEC)
    size(plain + H_IOVEC_COUNT, 1)
  }
  for (const group of [0, 1]) {
    const control = at.control + group * CONTROL
    size(control, CONTROL_USED)
    view.setInt32(control + 8, LINUX.SOL_UDP, true)
    view.setInt32(control + 12, LINUX.UDP_SEGMENT, true)
    const header = at.segments + group * MMSGHDR
    pointer(header + H_CONTROL, control)
    size(header + H_CONTROL_LENGTH, CONTROL)
    pointer(header + H_IOVECS, at.segmentVectors + group * IOVEC)
    size(header + H_IOVEC_COUNT, 1)
    pointer(at.segmentVectors + group * IOVEC, at.joined)
  }

  const lengths = new Int32Array(BATCH_PACKETS)
  const staged = { first: { count: 0, bytes: 0 }, second: { count: 0, bytes: 0 }, isPlainLaid: false }
  const lengthWords = [(at.segmentVectors + 8) >> 2, (at.segmentVectors + IOVEC + 8) >> 2] as const

  /** Vectors of single packets are only needed where a path takes no segments. */
  function layPlain(): void {
    staged.isPlainLaid = true
    let target = at.joined
    for (let i = 0; i < staged.first.count + staged.second.count; i++) {
      const length = i < staged.first.count ? staged.first.bytes : staged.second.bytes
      pointer(at.plainVectors + i * IOVEC, target)
      size(at.plainVectors + i * IOVEC + 8, length)
      target += length
    }
  }

  return {
    bytes,
    words,
    lengths,
    sources: new Int8Array(BATCH_PACKETS),
    receiveHeaders: base + at.receiveHeaders,
    segmentHeaders: [base + at.segments, base + at.segments + MMSGHDR],
    plainHeader(packet) {
      if (!staged.isPlainLaid) layPlain()
      return base + at.plain + packet * MMSGHDR
    },
    nameWordAt: (slot) => (at.names + slot * NAME) >> 2,
    takeLengths(count) {
      const first = (at.receiveHeaders + H_LENGTH) >> 2
      for (let i = 0; i < count; i++) lengths[i] = words[first + i * (MMSGHDR >> 2)] as number
    },
    stage(slots, first, second) {
      staged.first = first
      staged.second = second
      staged.isPlainLaid = false
      let target = at.joined
      for (let i = 0; i < first.count + second.count; i++) {
        const from = at.packets + (slots[i] as number) * SLOT_BYTES
        const length = i < first.count ? first.bytes : second.bytes
        bytes.copyWithin(target, from, from + length)
        target += length
      }
      view.setUint16(at.control + 16, first.bytes, true)
      view.setUint16(at.control + CONTROL + 16, second.bytes, true)
      pointerWords(at.segmentVectors + IOVEC, at.joined + first.count * first.bytes)
    },
    secondStart: () => staged.first.count,
    setCounts(first, second) {
      words[lengthWords[0]] = first * staged.first.bytes
      words[lengthWords[1]] = second * staged.second.bytes
    },
  }
}
