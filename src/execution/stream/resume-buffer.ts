import assert from 'node:assert/strict'
import type { MetricKind } from '../../contract/stream-events.ts'
import type { RawEventPart } from '../source/message.ts'

/** One published item. Frames are encoded once; raw events are put together for each subscription. */
export type StreamEntry =
  | { readonly seq: number; readonly kind: MetricKind | 'Warning'; readonly frame: Buffer }
  | { readonly seq: number; readonly kind: 'Events'; readonly events: readonly RawEventPart[]; readonly bytes: number }

export type ResumeBufferOptions = { readonly entriesMax: number; readonly bytesMax: number }

/** What an entry takes beyond its text. */
const OVERHEAD_BYTES = 96

/**
 * The last entries, first in first out, bounded in number and in bytes. Numbers are consecutive, so an entry is found by subtraction.
 */
export class ResumeBuffer {
  readonly #options: ResumeBufferOptions
  /** A ring that doubles as it fills. */
  #ring: (StreamEntry | undefined)[] = Array.from({ length: 1024 })
  #head = 0
  #size = 0
  #bytes = 0
  #oldestSeq = 0

  constructor(options: ResumeBufferOptions) {
    assert(options.entriesMax >= 1, 'at least one entry is kept')
    this.#options = options
  }

  get size(): number {
    return this.#size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** 0 while empty. */
  get oldestSeq(): number {
    return this.#size === 0 ? 0 : this.#oldestSeq
  }

  get newestSeq(): number {
    return this.#size === 0 ? 0 : this.#oldestSeq + this.#size - 1
  }

  append(entry: StreamEntry): void {
    assert(this.#size === 0 || entry.seq === this.newestSeq + 1, 'numbers are consecutive')
    if (this.#size === 0) this.#oldestSeq = entry.seq
    if (this.#size === this.#ring.length) this.#grow()
    this.#ring[(this.#head + this.#size) % this.#ring.length] = entry
    this.#size += 1
    this.#bytes += bytesOf(entry)
    // The newest entry stays, whatever its size: a window without it would be no window.
    while (this.#size > 1 && (this.#size > this.#options.entriesMax || this.#bytes > this.#options.bytesMax)) {
      this.#dropOldest()
    }
  }

  /** The entry of a number inside the window. */
  at(seq: number): StreamEntry {
    return this.#ring[(this.#head + (seq - this.#oldestSeq)) % this.#ring.length] as StreamEntry
  }

  #dropOldest(): void {
    this.#bytes -= bytesOf(this.#ring[this.#head] as StreamEntry)
    this.#ring[this.#head] = undefined
    this.#head = (this.#head + 1) % this.#ring.length
    this.#size -= 1
    this.#oldestSeq += 1
  }

  #grow(): void {
    const larger: (StreamEntry | undefined)[] = Array.from({ length: this.#ring.length * 2 })
    for (let at = 0; at < this.#size; at++) larger[at] = this.#ring[(this.#head + at) % this.#ring.length]
    this.#ring = larger
    this.#head = 0
  }
}

function bytesOf(entry: StreamEntry): number {
  return OVERHEAD_BYTES + (entry.kind === 'Events' ? entry.bytes : entry.frame.length)
}
