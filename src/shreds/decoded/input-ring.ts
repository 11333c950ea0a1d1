import { copyBytes } from '../../core/copy-bytes.ts'
import { CODING_SHRED_BYTES } from '../../solana/shred/shred.ts'

/**
 * Shreds on their way from the relay to the engine, in memory that both threads share. The relay is the only writer and the engine the only reader.
 * The writer never waits: a shred that finds the ring full is dropped and counted.
 *
 *     header   Int32: see HEADER
 *     cells    STRIDE bytes each, written in turn: arrival f64, length u16, verified u8, generation u8, then the shred at SHRED_IN_CELL
 *
 * A shred is visible to the reader when `written` is stored after it; its cell may be used again when `read` is stored after it. Both count up and
 * wrap around at 2^32, so the number of cells is a power of two. `waiting` is the number of the reader's current wait, 0 while it does not wait.
 */
export type InputWriter = {
  /** Copies the shred, without bytes that follow it, into the ring; false when the ring is full. The reader sees it after `publish`. */
  offer(
    bytes: Uint8Array,
    at: number,
    length: number,
    arrivalNanos: number,
    isVerified: boolean,
    generation?: number,
  ): boolean
  /** Makes what was offered visible to a reader that does not wait. */
  publish(): void
  /** Wakes the reader if it waits: once, however often this is called until it waits again. */
  wake(): void
  /** Both. */
  flush(): void
}

export type InputReader = {
  /** Passes at most `max` waiting shreds to `take` and returns how many there were. `bytes` is valid until `take` returns. */
  read(max: number, take: TakeShred): number
  /** Blocks the thread until there is a shred, or for this time. */
  wait(timeoutMs: number): void
  /** Discards what waits: after a restart it is out of date. */
  discard(): number
  /** Shreds dropped because the ring was full, since the memory was made; wraps around at 2^32. */
  dropped(): number
}

export type TakeShred = (
  bytes: Uint8Array,
  at: number,
  length: number,
  arrivalNanos: number,
  isVerified: boolean,
  generation: number,
) => void

/** `written` and `read` are in different lines of the processor's cache. */
const HEADER = { written: 0, dropped: 1, read: 16, waiting: 17, waits: 18 } as const
/** The waits of a reader are numbered from 1 to this. */
const WAITS_MAX = 2 ** 30
const HEADER_BYTES = 128
const LENGTH_IN_CELL = 8
const VERIFIED_IN_CELL = 10
const GENERATION_IN_CELL = 11
const SHRED_IN_CELL = 16
const STRIDE = SHRED_IN_CELL + Math.ceil(CODING_SHRED_BYTES / 8) * 8

/** Memory for at least so many shreds; pages that are not used are not touched. */
export function createInputMemory(shreds: number): SharedArrayBuffer {
  const cells = 2 ** Math.ceil(Math.log2(shreds))
  return new SharedArrayBuffer(HEADER_BYTES + cells * STRIDE)
}

function viewsOf(memory: SharedArrayBuffer) {
  const cells = (memory.byteLength - HEADER_BYTES) / STRIDE
  return {
    header: new Int32Array(memory, 0, HEADER_BYTES / 4),
    bytes: new Uint8Array(memory, HEADER_BYTES),
    arrivals: new Float64Array(memory, HEADER_BYTES),
    lengths: new Uint16Array(memory, HEADER_BYTES),
    cells,
    mask: cells - 1,
  }
}

export function openInputWriter(memory: SharedArrayBuffer): InputWriter {
  const { header, bytes: target, arrivals, lengths, cells, mask } = viewsOf(memory)
  let written = Atomics.load(header, HEADER.written)
  /** As last seen: it is read again only when the ring seems full. */
  let read = Atomics.load(header, HEADER.read)

  function publish(): void {
    Atomics.store(header, HEADER.written, written)
  }

  /** Number of a wait that a reader began with less than was written: it was woken, or has seen that `written` is different and did not sleep. */
  let ended = 0

  function wake(): void {
    const waiting = Atomics.load(header, HEADER.waiting)
    if (waiting === 0 || waiting === ended || Atomics.load(header, HEADER.read) === written) return
    ended = waiting
    Atomics.notify(header, HEADER.written)
  }

  return {
    offer(bytes, at, length, arrivalNanos, isVerified, generation = 0) {
      if (((written - read) | 0) >= cells) {
        read = Atomics.load(header, HEADER.read)
        if (((written - read) | 0) >= cells) {
          header[HEADER.dropped] = ((header[HEADER.dropped] as number) + 1) | 0
          return false
        }
      }
      const cell = (written & mask) * STRIDE
      arrivals[cell >> 3] = arrivalNanos
      const kept = Math.min(length, CODING_SHRED_BYTES)
      lengths[(cell + LENGTH_IN_CELL) >> 1] = kept
      target[cell + VERIFIED_IN_CELL] = isVerified ? 1 : 0
      target[cell + GENERATION_IN_CELL] = generation
      copyBytes(bytes, at, at + kept, target, cell + SHRED_IN_CELL)
      written = (written + 1) | 0
      return true
    },
    publish,
    wake,
    flush() {
      publish()
      wake()
    },
  }
}

/** Wakes the reader without a shred, for other work that it has. */
export function openInputWaker(memory: SharedArrayBuffer): () => void {
  const { header } = viewsOf(memory)
  return () => {
    if (Atomics.load(header, HEADER.waiting) !== 0) Atomics.notify(header, HEADER.written)
  }
}

export function openInputReader(memory: SharedArrayBuffer): InputReader {
  const { header, bytes, arrivals, lengths, mask } = viewsOf(memory)
  let read = Atomics.load(header, HEADER.read)

  return {
    read(max, take) {
      const waiting = (Atomics.load(header, HEADER.written) - read) | 0
      const count = Math.min(waiting, max)
      for (let i = 0; i < count; i++) {
        const cell = (read & mask) * STRIDE
        const length = lengths[(cell + LENGTH_IN_CELL) >> 1] as number
        const arrivalNanos = arrivals[cell >> 3] as number
        const isVerified = bytes[cell + VERIFIED_IN_CELL] === 1
        take(bytes, cell + SHRED_IN_CELL, length, arrivalNanos, isVerified, bytes[cell + GENERATION_IN_CELL] as number)
        read = (read + 1) | 0
        Atomics.store(header, HEADER.read, read)
      }
      return count
    },
    wait(timeoutMs) {
      const number = (Atomics.load(header, HEADER.waits) % WAITS_MAX) + 1
      Atomics.store(header, HEADER.waits, number)
      Atomics.store(header, HEADER.waiting, number)
      Atomics.wait(header, HEADER.written, read, timeoutMs)
      Atomics.store(header, HEADER.waiting, 0)
    },
    discard() {
      const written = Atomics.load(header, HEADER.written)
      const count = (written - read) | 0
      read = written
      Atomics.store(header, HEADER.read, read)
      return count
    },
    dropped: () => (Atomics.load(header, HEADER.dropped) as number) >>> 0,
  }
}
