import { BATCH_PACKETS, CELL_BYTES, type PacketArena, type StagedGroup } from './port.ts'
import { LINUX, type UdpCalls } from './system-calls.ts'

/** Sizes of the kernel's structures on 64-bit machines: struct iovec, struct mmsghdr, and space for a socket address. */
const IOVEC = 16
const MMSGHDR = 64
const NAME = 32
/** A control message with one u16: 16 bytes of header, the value, padding. */
const CONTROL = 24
const CONTROL_USED = 18

/** A control message with a struct timespec: 16 bytes of header, then seconds and nanoseconds. */
const TIME_CONTROL = 32
/** Two struct pollfd. */
const POLL_LIST = 16

// Offsets inside struct mmsghdr.
const H_NAME = 0
const H_NAME_LENGTH = 8
const H_IOVECS = 16
const H_IOVEC_COUNT = 24
const H_CONTROL = 32
const H_CONTROL_LENGTH = 40
const H_LENGTH = 56

/**
 * All structures that receiving and sending pass to the kernel, laid out once in one buffer: packets, source addresses, vectors, message headers. A
 * batch then only changes a few counts.
 */
export type BatchMemory = PacketArena & {
  readonly receiveHeaders: number
  /** Two headers, one for each staged group, which the kernel segments into packets. */
  readonly segmentHeaders: readonly [number, number]
  /** The header of one staged packet, for unsegmented sends; the first group before the second. */
  packetHeader(packet: number): number
  /** The word of `words` where the source address of a cell begins, with family and port. */
  readonly nameWordAt: (cell: number) => number
  /** Reads lengths and arrivals of a received batch. A packet without the kernel's time gets `timeMicros`. */
  readBatch(count: number): void
  /** Address of two struct pollfd, for these descriptors. */
  pollList(fd: number, wakeFd: number): number
  /** Address of a struct timespec, which `readTimespec` then reads into `timeMicros`. */
  readonly timespec: number
  readTimespec(): void
  /** Address of 8 bytes that are not read again. */
  readonly scratch: number
  /** Joins the packets of each group: with a few destinations the copy costs less than the kernel saves with one long piece. */
  stage(cells: Uint16Array, first: StagedGroup, second: StagedGroup): void
  /** The index of the first packet of the second staged group. */
  secondStart(): number
  /** Sets how many packets the two headers carry. */
  setCounts(first: number, second: number): void
}

