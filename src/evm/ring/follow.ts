import { messageOf } from '../../core/error.ts'
import type { EventBatch } from './event-batch.ts'
import type { RingRefusal } from './layout.ts'
import type { RingStart } from './position.ts'
import { createRingReader, type ReaderOptions, type ReaderStats, type ReadResult, type RingReader } from './reader.ts'
import type { RingSource } from './source.ts'

/** One opened ring file. It stays readable when its path later leads to another file or to none. */
export type OpenedRing = RingSource & {
  /** How it is read; undefined for memory. */
  readonly mode?: 'positional' | 'mapped' | 'unpacked'
  /** True when the path no longer leads to this file. */
  isReplaced(): boolean
  close(): void
}

export type FollowOptions = {
  /** Where reading of the first ring starts. */
  start: RingStart | { seqno: number }
  /** How often the path is checked for a first or another file. */
  checkMs: number
  reader: Partial<ReaderOptions>
}

const FOLLOW_DEFAULTS: FollowOptions = { start: 'newest-block', checkMs: 1000, reader: {} }

export type FollowResult =
  | Exclude<ReadResult, { kind: 'rewound' }>
  /** There is no file at the path. */
  | { kind: 'missing' }
  /** The file at the path is not a readable ring. It is tried again, since a newer one may replace it. */
  | { kind: 'refused'; refusal: RingRefusal }
  /** The file cannot be opened or read. It is tried again, since this may pass. */
  | { kind: 'unreadable'; message: string }
  /** A ring was opened. `previousSeqno` is the last event of the ring before it, undefined for the first ring. */
  | { kind: 'opened'; previousSeqno: number | undefined; mode: OpenedRing['mode'] }

const MISSING: FollowResult = { kind: 'missing' }

/**
 * Follows a path across restarts of the node. A node that stops unlinks its ring, one that dies leaves it; in both cases the open file
 * gets no more events, so the path is compared with it regularly. The old file is read to its end before the new one is opened.
 */
export class RingFollower implements Disposable {
  readonly #open: () => OpenedRing | undefined
  readonly #options: FollowOptions
  readonly #closedStats: ReaderStats = { eventsRead: 0, eventsLost: 0, gaps: 0, payloadsLost: 0 }
  #ring: OpenedRing | undefined
  #reader: RingReader | undefined
  #previousSeqno: number | undefined
  #isFinishing = false
  #checkAtMs = Number.NEGATIVE_INFINITY
  #lastFailure: FollowResult = MISSING

  constructor(open: () => OpenedRing | undefined, options: Partial<FollowOptions> = {}) {
    this.#open = open
    this.#options = { ...FOLLOW_DEFAULTS, ...options }
  }

  /** Events of the last poll that returned `events`. */
  get batch(): EventBatch | undefined {
    return this.#reader?.batch
  }

  get cursor(): number {
    return this.#reader?.cursor ?? this.#previousSeqno ?? 0
  }

  /** Whether an event was read that was recorded after the ring was opened. */
  get hasNewEvents(): boolean {
    return this.#reader !== undefined && this.#reader.cursor > this.#reader.openedSeqno
  }

  get lagEvents(): number {
    return this.#reader?.lagEvents ?? 0
  }

  /** Totals over all rings followed so far. */
  get stats(): ReaderStats {
    const now = this.#reader?.stats
    const { eventsRead, eventsLost, gaps, payloadsLost } = this.#closedStats
    return {
      eventsRead: eventsRead + (now?.eventsRead ?? 0),
      eventsLost: eventsLost + (now?.eventsLost ?? 0),
      gaps: gaps + (now?.gaps ?? 0),
      payloadsLost: payloadsLost + (now?.payloadsLost ?? 0),
    }
  }

  poll(nowMs: number): FollowResult {
    try {
      return this.#poll(nowMs)
    } catch (error) {
      return this.#fail({ kind: 'unreadable', message: messageOf(error) })
    }
  }

  [Symbol.dispose](): void {
    this.#close()
  }

  #poll(nowMs: number): FollowResult {
    if (this.#reader === undefined) return this.#takeCheckDue(nowMs) ? this.#tryOpen() : this.#lastFailure
    if (!this.#isFinishing && this.#takeCheckDue(nowMs) && this.#ring?.isReplaced() === true) {
      this.#isFinishing = true
      this.#reader.finish()
    }
    const result = this.#reader.poll(nowMs)
    if (result.kind === 'rewound' || (result.kind === 'idle' && this.#isFinishing)) {
      this.#close()
      return this.#tryOpen()
    }
    return result
  }

  /** Whether the path is to be checked now; then the next check is due later. */
  #takeCheckDue(nowMs: number): boolean {
    if (nowMs < this.#checkAtMs) return false
    this.#checkAtMs = nowMs + this.#options.checkMs
    return true
  }

  #tryOpen(): FollowResult {
    const ring = this.#open()
    if (ring === undefined) return this.#fail(MISSING)
    const previousSeqno = this.#previousSeqno
    // A ring that replaces another is read from its first event, so that no event between the two is skipped.
    const start = previousSeqno === undefined ? this.#options.start : { seqno: 1 }
    let created: ReturnType<typeof createRingReader> | undefined
    try {
      created = createRingReader(ring, start, this.#options.reader)
    } finally {
      if (created?.ok !== true) ring.close()
    }
    if (!created.ok) return this.#fail({ kind: 'refused', refusal: created })
    this.#ring = ring
    this.#reader = created.reader
    this.#isFinishing = false
    return { kind: 'opened', previousSeqno, mode: ring.mode }
  }

  /** The result of the polls until the path is checked again. */
  #fail(failure: FollowResult): FollowResult {
    this.#lastFailure = failure
    return failure
  }

  #close(): void {
    const reader = this.#reader
    if (reader !== undefined) {
      this.#previousSeqno = reader.cursor
      this.#closedStats.eventsRead += reader.stats.eventsRead
      this.#closedStats.eventsLost += reader.stats.eventsLost
      this.#closedStats.gaps += reader.stats.gaps
      this.#closedStats.payloadsLost += reader.stats.payloadsLost
    }
    this.#ring?.close()
    this.#ring = undefined
    this.#reader = undefined
    this.#lastFailure = MISSING
  }
}
