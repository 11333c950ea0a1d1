import { INFLATE_RATIO_MAX, type Unpacked } from '../http/gzip.ts'
import { FrameReader, type RequestProblem, tooLarge } from './frame-reader.ts'
import type { GrpcEncoding } from './framing.ts'
import type { Inflate } from './inflater.ts'
import { GrpcCode } from './status.ts'

export type RequestReaderDeps = {
  readonly encoding: GrpcEncoding
  /** The stream of the bytes, read only as fast as messages are delivered. */
  readonly source: { pause(): void; resume(): void }
  readonly inflate: Inflate
  /** Bytes of one message, as it arrives and inflated. Evaluated for each message, since a plan may change. */
  readonly bytesMax: () => number
  readonly onMessage: (message: Uint8Array) => void
  /** The client has half-closed and every message is delivered. */
  readonly onEnd: () => void
  /** The status to end the call with; nothing is delivered after it. */
  readonly onProblem: (problem: RequestProblem) => void
}

/** Messages delivered before the event loop serves other connections; a long one counts as one more for each TURN_MESSAGE_BYTES. */
const TURN_MESSAGES = 64
const TURN_MESSAGE_BYTES = 4096

/**
 * Reads the request messages of one call in order. One message at a time is inflated, on the thread pool; the stream is paused meanwhile.
 */
export class RequestReader {
  readonly #deps: RequestReaderDeps
  readonly #frames = new FrameReader()
  /** Waits for an inflation or for the next turn of the event loop. */
  #isBusy = false
  #isPaused = false
  #isPumping = false
  #isClosed = false
  #hasEnded = false
  #handled = 0

  constructor(deps: RequestReaderDeps) {
    this.#deps = deps
  }

  push(chunk: Uint8Array): void {
    if (this.#isClosed) return
    this.#frames.push(chunk)
    this.#pump()
  }

  end(): void {
    this.#hasEnded = true
    this.#pump()
  }

  /** Delivers nothing until `resume`. */
  pause(): void {
    this.#isPaused = true
    if (!this.#isClosed) this.#deps.source.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#pump()
  }

  /** Ends delivery. */
  close(): void {
    this.#isClosed = true
  }

  #canDeliver(): boolean {
    return !this.#isBusy && !this.#isPaused && !this.#isClosed
  }

  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    while (this.#canDeliver()) {
      const frame = this.#frames.next(this.#deps.bytesMax())
      if (frame === undefined) break
      if ('code' in frame) this.#fail(frame)
      else if (frame.isCompressed) this.#inflate(frame.body)
      else this.#deliver(frame.body)
    }
    this.#isPumping = false
    if (this.#isClosed) return
    if (!this.#canDeliver()) this.#deps.source.pause()
    else if (this.#hasEnded) this.#finish()
    else this.#deps.source.resume()
  }

  #deliver(message: Uint8Array): void {
    this.#deps.onMessage(message)
    this.#handled += 1 + message.length / TURN_MESSAGE_BYTES
    if (this.#handled < TURN_MESSAGES) return
    this.#isBusy = true
    setImmediate(() => {
      this.#handled = 0
      this.#isBusy = false
      this.#pump()
    })
  }

  #inflate(packed: Uint8Array): void {
    const { encoding } = this.#deps
    if (encoding === 'identity') {
      return this.#fail({ code: GrpcCode.internal, message: 'a compressed message without grpc-encoding' })
    }
    const bytesMax = this.#deps.bytesMax()
    this.#isBusy = true
    void this.#deps.inflate(packed, { encoding, bytesMax, isWanted: () => !this.#isClosed }).then((outcome) => {
      this.#isBusy = false
      if (this.#isClosed || outcome === 'unwanted') return
      if (outcome.ok) this.#deliver(outcome.body)
      else this.#fail(problemOf(outcome, bytesMax))
      this.#pump()
    })
  }

  #finish(): void {
    this.#isClosed = true
    if (this.#frames.isAtBoundary) this.#deps.onEnd()
    else this.#deps.onProblem({ code: GrpcCode.internal, message: 'the request ended within a message' })
  }

  #fail(problem: RequestProblem): void {
    this.#isClosed = true
    this.#deps.onProblem(problem)
  }
}

function problemOf({ reason, bytes }: Extract<Unpacked, { ok: false }>, bytesMax: number): RequestProblem {
  if (reason === 'malformed') {
    return { code: GrpcCode.internal, message: 'a compressed message that cannot be decompressed', bytes }
  }
  if (reason === 'too-large') return { ...tooLarge('an inflated message of more bytes', bytesMax), bytes }
  const message = `limit reached: the ratio to which a message inflates, inflateRatio allows ${INFLATE_RATIO_MAX}; send it uncompressed`
  return { code: GrpcCode.invalidArgument, message, limit: 'inflateRatio', bytes }
}
