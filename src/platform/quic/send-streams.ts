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
  readonly pieceBytesMax: number
}

/** Ids of streams that a client opens in one direction end in binary 10 (RFC 9000 section 2.1). */
const FIRST_ID = 2
const ID_STEP = 4

/**
 * Unidirectional streams that are written once and closed: opened as flow control allows, split into pieces, resent when lost. One that is longer than the
 * window the peer gives each stream is refused before it is opened: the window is the longest stream that a validator takes, and one that sends more loses
 * its connection, with the streams of all others (agave: invalid_stream).
 */
export class SendStreams {
  readonly #options: SendStreamsOptions
  readonly #queued
  readonly #active = new Map<number, Outgoing>()
  /** The one that is not sent completely. */
  #sending: Outgoing | undefined
  #lost: Piece[] = []
  #opened = 0
  #sentBytes = 0
  #dataMax = 0
  /** Unknown before the handshake. */
  #streamDataMax = Number.POSITIVE_INFINITY
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
    if (this.#sending !== undefined && this.#sentBytes >= this.#dataMax) return { by: 'data', at: this.#dataMax }
    if (this.#queued.size > 0 && this.#opened >= this.#streamsMax) return { by: 'streams', at: this.#streamsMax }
    return undefined
  }

  /** False when the queue is full; `done` is then not called. It is called at once for a stream that is too long. */
  offer(bytes: Uint8Array, done: StreamDone): boolean {
    const stream = { bytes, done, id: -1, sentBytes: 0, unacked: 0, isOver: false }
    return this.#isRefused(stream) || this.#queued.offer(stream)
  }

  #isRefused(stream: Outgoing): boolean {
    const { length } = stream.bytes
    if (length <= this.#streamDataMax) return false
    this.#finish(
      stream,
      'refused',
      `the peer takes streams of ${this.#streamDataMax} bytes, and this one has ${length}`,
    )
    return true
  }

  /** The limits of the handshake; later frames only raise them. */
  begin(limits: { dataMax: number; streamDataMax: number; streamsMax: number }): void {
    this.#streamDataMax = limits.streamDataMax
    this.raiseData(limits.dataMax)
    this.raiseStreams(limits.streamsMax)
    for (let left = this.#queued.size; left > 0; left--) {
      const stream = this.#queued.shift()
      if (stream !== undefined && !this.#isRefused(stream)) this.#queued.offer(stream)
    }
  }

  raiseData(max: number): void {
    this.#dataMax = Math.max(this.#dataMax, max)
  }

  raiseStreams(max: number): void {
    this.#streamsMax = Math.max(this.#streamsMax, max)
  }

  /** On STOP_SENDING. Returns the final size, for RESET_STREAM. */
  stop(id: number): { readonly isKnown: boolean; readonly finalBytes: number | undefined } {
    const stream = this.#active.get(id)
    if (stream === undefined) return { isKnown: this.isOpened(id), finalBytes: undefined }
    this.#finish(stream, 'refused', '')
    return { isKnown: true, finalBytes: stream.sentBytes }
  }

  /** Whether a stream has had this id. */
  isOpened(id: number): boolean {
    return id % ID_STEP === FIRST_ID && (id - FIRST_ID) / ID_STEP < this.#opened
  }

  /** The next piece that fits and may be sent. */
  next(roomBytes: number): StreamPiece | undefined {
    const lost = this.#nextLost()
    if (lost !== undefined) {
      if (!fits(lost, roomBytes)) return undefined
      this.#lost.shift()
      return this.#hand(lost)
    }
    const stream = this.#nextStream()
    if (stream === undefined || !this.#maySend(stream)) return undefined
    const piece = this.#cut(stream)
    if (!fits(piece, roomBytes)) return undefined
    this.#sentBytes += piece.data.length
    stream.sentBytes += piece.data.length
    stream.unacked += 1
    if (piece.isLast) this.#sending = undefined
    return this.#hand(piece)
  }

  #nextLost(): Piece | undefined {
    while (this.#lost[0]?.isAcked === true || this.#lost[0]?.stream.isOver === true) this.#lost.shift()
    return this.#lost[0]
  }

  /** Whether `next` would return a piece, given enough room. */
  hasToSend(): boolean {
    if (this.#nextLost() !== undefined) return true
    const stream = this.#nextStream()
    return stream !== undefined && this.#maySend(stream)
  }

  #maySend(stream: Outgoing): boolean {
    return stream.bytes.length === 0 || this.#sentBytes < this.#dataMax
  }

  /** The stream to continue, or else the next one, which is opened. */
  #nextStream(): Outgoing | undefined {
    if (this.#sending?.isOver === true) this.#sending = undefined
    return (this.#sending ??= this.#open())
  }

  #open(): Outgoing | undefined {
    if (this.#opened >= this.#streamsMax || this.#active.size >= this.#options.activeMax) return undefined
    const stream = this.#queued.shift()
    if (stream === undefined) return undefined
    stream.id = FIRST_ID + ID_STEP * this.#opened
    this.#opened += 1
    this.#active.set(stream.id, stream)
    return stream
  }

  /** The next bytes that the limits allow. */
  #cut(stream: Outgoing): Piece {
    const { bytes, sentBytes: offset } = stream
    const creditBytes = this.#dataMax - this.#sentBytes
    const data = bytes.subarray(offset, offset + Math.min(this.#options.pieceBytesMax, creditBytes))
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
    stream.done(outcome, reason)
  }

  /** The connection has ended for this reason: calls `done` for every undelivered stream. */
  failAll(reason: string): void {
    for (const stream of [...this.#active.values()]) this.#finish(stream, 'lost', reason)
    for (let stream = this.#queued.shift(); stream !== undefined; stream = this.#queued.shift())
      this.#finish(stream, 'lost', reason)
    this.#sending = undefined
    this.#lost = []
  }
}

function fits({ stream, offset, data }: Piece, roomBytes: number): boolean {
  return streamOverhead(stream.id, offset, data.length) + data.length <= roomBytes
}
