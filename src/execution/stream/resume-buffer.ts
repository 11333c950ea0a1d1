import assert from 'node:assert/strict'
import type { FigureKind, Warning } from '../../contract/stream-events.ts'
import type { RawEventPart } from '../source/message.ts'

/** One published item. Metric frames are encoded once; raw events are filtered and encoded for each subscription. */
export type StreamEntry =
  | { readonly seq: number; readonly kind: FigureKind | 'Warning'; readonly frame: Buffer }
  | { readonly seq: number; readonly kind: 'Events'; readonly events: readonly RawEventPart[]; readonly bytes: number }

export type ResumeBufferOptions = {
  readonly entriesMax: number
  readonly bytesMax: number
  /** Frames may be kept in compressed form too, which is at most half as large. */
  readonly keepsDeflated?: boolean
}

/** `resume.bytesMax` where it is not set: about an hour of frames of a small chain. */
export const RESUME_BYTES = 64 * 1024 * 1024
/** The same for the simulated chain: about three minutes of frames. */
export const SIMULATED_RESUME_BYTES = 4 * 1024 * 1024

/** Memory of an entry besides its content. */
const OVERHEAD_BYTES = 96
/** Memory of a raw event besides its text: the objects with its filter fields. */
const EVENT_OVERHEAD_BYTES = 320

export function eventsBytes(events: readonly RawEventPart[]): number {
  return events.reduce((sum, { json }) => sum + json.length, events.length * EVENT_OVERHEAD_BYTES)
}

/** The last published entries, bounded in number and in bytes. Sequence numbers are consecutive, so an entry is found by subtraction. */
export class ResumeBuffer {
  readonly #options: ResumeBufferOptions
  /** A circular buffer that doubles when it is full. */
  #ring: (StreamEntry | undefined)[] = Array.from({ length: 1024 })
  #head = 0
  #size = 0
  #bytes = 0
  #oldestSeq = 0

  constructor(options: ResumeBufferOptions) {
    assert(options.entriesMax >= 1, 'entriesMax is at least 1')
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
    assert(this.#size === 0 || entry.seq === this.newestSeq + 1, 'sequence numbers are consecutive')
    if (this.#size === 0) this.#oldestSeq = entry.seq
    if (this.#size === this.#ring.length) this.#grow()
    this.#ring[(this.#head + this.#size) % this.#ring.length] = entry
    this.#size += 1
    this.#bytes += this.#bytesOf(entry)
    // The newest entry stays whatever its size.
    while (this.#size > 1 && (this.#size > this.#options.entriesMax || this.#bytes > this.#options.bytesMax)) {
      this.#dropOldest()
    }
  }

  /** The entry of a sequence number inside the window. */
  at(seq: number): StreamEntry {
    return this.#ring[(this.#head + (seq - this.#oldestSeq)) % this.#ring.length] as StreamEntry
  }

  #dropOldest(): void {
    this.#bytes -= this.#bytesOf(this.#ring[this.#head] as StreamEntry)
    this.#ring[this.#head] = undefined
    this.#head = (this.#head + 1) % this.#ring.length
    this.#size -= 1
    this.#oldestSeq += 1
  }

  #bytesOf(entry: StreamEntry): number {
    if (entry.kind === 'Events') return OVERHEAD_BYTES + entry.bytes
    const { length } = entry.frame
    return OVERHEAD_BYTES + (this.#options.keepsDeflated === true ? length + Math.ceil(length / 2) : length)
  }

  #grow(): void {
    const larger: (StreamEntry | undefined)[] = Array.from({ length: this.#ring.length * 2 })
    for (let at = 0; at < this.#size; at++) larger[at] = this.#ring[(this.#head + at) % this.#ring.length]
    this.#ring = larger
    this.#head = 0
  }
}

export type ResumeWindow = {
  /** 0 and 0 while the buffer is empty. */
  readonly oldestSeq: number
  readonly newestSeq: number
  /** The sequence number of the next entry. */
  readonly upcomingSeq: number
}

export type Cursor =
  | { ok: true; seq: number }
  | { ok: false; reason: (Warning & { type: 'resume_out_of_window' })['reason'] }

/**
 * Whether the buffer has everything after a cursor. Valid are the numbers from just before the oldest entry to the newest. Zero is the
 * cursor of a client that has received nothing; it is valid while the buffer is empty.
 */
export function checkCursor(text: string, { oldestSeq, newestSeq, upcomingSeq }: ResumeWindow): Cursor {
  const seq = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(seq)) return { ok: false, reason: 'invalid' }
  if (newestSeq === 0 && seq === 0) return { ok: true, seq: upcomingSeq - 1 }
  if (seq >= upcomingSeq) return { ok: false, reason: 'ahead' }
  const oldest = newestSeq === 0 ? upcomingSeq : oldestSeq
  return seq < oldest - 1 ? { ok: false, reason: 'too_old' } : { ok: true, seq }
}
