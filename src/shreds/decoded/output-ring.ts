/**
 * A log in memory that one thread writes and many threads read, each from a position of its own. The writer never waits: it overwrites the oldest
 * records, and a reader that has not read them learns how many it has lost.
 *
 *     header   Int32 signal: changes with every record; then BigInt64, see POSITION
 *     records  at position modulo capacity, multiples of RECORD_ALIGN: length u32, isPadding u32, sequence number f64, payload. A record never
 *              wraps around: padding fills the end of the memory.
 *
 * The writer moves `tail` beyond what it will overwrite before it does so. A reader copies a record and then checks that `tail` is still not
 * beyond it.
 */
export type OutputWriter = {
  /** Whether a record of this length can be written. */
  fits(length: number): boolean
  /** Appends a record of these parts. False when it is longer than a quarter of the memory: it is not written then, and readers do not learn of it. */
  write(parts: readonly Uint8Array[]): boolean
}

export type OutputReader = {
  /** The next record, or undefined when there is none yet. */
  next(): OutputRecord | undefined
  /** Resolves when there may be more to read, at the latest after this time. */
  wait(timeoutMs: number): Promise<void>
}

export type OutputReaderOptions = {
  /** A payload is valid until the next call of `next`: all are copied to the same memory, which is not allocated and cleared for each. */
  readonly reusesMemory: boolean
}

export type OutputRecord = {
  readonly payload: Uint8Array
  /** Records before this one that the reader has lost. */
  readonly lost: number
}

const HEADER_BYTES = 128
const SIGNAL = 0
/** BigInt64: bytes written, oldest byte that is not overwritten, records written. */
const POSITION = { head: 4, tail: 5, sequence: 6 } as const
const RECORD_ALIGN = 16
const RECORD_HEAD_BYTES = 16
/** A longer payload gets memory of its own, which is freed with it. */
const REUSED_BYTES_MAX = 1024 * 1024

export function createOutputMemory(bytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(HEADER_BYTES + alignedTo(bytes))
}

class LogMemory {
  readonly signal: Int32Array
  readonly positions: BigInt64Array
  readonly bytes: Uint8Array
  readonly #view: DataView
  readonly capacity: number

  constructor(memory: SharedArrayBuffer) {
    this.signal = new Int32Array(memory, 0, 1)
    this.positions = new BigInt64Array(memory, 0, HEADER_BYTES / 8)
    this.bytes = new Uint8Array(memory, HEADER_BYTES)
    this.#view = new DataView(memory, HEADER_BYTES)
    this.capacity = this.bytes.length
  }

  load(position: number): number {
    return Number(Atomics.load(this.positions, position))
  }

  store(position: number, value: number): void {
    Atomics.store(this.positions, position, BigInt(value))
  }

  lengthAt(at: number): number {
    return this.#view.getUint32(at, true)
  }

  isPaddingAt(at: number): boolean {
    return this.#view.getUint32(at + 4, true) !== 0
  }

  sequenceAt(at: number): number {
    return this.#view.getFloat64(at + 8, true)
  }

  putHead(at: number, length: number, isPadding: boolean, sequence: number): void {
    this.#view.setUint32(at, length, true)
    this.#view.setUint32(at + 4, isPadding ? 1 : 0, true)
    this.#view.setFloat64(at + 8, sequence, true)
  }
}

/** The one writer. After a restart it goes on behind the last complete record. */
export function openOutputWriter(memory: SharedArrayBuffer): OutputWriter {
  const log = new LogMemory(memory)
  const { capacity } = log
  let head = log.load(POSITION.head)
  let tail = log.load(POSITION.tail)
  let sequence = log.load(POSITION.sequence)

  function makeRoom(bytes: number): void {
    const before = tail
    while (head + bytes - tail > capacity) tail += RECORD_HEAD_BYTES + alignedTo(log.lengthAt(tail % capacity))
    if (tail === before) return
    log.store(POSITION.tail, tail)
    // Orders the store before the writes of what follows, on processors that could exchange them.
    log.load(POSITION.tail)
  }

  function append(length: number, isPadding: boolean): number {
    const bytes = RECORD_HEAD_BYTES + alignedTo(length)
    makeRoom(bytes)
    const at = head % capacity
    log.putHead(at, length, isPadding, sequence)
    head += bytes
    return at + RECORD_HEAD_BYTES
  }

  const fits = (length: number) => RECORD_HEAD_BYTES + alignedTo(length) <= capacity / 4

  return {
    fits,
    write(parts) {
      let length = 0
      for (const part of parts) length += part.length
      if (!fits(length)) return false
      const bytes = RECORD_HEAD_BYTES + alignedTo(length)
      const rest = capacity - (head % capacity)
      if (bytes > rest) append(rest - RECORD_HEAD_BYTES, true)
      let at = append(length, false)
      for (const part of parts) {
        log.bytes.set(part, at)
        at += part.length
      }
      sequence += 1
      log.store(POSITION.sequence, sequence)
      log.store(POSITION.head, head)
      Atomics.add(log.signal, SIGNAL, 1)
      Atomics.notify(log.signal, SIGNAL)
      return true
    },
  }
}

/** Reads what is written from now on. */
export function openOutputReader(
  memory: SharedArrayBuffer,
  { reusesMemory }: OutputReaderOptions = { reusesMemory: false },
): OutputReader {
  const log = new LogMemory(memory)
  let reused = new Uint8Array(0)
  const { capacity } = log
  const fence = new Int32Array(1)
  let signal = Atomics.load(log.signal, SIGNAL)
  let position = log.load(POSITION.head)
  let expected = log.load(POSITION.sequence)
  /** Both were read while the writer may have written: until a record is read or lost, `expected` may be one off. */
  let isExact = false

  /** Whether what was read at this position was not overwritten meanwhile. The store orders it before the check. */
  function isIntact(): boolean {
    Atomics.store(fence, 0, 0)
    return log.load(POSITION.tail) <= position
  }

  function copy(from: number, length: number): Uint8Array {
    if (!reusesMemory || length > REUSED_BYTES_MAX) return log.bytes.slice(from, from + length)
    if (length > reused.length) reused = new Uint8Array(Math.min(2 * length, REUSED_BYTES_MAX))
    reused.set(log.bytes.subarray(from, from + length))
    return reused.subarray(0, length)
  }

  /** The oldest records will be overwritten next, so reading goes on with the newest. */
  function fallBehind(head: number): undefined {
    position = head
    isExact = true
  }

  return {
    next() {
      signal = Atomics.load(log.signal, SIGNAL)
      const head = log.load(POSITION.head)
      while (position < head) {
        const at = position % capacity
        const length = log.lengthAt(at)
        const isPadding = log.isPaddingAt(at)
        const sequence = log.sequenceAt(at)
        if (!isIntact()) return fallBehind(head)
        if (isPadding) {
          position += RECORD_HEAD_BYTES + alignedTo(length)
          continue
        }
        const payload = copy(at + RECORD_HEAD_BYTES, length)
        if (!isIntact()) return fallBehind(head)
        position += RECORD_HEAD_BYTES + alignedTo(length)
        const lost = isExact ? sequence - expected : 0
        expected = sequence + 1
        isExact = true
        return { payload, lost }
      }
      return undefined
    },
    async wait(timeoutMs) {
      const waiting = Atomics.waitAsync(log.signal, SIGNAL, signal, timeoutMs)
      if (waiting.async) await waiting.value
    },
  }
}

function alignedTo(bytes: number): number {
  return Math.ceil(bytes / RECORD_ALIGN) * RECORD_ALIGN
}
