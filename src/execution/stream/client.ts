import { STREAM_CLOSE, type Warning } from '../../contract/stream-events.ts'
import type { FlushWriter } from '../../platform/net/fair-flush-scheduler.ts'
import type { FrameConsumer, SharedPart } from '../../platform/net/shared-frames.ts'
import { encodeTextFrame } from '../../platform/ws/frame.ts'
import { type FrameRun, joinFrames, type StreamFrameBytes, type StreamGroup } from './group.ts'
import type { StreamEntry } from './resume-buffer.ts'

/** The socket of a client, as far as the stream is concerned. */
export type StreamSocket = {
  /** False while earlier bytes wait to leave: writing more would only pile up. */
  readonly isClear: boolean
  write(bytes: Buffer): void
  close(code: number, reason: string): void
}

export type ClientLimits = {
  /** Frames waiting for one client. */
  readonly framesMax: number
  /** The same in bytes; frames of a stalled client must not keep memory. */
  readonly bytesMax: number
  /** Frames dropped before the client is closed. */
  readonly dropsMax: number
}

/** What a client needs of the stream. */
export type ClientStream = {
  readonly oldestSeq: number
  readonly newestSeq: number
  at(seq: number): StreamEntry
  /** Something was published for this client: asks for its turn to write. */
  onDue(client: FlushWriter): void
  onDropped(frames: number): void
  onDelivered(frames: number): void
}

type Piece = { readonly bytes: Buffer; readonly frames: number }

/** A warning comes with each so many frames dropped, and in any case before the next frame. */
const WARN_EVERY = 1000
/** Bytes written at once while a client catches up. */
const WRITE_BYTES = 256 * 1024
/** Entries and raw events looked at before others have their turn: filters may let none of them pass. */
const LOOK_ITEMS = 1024

/**
 * One client: first it catches up from the buffer, waiting for its socket, then it gets what is published. When it does not keep up,
 * frames are dropped and told; nothing of it ever holds up anybody else.
 */
export class StreamClient implements FrameConsumer<StreamFrameBytes>, FlushWriter {
  group: StreamGroup
  readonly #socket: StreamSocket
  readonly #stream: ClientStream
  readonly #limits: ClientLimits
  readonly #onLive: () => void
  readonly #onReplayed: (items: number, bytes: number) => void
  /** Published and not looked at yet; what comes until then joins it. */
  #due: SharedPart<StreamFrameBytes> | undefined
  #isTurnDue = false
  #waiting: Piece[] = []
  #waitingFrames = 0
  #waitingBytes = 0
  #replayNext: number | undefined
  #dropped = 0
  #gap: { frames: number; fromSeq: number; toSeq: number } | undefined
  #isClosed = false

  constructor(
    group: StreamGroup,
    deps: {
      socket: StreamSocket
      stream: ClientStream
      limits: ClientLimits
      onLive: () => void
      /** Entries and raw events looked at while it catches up, and bytes made of them. */
      onReplayed: (items: number, bytes: number) => void
    },
  ) {
    this.group = group
    this.#socket = deps.socket
    this.#stream = deps.stream
    this.#limits = deps.limits
    this.#onLive = deps.onLive
    this.#onReplayed = deps.onReplayed
  }

  get isLive(): boolean {
    return this.#replayNext === undefined
  }

  /** Frames that wait for its socket. */
  get waitingFrames(): number {
    return this.#waitingFrames
  }

  /** Begins with the entries after `seq`; without one, at the end of the stream. */
  begin(afterSeq: number | undefined): void {
    if (afterSeq !== undefined) this.#replayNext = afterSeq + 1
    this.drained()
  }

  /** Control frames and snapshots: never dropped. A client that asks for many and reads none is closed. */
  send(bytes: Buffer): void {
    this.seal()
    this.#control(bytes)
  }

  #control(bytes: Buffer): void {
    this.#push({ bytes, frames: 0 })
    if (this.#waitingBytes > 2 * this.#limits.bytesMax) this.#close('does not read what it asks for')
  }

