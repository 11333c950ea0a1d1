import { createBoundedQueue } from '../../core/bounded-queue.ts'
import { streamOverhead } from './frames.ts'
import type { Carried } from './recovery.ts'

/** The outcome of a stream: every byte acknowledged, refused by the peer, or the connection ended first. */
export type StreamOutcome = 'delivered' | 'refused' | 'lost'

export type StreamPiece = {
  readonly stream: number
  readonly offset: number
  readonly data: Uint8Array
  readonly isLast: boolean
  readonly carried: Carried
}

type Outgoing = {
  readonly bytes: Uint8Array
  readonly done: (outcome: StreamOutcome) => void
  id: number
  unacked: number
  dataMax: number
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

/** Unidirectional streams that are written once and closed: opened as flow control allows, split into pieces, resent when lost. */
export class SendStreams {
  readonly #options: SendStreamsOptions
  readonly #queued
  readonly #active = new Map<number, Outgoing>()
  #fresh: Piece[] = []
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

  /** The limit that blocks streams, for a BLOCKED frame. */
  get blocked(): { readonly by: 'streams' | 'data'; readonly at: number } | undefined {
    if (this.#fresh[0] !== undefined && !this.#hasCredit(this.#fresh[0])) return { by: 'data', at: this.#dataMax }
    if (this.#queued.size > 0 && this.#opened >= this.#streamsMax) return { by: 'streams', at: this.#streamsMax }
    return undefined
  }

  /** False when the queue is full; `done` is then not called. */
  offer(bytes: Uint8Array, done: (outcome: StreamOutcome) => void): boolean {
    return this.#queued.offer({ bytes, done, id: -1, unacked: 0, dataMax: 0, isOver: false })
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
    if (stream !== undefined) stream.dataMax = Math.max(stream.dataMax, max)
    return this.#isOpened(id)
  }

  /** On STOP_SENDING. Returns the final size, for RESET_STREAM. */
  stop(id: number): { readonly isKnown: boolean; readonly finalBytes: number | undefined } {
    const stream = this.#active.get(id)
    if (stream === undefined) return { isKnown: this.#isOpened(id), finalBytes: undefined }
    this.#finish(stream, 'refused')
    return { isKnown: true, finalBytes: stream.bytes.length }
  }

  #isOpened(id: number): boolean {
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
    this.#open()
    while (this.#fresh[0]?.stream.isOver === true) this.#fresh.shift()
    const piece = this.#fresh[0]
    if (piece === undefined || !this.#hasCredit(piece) || !fits(piece, roomBytes)) return undefined
    this.#fresh.shift()
    this.#sentBytes += piece.data.length
    return this.#hand(piece)
  }

  #nextLost(): Piece | undefined {
    while (this.#lost[0]?.isAcked === true || this.#lost[0]?.stream.isOver === true) this.#lost.shift()
    return this.#lost[0]
  }

  /** Whether `next` would return a piece, given enough room. */
  get hasToSend(): boolean {
    if (this.#nextLost() !== undefined) return true
    this.#open()
    while (this.#fresh[0]?.stream.isOver === true) this.#fresh.shift()
    return this.#fresh[0] !== undefined && this.#hasCredit(this.#fresh[0])
  }

  #hasCredit({ stream, offset, data }: Piece): boolean {
    return this.#sentBytes + data.length <= this.#dataMax && offset + data.length <= stream.dataMax
  }

  /** One stream at a time is split: the others wait in order. */
  #open(): void {
    if (this.#fresh.length > 0 || this.#opened >= this.#streamsMax || this.#active.size >= this.#options.activeMax)
      return
    const stream = this.#queued.shift()
    if (stream === undefined) return
    stream.id = FIRST_ID + ID_STEP * this.#opened
    stream.dataMax = this.#streamDataMax
    this.#opened += 1
    this.#active.set(stream.id, stream)
    const { bytes } = stream
    const pieceBytes = Math.max(1, Math.min(this.#options.pieceBytesMax, this.#streamDataMax))
    for (let offset = 0; offset === 0 || offset < bytes.length; offset += pieceBytes) {
      const data = bytes.subarray(offset, offset + pieceBytes)
      const isLast = offset + data.length >= bytes.length
      this.#fresh.push({ stream, offset, data, isLast, isAcked: false, isQueued: false })
      stream.unacked += 1
    }
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
          if (stream.unacked === 0) this.#finish(stream, 'delivered')
        },
        lost: () => {
          if (piece.isAcked || piece.isQueued || stream.isOver) return
          piece.isQueued = true
          this.#lost.push(piece)
        },
      },
    }
  }

  #finish(stream: Outgoing, outcome: StreamOutcome): void {
    if (stream.isOver) return
    stream.isOver = true
    this.#active.delete(stream.id)
    stream.done(outcome)
  }

  /** The connection has ended: calls `done` for every undelivered stream. */
  failAll(): void {
    for (const stream of [...this.#active.values()]) this.#finish(stream, 'lost')
    for (let stream = this.#queued.shift(); stream !== undefined; stream = this.#queued.shift())
      this.#finish(stream, 'lost')
    this.#fresh = []
    this.#lost = []
  }
}

function fits({ stream, offset, data }: Piece, roomBytes: number): boolean {
  return streamOverhead(stream.id, offset, data.length) + data.length <= roomBytes
}