export function createBatchMemory(calls: Pick<UdpCalls, 'addressOf'>, spareCells = 0): BatchMemory {
  const cellCount = BATCH_PACKETS + spareCells
  let end = 0
  const allocate = (bytes: number): number => {
    const start = end
    end += bytes
    return start
  }
  const offsets = {
    packets: allocate(cellCount * CELL_BYTES),
    joined: allocate(BATCH_PACKETS * CELL_BYTES),
    names: allocate(BATCH_PACKETS * NAME),
    receiveVectors: allocate(BATCH_PACKETS * IOVEC),
    receiveHeaders: allocate(BATCH_PACKETS * MMSGHDR),
    segmentVectors: allocate(2 * IOVEC),
    segments: allocate(2 * MMSGHDR),
    packetVectors: allocate(BATCH_PACKETS * IOVEC),
    packetHeaders: allocate(BATCH_PACKETS * MMSGHDR),
    control: allocate(2 * CONTROL),
    timeControls: allocate(BATCH_PACKETS * TIME_CONTROL),
    pollList: allocate(POLL_LIST),
    timespec: allocate(16),
    scratch: allocate(8),
  }

  const buffer = new ArrayBuffer(end)
  const base = calls.addressOf(buffer)
  const view = new DataView(buffer)
  const bytes = new Uint8Array(buffer)
  const words = new Int32Array(buffer)
  const pointer = (where: number, target: number) => view.setBigUint64(where, BigInt(base + target), true)
  const size = (where: number, value: number) => view.setBigUint64(where, BigInt(value), true)
  /** The same as `pointer` without a BigInt, which is an object: this runs with every batch. */
  const pointerWords = (where: number, target: number) => {
    const address = base + target
    words[where >> 2] = (address % 0x1_0000_0000) | 0
    words[(where >> 2) + 1] = (address / 0x1_0000_0000) | 0
  }

  for (let i = 0; i < BATCH_PACKETS; i++) {
    const vector = offsets.receiveVectors + i * IOVEC
    pointer(vector, offsets.packets + i * CELL_BYTES)
    size(vector + 8, CELL_BYTES)
    const header = offsets.receiveHeaders + i * MMSGHDR
    pointer(header + H_NAME, offsets.names + i * NAME)
    view.setUint32(header + H_NAME_LENGTH, NAME, true)
    pointer(header + H_IOVECS, vector)
    size(header + H_IOVEC_COUNT, 1)
    pointer(header + H_CONTROL, offsets.timeControls + i * TIME_CONTROL)
    size(header + H_CONTROL_LENGTH, TIME_CONTROL)
    const packet = offsets.packetHeaders + i * MMSGHDR
    pointer(packet + H_IOVECS, offsets.packetVectors + i * IOVEC)
    size(packet + H_IOVEC_COUNT, 1)
  }
  for (const group of [0, 1]) {
    const control = offsets.control + group * CONTROL
    size(control, CONTROL_USED)
    view.setInt32(control + 8, LINUX.SOL_UDP, true)
    view.setInt32(control + 12, LINUX.UDP_SEGMENT, true)
    const header = offsets.segments + group * MMSGHDR
    pointer(header + H_CONTROL, control)
    size(header + H_CONTROL_LENGTH, CONTROL)
    pointer(header + H_IOVECS, offsets.segmentVectors + group * IOVEC)
    size(header + H_IOVEC_COUNT, 1)
    pointer(offsets.segmentVectors + group * IOVEC, offsets.joined)
  }

  const lengths = new Int32Array(cellCount)
  const arrivals = new Float64Array(cellCount)
  const timeMicros = new Float64Array(1)
  /** Microseconds of the struct timespec that begins at this word. */
  const microsAt = (word: number): number =>
    (((words[word] as number) >>> 0) + (words[word + 1] as number) * 0x1_0000_0000) * 1e6 +
    (words[word + 2] as number) / 1000
  const staged = { first: { count: 0, bytes: 0 }, second: { count: 0, bytes: 0 }, isPacketsLaid: false }
  const lengthWords = [(offsets.segmentVectors + 8) >> 2, (offsets.segmentVectors + IOVEC + 8) >> 2] as const

  /** The vectors of single packets are only needed for unsegmented sends. */
  function layPackets(): void {
    staged.isPacketsLaid = true
    let target = offsets.joined
    for (let i = 0; i < staged.first.count + staged.second.count; i++) {
      const length = i < staged.first.count ? staged.first.bytes : staged.second.bytes
      pointer(offsets.packetVectors + i * IOVEC, target)
      size(offsets.packetVectors + i * IOVEC + 8, length)
      target += length
    }
  }

  return {
    bytes,
    words,
    lengths,
    sources: new Int8Array(cellCount),
    arrivals,
    timeMicros,
    receiveHeaders: base + offsets.receiveHeaders,
    segmentHeaders: [base + offsets.segments, base + offsets.segments + MMSGHDR],
    packetHeader(packet) {
      if (!staged.isPacketsLaid) layPackets()
      return base + offsets.packetHeaders + packet * MMSGHDR
    },
    nameWordAt: (cell) => (offsets.names + cell * NAME) >> 2,
    readBatch(count) {
      for (let i = 0; i < count; i++) {
        const header = (offsets.receiveHeaders + i * MMSGHDR) >> 2
        lengths[i] = words[header + (H_LENGTH >> 2)] as number
        const control = (offsets.timeControls + i * TIME_CONTROL) >> 2
        const controlLength = header + (H_CONTROL_LENGTH >> 2)
        const isTime = words[controlLength] === TIME_CONTROL && words[control + 3] === LINUX.SO_TIMESTAMPNS
        arrivals[i] = isTime ? microsAt(control + 4) : (timeMicros[0] as number)
        // The kernel has set it to the length of what it wrote.
        words[controlLength] = TIME_CONTROL
      }
    },
    pollList(fd, wakeFd) {
      for (const [at, each] of [fd, wakeFd].entries()) {
        view.setInt32(offsets.pollList + at * 8, each, true)
        view.setInt16(offsets.pollList + at * 8 + 4, LINUX.POLLIN, true)
      }
      return base + offsets.pollList
    },
    timespec: base + offsets.timespec,
    readTimespec() {
      timeMicros[0] = microsAt(offsets.timespec >> 2)
    },
    scratch: base + offsets.scratch,
    stage(cells, first, second) {
      staged.first = first
      staged.second = second
      staged.isPacketsLaid = false
      let target = offsets.joined
      for (let i = 0; i < first.count + second.count; i++) {
        const from = offsets.packets + (cells[i] as number) * CELL_BYTES
        const length = i < first.count ? first.bytes : second.bytes
        bytes.copyWithin(target, from, from + length)
        target += length
      }
      view.setUint16(offsets.control + 16, first.bytes, true)
      view.setUint16(offsets.control + CONTROL + 16, second.bytes, true)
      pointerWords(offsets.segmentVectors + IOVEC, offsets.joined + first.count * first.bytes)
    },
    secondStart: () => staged.first.count,
    setCounts(first, second) {
      words[lengthWords[0]] = first * staged.first.bytes
      words[lengthWords[1]] = second * staged.second.bytes
    },
  }
}
