import { createBoundedQueue } from '../../core/bounded-queue.ts'
import { streamOverhead } from './frames.ts'
import type { Carried } from './recovery.ts'

/** The outcome of a stream: every byte acknowledged, refused by the peer, not opened at a limit, or the connection ended first. */
export type StreamOutcome = 'delivered' | 'refused' | 'busy' | 'lost'

/** `reason` may be empty. */
export type StreamDone = (outcome: StreamOutcome, reason: string) => void

export type StreamPiece = {
  readonly stream: number
  readonly offset: number
  readonly data: Uint8Array
  readonly isLast: boolean
  readonly carried: Carried
}

type Outgoing = {
  readonly bytes: Uint8Array
  readonly done: StreamDone
  id: number
  /** Bytes handed out: the final size of a stream that is reset. */
  sentBytes: number
  /** Pieces that are not acknowledged. */
  unacked: number
  dataMax: number
  stalledAtMs: number
  isOver: boolean
}

type Piece = {
  readonly stream: Outgoing
  readonly offset: number
  readonly data: Uint8Array
  readonly isLast: boolean
  isAcked: boolean
  isQueued: boolean
}

export type SendStreamsOptions = {
  readonly queuedMax: number
  readonly activeMax: number
  /** Streams that have used up their own limit; a further one that is longer than the first limit is `busy`. */
  readonly stalledMax: number
  /** A stream whose limit is not raised within this time is refused. */
  readonly stalledMsMax: number
  readonly pieceBytesMax: number
}

/** Ids of streams that a client opens in one direction end in binary 10 (RFC 9000 section 2.1). */
const FIRST_ID = 2
const ID_STEP = 4

/**
 * Unidirectional streams that are written once and closed: opened as flow control allows, split into pieces, resent when lost. A stream that has used up its
 * own limit waits beside the others, for a limited time: a peer may never raise it, as one whose window is the longest stream that it takes.
 */
export class SendStreams {
  readonly #options: SendStreamsOptions
  readonly #queued
  readonly #active = new Map<number, Outgoing>()
  /** Streams with bytes that their own limit allows. One at a time is opened; others come back when their limit is raised. */
  #sending: Outgoing[] = []
  /** Streams that wait for a higher limit, in the order of time. */
  readonly #stalled = new Set<Outgoing>()
  #unreported: Outgoing[] = []
  #lost: Piece[] = []
  #opened = 0
  #sentBytes = 0
  #dataMax = 0
  #streamDataMax = 0
  #streamsMax = 0

  constructor(options: SendStreamsOptions) {
    this.#options = options
    this.#queued = createBoundedQueue<Outgoing>({ itemsMax: options.queuedMax })
  }

  get queued(): number {
    return this.#queued.size
  }

  get active(): number {
    return this.#active.size
  }