  offer(part: SharedPart<StreamFrameBytes>): void {
    if (this.#isClosed) return
    this.seal()
    this.#due = part
    this.#askForTurn()
  }

  #askForTurn(): void {
    if (this.#isTurnDue) return
    this.#isTurnDue = true
    this.#stream.onDue(this)
  }

  /** Its turn to write. */
  flush(): void {
    this.#isTurnDue = false
    this.seal()
    if (this.#replayNext !== undefined) this.drained()
  }

  /** What was published up to now goes out before anything that comes after it. */
  seal(): void {
    const part = this.#due
    if (part === undefined) return
    this.#due = undefined
    this.#deliver(part.take(this))
  }

  #deliver({ joined, frames }: FrameRun): void {
    if (this.#isClosed) return
    // Frames were dropped: that is told before anything else goes out.
    if (this.#gap !== undefined || !this.#hasRoom(frames.length, joined.length)) {
      for (const frame of frames) this.#offerOne(frame)
    } else if (this.#waiting.length === 0 && this.#socket.isClear) {
      this.#socket.write(joined)
      this.#stream.onDelivered(frames.length)
    } else this.#push({ bytes: joined, frames: frames.length })
  }

  /** The socket has room again. */
  drained(): void {
    if (this.#isClosed) return
    this.#writeWaiting()
    if (this.#replayNext !== undefined) this.#replay()
  }

  closed(): void {
    this.#isClosed = true
    this.#waiting = []
    this.#due = undefined
  }

  #offerOne({ seq, bytes }: StreamFrameBytes): void {
    if (this.#isClosed) return
    if (!this.#hasRoom(1, bytes.length)) return this.#drop(seq, seq, 1)
    this.#reportGap()
    this.#push({ bytes, frames: 1 })
  }

  #hasRoom(frames: number, bytes: number): boolean {
    const { framesMax, bytesMax } = this.#limits
    // One frame may be larger than all room: it then waits alone.
    if (this.#waitingFrames + frames > framesMax) return false
    return this.#waitingFrames === 0 || this.#waitingBytes + bytes <= bytesMax
  }

  #drop(fromSeq: number, toSeq: number, frames: number): void {
    this.#gap = {
      frames: (this.#gap?.frames ?? 0) + frames,
      fromSeq: this.#gap?.fromSeq ?? fromSeq,
      toSeq,
    }
    this.#dropped += frames
    this.#stream.onDropped(frames)
    if (this.#gap.frames >= WARN_EVERY) this.#reportGap()
    if (this.#dropped >= this.#limits.dropsMax) this.#close(`too slow: ${this.#dropped} frames dropped`)
  }

  #reportGap(): void {
    if (this.#gap === undefined) return
    const { fromSeq: from_seq, toSeq: to_seq } = this.#gap
    this.#gap = undefined
    const { dropsMax: drop_limit } = this.#limits
    const warning: Warning = { type: 'backpressure', dropped: this.#dropped, drop_limit, from_seq, to_seq }
    this.#control(encodeTextFrame(`{"seq":0,"Warning":${JSON.stringify(warning)}}`))
  }

  #push(piece: Piece): void {
    if (this.#isClosed) return
    this.#waiting.push(piece)
    this.#waitingFrames += piece.frames
    this.#waitingBytes += piece.bytes.length
    this.#writeWaiting()
  }

  #writeWaiting(): void {
    while (this.#waiting.length > 0 && this.#socket.isClear && !this.#isClosed) {
      let bytes = 0
      let count = 0
      let frames = 0
      while (count < this.#waiting.length && bytes < WRITE_BYTES) {
        const piece = this.#waiting[count++] as Piece
        bytes += piece.bytes.length
        frames += piece.frames
      }
      const pieces = this.#waiting.splice(0, count)
      this.#waitingFrames -= frames
      this.#waitingBytes -= bytes
      this.#socket.write(joinPieces(pieces))
      this.#stream.onDelivered(frames)
    }
    // The stream may fall quiet: what was dropped is told as soon as the client reads again.
    if (this.#gap !== undefined && this.#waiting.length === 0 && this.#socket.isClear) this.#reportGap()
  }

  /** Replay is not subject to dropping: it waits for the socket, and may only fall out of the buffer's other end. */
  #replay(): void {
    let left = LOOK_ITEMS
    while (this.#replayNext !== undefined && this.#waiting.length === 0 && this.#socket.isClear && !this.#isClosed) {
      const { oldestSeq, newestSeq } = this.#stream
      let next: number = this.#replayNext
      if (next < oldestSeq) {
        this.#drop(next, oldestSeq - 1, oldestSeq - next)
        this.#reportGap()
        this.#replayNext = oldestSeq
        continue
      }
      if (next > newestSeq || newestSeq === 0) return this.#goLive()
      if (left <= 0) return this.#askForTurn()
      const frames: StreamFrameBytes[] = []
      const before = left
      let bytes = 0
      for (; next <= newestSeq && bytes < WRITE_BYTES && left > 0; next++) {
        const entry = this.#stream.at(next)
        left -= entry.kind === 'Events' ? entry.events.length + 1 : 1
        const frame = this.group.frameOf(entry)
        if (frame === undefined) continue
        frames.push(frame)
        bytes += frame.bytes.length
      }
      this.#replayNext = next
      this.#onReplayed(before - left, bytes)
      if (frames.length === 0) continue
      this.#socket.write(joinFrames(frames))
      this.#stream.onDelivered(frames.length)
    }
  }

  /** Without a seam: everything published is out, and the next frame published is the next one for this client too. */
  #goLive(): void {
    this.#replayNext = undefined
    this.#onLive()
  }

  #close(reason: string): void {
    if (this.#isClosed) return
    this.closed()
    this.#socket.close(STREAM_CLOSE.policy, reason)
  }
}

function joinPieces(pieces: readonly Piece[]): Buffer {
  return pieces.length === 1 ? (pieces[0] as Piece).bytes : Buffer.concat(pieces.map(({ bytes }) => bytes))
}
