// Imported although it is a global: the runtime finds that one through a getter, each time.
import { Buffer } from 'node:buffer'
import type { Clock } from '../../../core/clock.ts'
import type { ResponseHead, ResponseSink } from './response-reader.ts'

/** Why a call has no answer. */
export type HttpCause =
  /** No connection could be made. */
  | 'connect'
  /** The name resolves to a place that may not be connected to. */
  | 'address'
  /** All connections are taken and enough calls wait already. */
  | 'busy'
  | 'deadline'
  /** The connection ended before the answer did. */
  | 'broken'
  /** The same on a connection that had been idle, before any byte of an answer: most likely it was dead already. */
  | 'stale'
  | 'bad-response'
  | 'aborted'
  | 'closed'

/** Of a call that failed it is known whether any of its bytes can have reached the server. */
export type HttpOutcome =
  | { readonly kind: 'reply'; readonly head: ResponseHead; readonly body: Buffer; readonly rest: BodyRest | undefined }
  | { readonly kind: 'not-sent' | 'maybe-sent'; readonly cause: HttpCause; readonly message: string }

/** The part of a large answer that is still to come. Nothing is read from the server before `start`, nor while paused. */
export type BodyRest = {
  start(listener: BodyListener): void
  pause(): void
  resume(): void
  /** The rest is not wanted: the connection is cut. */
  abort(): void
}

export type BodyListener = {
  /** The buffer is the listener's to keep. */
  onData(chunk: Buffer): void
  onEnd(): void
  /** The answer is cut off here; what came before cannot be taken back. */
  onFail(cause: HttpCause, message: string): void
}

/** What an exchange asks of the connection that carries it. */
export type Carrier = { pauseReading(): void; resumeReading(): void; cut(cause: HttpCause, message: string): void }

export type ExchangeOptions = {
  /** Answers up to this size are handed over whole, larger ones as a stream. */
  readonly wholeBytesMax: number
  /** A stream that brings nothing for so long has failed. */
  readonly stallMs: number
}

/** One request and its answer. */
export class HttpExchange implements ResponseSink {
  readonly body: Uint8Array | string
  readonly bodyBytes: number
  /** Monotonic; moved on while a stream flows, infinite while its reader holds it. */
  deadlineAtMs: number
  carrier: Carrier | undefined
  /** Anything of the answer has come. */
  hasReply = false
  readonly #options: ExchangeOptions
  readonly #clock: Clock
  #done: ((outcome: HttpOutcome) => void) | undefined
  #head: ResponseHead | undefined
  /** Room for the whole body where its length is known and small. */
  #whole: Buffer | undefined
  #parts: Buffer[] = []
  #bytes = 0
  #isStream = false
  #isPaused = false
  #hasEnded = false
  #failure: { cause: HttpCause; message: string } | undefined
  #listener: BodyListener | undefined

  constructor(
    request: { body: Uint8Array | string; bodyBytes: number; deadlineAtMs: number },
    { options, clock, done }: { options: ExchangeOptions; clock: Clock; done: (outcome: HttpOutcome) => void },
  ) {
    this.body = request.body
    this.bodyBytes = request.bodyBytes
    this.deadlineAtMs = request.deadlineAtMs
    this.#options = options
    this.#clock = clock
    this.#done = done
  }

  get isOver(): boolean {
    return this.#done === undefined && (!this.#isStream || this.#hasEnded || this.#failure !== undefined)
  }

  onHead(head: ResponseHead): void {
    this.hasReply = true
    this.#head = head
    const { bodyBytes } = head
    if (bodyBytes === undefined) return
    if (bodyBytes <= this.#options.wholeBytesMax) this.#whole = Buffer.allocUnsafe(bodyBytes)
    else this.#handOver()
  }

  onBody(bytes: Buffer): void {
    if (this.#whole !== undefined) {
      this.#whole.set(bytes, this.#bytes)
      this.#bytes += bytes.length
      return
    }
    const copy = Buffer.from(bytes)
    if (this.#isStream) {
      this.#bytes += bytes.length
      this.#deliver(copy)
      return
    }
    this.#parts.push(copy)
    this.#bytes += bytes.length
    if (this.#bytes > this.#options.wholeBytesMax) this.#handOver()
  }

  onEnd(): void {
    if (!this.#isStream) {
      this.#finish({
        kind: 'reply',
        head: this.#head as ResponseHead,
        body: this.#whole ?? Buffer.concat(this.#parts),
        rest: undefined,
      })
      return
    }
    this.#hasEnded = true
    if (this.#parts.length === 0) this.#listener?.onEnd()
  }

  /** No answer, or no whole one. */
  fail(kind: 'not-sent' | 'maybe-sent', cause: HttpCause, message: string): void {
    if (this.isOver) return
    if (!this.#isStream) {
      this.#finish({ kind, cause, message })
      return
    }
    this.#failure = { cause, message }
    this.#parts = []
    this.#listener?.onFail(cause, message)
  }

  #finish(outcome: HttpOutcome): void {
    const done = this.#done
    this.#done = undefined
    this.#parts = []
    done?.(outcome)
  }

  /** Too large to be kept: what has come goes out now, and the reader decides how fast the rest follows. */
  #handOver(): void {
    this.#isStream = true
    const body = Buffer.concat(this.#parts)
    this.#parts = []
    this.#pause()
    this.#finish({ kind: 'reply', head: this.#head as ResponseHead, body, rest: this.#rest() })
  }

  #rest(): BodyRest {
    return {
      start: (listener) => {
        this.#listener = listener
        this.#resume()
      },
      pause: () => this.#pause(),
      resume: () => this.#resume(),
      abort: () => {
        this.#listener = undefined
        this.carrier?.cut('aborted', 'the rest was not wanted')
      },
    }
  }

  #pause(): void {
    this.#isPaused = true
    this.deadlineAtMs = Number.POSITIVE_INFINITY
    this.carrier?.pauseReading()
  }

  #resume(): void {
    if (this.#listener === undefined) return
    this.#isPaused = false
    this.deadlineAtMs = this.#clock.monotonicMs() + this.#options.stallMs
    // What the runtime still delivered after the pause comes first; the listener may pause again at any of it.
    while (this.#parts.length > 0 && !this.#isPaused) this.#listener.onData(this.#parts.shift() as Buffer)
    if (this.#isPaused) return
    if (this.#failure !== undefined) this.#listener.onFail(this.#failure.cause, this.#failure.message)
    else if (this.#hasEnded) this.#listener.onEnd()
    else this.carrier?.resumeReading()
  }

  #deliver(chunk: Buffer): void {
    if (this.#isPaused || this.#listener === undefined) {
      this.#parts.push(chunk)
      return
    }
    this.deadlineAtMs = this.#clock.monotonicMs() + this.#options.stallMs
    this.#listener.onData(chunk)
  }
}