  /** The limit that blocks all streams, for a BLOCKED frame. */
  get blocked(): { readonly by: 'streams' | 'data'; readonly at: number } | undefined {
    if (this.#sending[0] !== undefined && this.#sentBytes >= this.#dataMax) return { by: 'data', at: this.#dataMax }
    if (this.#queued.size > 0 && this.#opened >= this.#streamsMax) return { by: 'streams', at: this.#streamsMax }
    return undefined
  }

  /** The streams that have reached their own limit since the last call, for STREAM_DATA_BLOCKED frames. */
  takeStalled(): { readonly stream: number; readonly at: number }[] {
    const stalled = this.#unreported.filter((stream) => this.#stalled.has(stream))
    this.#unreported = []
    return stalled.map(({ id, dataMax }) => ({ stream: id, at: dataMax }))
  }

  /** When `takeExpired` is to be called, or infinity. */
  get stalledDueMs(): number {
    const [oldest] = this.#stalled
    return oldest === undefined ? Number.POSITIVE_INFINITY : oldest.stalledAtMs + this.#options.stalledMsMax
  }

  /** Refuses the streams whose limit was not raised in time. Returns their final sizes, for RESET_STREAM. */
  takeExpired(nowMs: number): { readonly stream: number; readonly finalBytes: number }[] {
    const expired: { stream: number; finalBytes: number }[] = []
    for (const stream of this.#stalled) {
      if (nowMs < stream.stalledAtMs + this.#options.stalledMsMax) break
      const { id, bytes, dataMax, sentBytes } = stream
      expired.push({ stream: id, finalBytes: sentBytes })
      const reason = `the peer takes ${dataMax} of its ${bytes.length} bytes, and no more within ${this.#options.stalledMsMax} ms`
      this.#finish(stream, 'refused', reason)
    }
    return expired
  }

  /** False when the queue is full; `done` is then not called. */
  offer(bytes: Uint8Array, done: StreamDone): boolean {
    return this.#queued.offer({
      bytes,
      done,
      id: -1,
      sentBytes: 0,
      unacked: 0,
      dataMax: 0,
      stalledAtMs: 0,
      isOver: false,
    })
  }

  /** The limits of the handshake; later frames only raise them. */
  begin(limits: { dataMax: number; streamDataMax: number; streamsMax: number }): void {
    this.#streamDataMax = limits.streamDataMax
    this.raiseData(limits.dataMax)
    this.raiseStreams(limits.streamsMax)
  }

  raiseData(max: number): void {
    this.#dataMax = Math.max(this.#dataMax, max)
  }

  raiseStreams(max: number): void {
    this.#streamsMax = Math.max(this.#streamsMax, max)
  }

  /** False for a stream that was never opened. */
  raiseStreamData(id: number, max: number): boolean {
    const stream = this.#active.get(id)
    if (stream === undefined || max <= stream.dataMax) return this.#isOpened(id)
    stream.dataMax = max
    if (this.#stalled.delete(stream)) this.#sending.push(stream)
    return true
  }

  /** On STOP_SENDING. Returns the final size, for RESET_STREAM. */
  stop(id: number): { readonly isKnown: boolean; readonly finalBytes: number | undefined } {
    const stream = this.#active.get(id)
    if (stream === undefined) return { isKnown: this.#isOpened(id), finalBytes: undefined }
    this.#finish(stream, 'refused', '')
    return { isKnown: true, finalBytes: stream.sentBytes }
  }

  #isOpened(id: number): boolean {
    return id % ID_STEP === FIRST_ID && (id - FIRST_ID) / ID_STEP < this.#opened
  }

  /** The next piece that fits and may be sent. */
  next(roomBytes: number, nowMs: number): StreamPiece | undefined {
    const lost = this.#nextLost()
    if (lost !== undefined) {
      if (!fits(lost, roomBytes)) return undefined
      this.#lost.shift()
      return this.#hand(lost)
    }
    const stream = this.#nextStream(nowMs)
    if (stream === undefined || !this.#maySend(stream)) return undefined
    const piece = this.#cut(stream)
    if (!fits(piece, roomBytes)) return undefined
    this.#sentBytes += piece.data.length
    stream.sentBytes += piece.data.length
    stream.unacked += 1
    if (piece.isLast || stream.sentBytes === stream.dataMax) this.#sending.shift()
    if (!piece.isLast && stream.sentBytes === stream.dataMax) this.#stall(stream, nowMs)
    return this.#hand(piece)
  }

  #nextLost(): Piece | undefined {
    while (this.#lost[0]?.isAcked === true || this.#lost[0]?.stream.isOver === true) this.#lost.shift()
    return this.#lost[0]
  }

  /** Whether `next` would return a piece, given enough room. */
  hasToSend(nowMs: number): boolean {
    if (this.#nextLost() !== undefined) return true
    const stream = this.#nextStream(nowMs)
    return stream !== undefined && this.#maySend(stream)
  }

  #maySend(stream: Outgoing): boolean {
    return stream.bytes.length === 0 || this.#creditBytes(stream) > 0
  }

  #creditBytes({ sentBytes, dataMax }: Outgoing): number {
    return Math.min(dataMax - sentBytes, this.#dataMax - this.#sentBytes)
  }

  #nextStream(nowMs: number): Outgoing | undefined {
    do {
      while (this.#sending[0]?.isOver === true) this.#sending.shift()
      if (this.#sending[0] !== undefined) return this.#sending[0]
    } while (this.#open(nowMs))
    return undefined
  }

  /** Opens the next stream, or finishes it at a limit. False when none waits or may be opened. */
  #open(nowMs: number): boolean {
    if (this.#opened >= this.#streamsMax || this.#active.size >= this.#options.activeMax) return false
    const stream = this.#queued.shift()
    if (stream === undefined) return false
    const isLong = stream.bytes.length > this.#streamDataMax
    if (isLong && this.#stalled.size >= this.#options.stalledMax) {
      const reason = `${this.#stalled.size} streams longer than the ${this.#streamDataMax} bytes that the peer takes are waiting`
      this.#finish(stream, 'busy', reason)
      return true
    }
    stream.id = FIRST_ID + ID_STEP * this.#opened
    stream.dataMax = this.#streamDataMax
    this.#opened += 1
    this.#active.set(stream.id, stream)
    if (isLong && stream.dataMax === 0) this.#stall(stream, nowMs)
    else this.#sending.push(stream)
    return true
  }

  #stall(stream: Outgoing, nowMs: number): void {
    stream.stalledAtMs = nowMs
    this.#stalled.add(stream)
    this.#unreported.push(stream)
  }

  /** The next bytes that the limits allow. */
  #cut(stream: Outgoing): Piece {
    const { bytes, sentBytes: offset } = stream
    const data = bytes.subarray(offset, offset + Math.min(this.#options.pieceBytesMax, this.#creditBytes(stream)))
    return { stream, offset, data, isLast: offset + data.length === bytes.length, isAcked: false, isQueued: false }
  }

  #hand(piece: Piece): StreamPiece {
    piece.isQueued = false
    const { stream, offset, data, isLast } = piece
    return {
      stream: stream.id,
      offset,
      data,
      isLast,
      carried: {
        acked: () => {
          if (piece.isAcked) return
          piece.isAcked = true
          stream.unacked -= 1
          if (stream.unacked === 0 && stream.sentBytes === stream.bytes.length) this.#finish(stream, 'delivered', '')
        },
        lost: () => {
          if (piece.isAcked || piece.isQueued || stream.isOver) return
          piece.isQueued = true
          this.#lost.push(piece)
        },
      },
    }
  }

  #finish(stream: Outgoing, outcome: StreamOutcome, reason: string): void {
    if (stream.isOver) return
    stream.isOver = true
    this.#active.delete(stream.id)
    this.#stalled.delete(stream)
    stream.done(outcome, reason)
  }

  /** The connection has ended for this reason: calls `done` for every undelivered stream. */
  failAll(reason: string): void {
    for (const stream of [...this.#active.values()]) this.#finish(stream, 'lost', reason)
    for (let stream = this.#queued.shift(); stream !== undefined; stream = this.#queued.shift())
      this.#finish(stream, 'lost', reason)
    this.#sending = []
    this.#unreported = []
    this.#lost = []
  }
}

function fits({ stream, offset, data }: Piece, roomBytes: number): boolean {
  return streamOverhead(stream.id, offset, data.length) + data.length <= roomBytes
}
