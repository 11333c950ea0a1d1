import type { WsCloseReason } from '../metrics.ts'

/** The socket of a client, as far as the stream is concerned. */
export type StreamSocket = {
  /** False while earlier bytes have not left yet: further writes would only be buffered. */
  readonly isClear: boolean
  /** Whether the client accepts compressed frames; false by default. */
  readonly isDeflating?: boolean
  write(bytes: Buffer): void
  /** `cause` is that of the metric. */
  close(code: number, message: string, cause: WsCloseReason): void
}

export type ClientLimits = {
  /** Frames queued for one client. */
  readonly framesMax: number
  /** Bytes queued for one client, so that a stalled client does not hold memory. */
  readonly bytesMax: number
  /** Frames dropped before the client is closed. */
  readonly dropsMax: number
}

type Piece = { readonly bytes: Buffer; readonly frames: number }

/** Bytes written at once, from the queue and during a replay. */
export const WRITE_BYTES = 256 * 1024

/** Frames that wait for the socket of one client, bounded in number and bytes. */
export class SendQueue {
  frames = 0
  bytes = 0
  readonly #socket: StreamSocket
  readonly #limits: ClientLimits
  readonly #onDelivered: (frames: number) => void
  #pieces: Piece[] = []

  constructor(socket: StreamSocket, limits: ClientLimits, onDelivered: (frames: number) => void) {
    this.#socket = socket
    this.#limits = limits
    this.#onDelivered = onDelivered
  }

  /** Nothing is queued and the socket takes bytes. */
  get isClear(): boolean {
    return this.#pieces.length === 0 && this.#socket.isClear
  }

  /** A single frame may be larger than `bytesMax`; it then waits in an otherwise empty queue. */
  hasRoom(frames: number, bytes: number): boolean {
    const { framesMax, bytesMax } = this.#limits
    if (this.frames + frames > framesMax) return false
    return this.frames === 0 || this.bytes + bytes <= bytesMax
  }

  /** Writes without queueing; only when the queue is clear. */
  write(bytes: Buffer, frames: number): void {
    this.#socket.write(bytes)
    this.#onDelivered(frames)
  }

  push(bytes: Buffer, frames: number): void {
    this.#pieces.push({ bytes, frames })
    this.frames += frames
    this.bytes += bytes.length
    this.flush()
  }

  /** Writes as much as the socket takes. */
  flush(): void {
    while (this.#pieces.length > 0 && this.#socket.isClear) {
      let bytes = 0
      let count = 0
      let frames = 0
      while (count < this.#pieces.length && bytes < WRITE_BYTES) {
        const piece = this.#pieces[count++] as Piece
        bytes += piece.bytes.length
        frames += piece.frames
      }
      const pieces = this.#pieces.splice(0, count)
      this.frames -= frames
      this.bytes -= bytes
      this.write(joinPieces(pieces), frames)
    }
  }

  clear(): void {
    this.#pieces = []
    this.frames = 0
    this.bytes = 0
  }
}

function joinPieces(pieces: readonly Piece[]): Buffer {
  return pieces.length === 1 ? (pieces[0] as Piece).bytes : Buffer.concat(pieces.map(({ bytes }) => bytes))
}
