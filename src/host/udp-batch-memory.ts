import { LINUX, type UdpCalls } from './udp-calls.ts'
import { BATCH_PACKETS, type PacketArena, SLOT_BYTES } from './udp-port.ts'

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
  /** The header of each staged packet for itself. */
  readonly plainHeader: (packet: number) => number
  readonly nameAt: (slot: number) => number
  takeLengths(count: number): void
  /** Writes where the staged packets lie. */
  setVectors(slots: Uint8Array, first: { count: number; bytes: number }, second: { count: number; bytes: number }): void
  /** The place of the first packet of the second staged group. */
  secondStart(): number
  /** How many packets the two headers carry. */
  setCounts(first: number, second: number): void
}

export function createBatchMemory(calls: UdpCalls): BatchMemory {
  const at = {
    packets: 0,
    names: 0,
    receiveVectors: 0,
    receiveHeaders: 0,
    sendVectors: 0,
    segments: 0,
    plain: 0,
    control: 0,
  }
  let end = 0
  const place = (bytes: number): number => {
    const start = end
    end += bytes
    return start
  }
  at.packets = place(BATCH_PACKETS * SLOT_BYTES)
  at.names = place(BATCH_PACKETS * NAME)
  at.receiveVectors = place(BATCH_PACKETS * IOVEC)
  at.receiveHeaders = place(BATCH_PACKETS * MMSGHDR)
  at.sendVectors = place(BATCH_PACKETS * IOVEC)
  at.segments = place(2 * MMSGHDR)
  at.plain = place(BATCH_PACKETS * MMSGHDR)
  at.control = place(2 * CONTROL)

  const buffer = new ArrayBuffer(end)
  const base = calls.addressOf(buffer)
  const view = new DataView(buffer)
  const words = new Int32Array(buffer)
  const pointer = (where: number, target: number) => view.setBigUint64(where, BigInt(base + target), true)
  const size = (where: number, value: number) => view.setBigUint64(where, BigInt(value), true)

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
    pointer(plain + H_IOVECS, at.sendVectors + i * IOVEC)
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
    pointer(header + H_IOVECS, at.sendVectors)
  }

  const lengths = new Int32Array(BATCH_PACKETS)
  let stagedFirst = 0
  const secondVectors = at.segments + MMSGHDR + H_IOVECS
  const countWords = [(at.segments + H_IOVEC_COUNT) >> 2, (at.segments + MMSGHDR + H_IOVEC_COUNT) >> 2] as const
  return {
    bytes: new Uint8Array(buffer),
    words,
    lengths,
    sources: new Int8Array(BATCH_PACKETS),
    receiveHeaders: base + at.receiveHeaders,
    segmentHeaders: [base + at.segments, base + at.segments + MMSGHDR],
    plainHeader: (packet) => base + at.plain + packet * MMSGHDR,
    nameAt: (slot) => at.names + slot * NAME,
    takeLengths(count) {
      const first = (at.receiveHeaders + H_LENGTH) >> 2
      for (let i = 0; i < count; i++) lengths[i] = words[first + i * (MMSGHDR >> 2)] as number
    },
    setVectors(slots, first, second) {
      const total = first.count + second.count
      stagedFirst = first.count
      const packets = base + at.packets
      for (let i = 0; i < total; i++) {
        const vector = at.sendVectors + i * IOVEC
        const target = packets + (slots[i] as number) * SLOT_BYTES
        words[vector >> 2] = (target % 0x1_0000_0000) | 0
        words[(vector >> 2) + 1] = (target / 0x1_0000_0000) | 0
        words[(vector >> 2) + 2] = i < first.count ? first.bytes : second.bytes
      }
      view.setUint16(at.control + 16, first.bytes, true)
      view.setUint16(at.control + CONTROL + 16, second.bytes, true)
      pointer(secondVectors, at.sendVectors + first.count * IOVEC)
    },
    secondStart: () => stagedFirst,
    setCounts(first, second) {
      words[countWords[0]] = first
      words[countWords[1]] = second
    },
  }
}
