// Imported although it is a global: the global is a getter that runs with each access.
import { Buffer } from 'node:buffer'
import type { Clock } from '../../../core/clock.ts'
import type { AcquiredBuffer, BufferPool } from '../../net/buffer-pool.ts'
import type { ResponseRest, RestListener } from '../response-rest.ts'
import type { ConnectionShare } from './connection-shares.ts'
import type { ResponseEvents, ResponseHead } from './response-reader.ts'

/** Why a call has no response. */
export type HttpCause =
  /** No connection could be made. */
  | 'connect'
  /** The name resolves to a forbidden address. */
  | 'address'
  /** All connections are in use and the queue is full. */
  | 'busy'
  /** Connections are scarce, and those of the call's owner and its places in the queue are in use. */
  | 'share'
  | 'deadline'
  /** The connection closed before the response was complete. */
  | 'broken'
  /** The same on a reused connection before any byte of a response: most likely it was dead already. */
  | 'stale'
  | 'bad-response'
  /** The server is silent, and the call may move to another one. */
  | 'silent'
  | 'aborted'
  | 'closed'

/** A failed call is `not-sent` when none of its bytes can have reached the server. */
export type HttpOutcome =
  | {
      readonly kind: 'reply'
      readonly head: ResponseHead
      readonly body: Buffer
      /** The memory of the body, where it is pooled: who has used the body up may release it, and must not touch the body afterwards. */
      readonly pooled?: PooledBody | undefined
      readonly rest: ResponseRest | undefined
    }
  | { readonly kind: 'not-sent' | 'maybe-sent'; readonly cause: HttpCause; readonly message: string }

/** Pooled memory that is garbage collected where nobody releases it. */
export type PooledBody = Pick<AcquiredBuffer, 'release'>

/** Until when a call may be ended for another server to take it. */
export type MovableUntil = 'sent' | 'response'

/** The connection as its exchange sees it. */
export type ExchangeConnection = {
  pauseReading(): void
  resumeReading(): void
  destroy(cause: HttpCause, message: string): void
}

export type ExchangeOptions = {
  /** Bodies up to this size are delivered complete, larger ones as a stream. */
  readonly bufferedBytesMax: number
  /** A streaming body that brings less than `STREAM_BYTES_MIN` in this time has failed. */
  readonly stallMs: number
  /** Memory for bodies that are delivered complete; holds `bufferedBytesMax` bytes in one buffer. */
  readonly bodies: BufferPool
}

/** In `stallMs`, so that a server that sends a byte now and then does not keep a call for ever. */
const STREAM_BYTES_MIN = 64 * 1024

/** The runtime takes smaller buffers from a slab of its own, without an allocation for each. */
const POOLED_BODY_BYTES_MIN = 4096

/** One request and its response. */
export class HttpExchange implements ResponseEvents {
  readonly body: Uint8Array | string
  readonly bodyBytes: number
  readonly movableUntil: MovableUntil | undefined
  /** The share that the owner of the call has of the connections. */
  readonly share: ConnectionShare<HttpExchange>
  /** Monotonic; extended while a body streams, infinite while it is paused. */
  deadlineAtMs: number
  connection: ExchangeConnection | undefined
  /** The head of the response has come. */
  hasReply = false
  readonly #options: ExchangeOptions
  readonly #clock: Clock
  #done: ((outcome: HttpOutcome) => void) | undefined
  #head: ResponseHead | undefined
  /** Buffer of a body whose length is known and small. */
  #bodyBuffer: Buffer | undefined
  #pooled: AcquiredBuffer | undefined
  #parts: Buffer[] = []
  #bytes = 0
  #isStream = false
  /** Bytes of the response since its deadline was extended. */
  #bytesInTime = 0
  #isPaused = false
  #hasEnded = false
  #failure: HttpCause | undefined
  #listener: RestListener | undefined

  constructor(
    request: Pick<HttpExchange, 'body' | 'bodyBytes' | 'deadlineAtMs' | 'movableUntil' | 'share'>,
    { options, clock, done }: { options: ExchangeOptions; clock: Clock; done: (outcome: HttpOutcome) => void },
  ) {
    this.body = request.body
    this.bodyBytes = request.bodyBytes
    this.deadlineAtMs = request.deadlineAtMs
    this.movableUntil = request.movableUntil
    this.share = request.share
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
    if (bodyBytes <= this.#options.bufferedBytesMax) this.#bodyBuffer = this.#bufferOf(bodyBytes)
    else this.#startStream()
  }

  onBody(bytes: Buffer): void {
    if (this.#bodyBuffer !== undefined) {
      this.#bodyBuffer.set(bytes, this.#bytes)
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
    if (this.#bytes > this.#options.bufferedBytesMax) this.#startStream()
  }

  onEnd(): void {
    if (!this.#isStream) {
      this.#finish({
        kind: 'reply',
        head: this.#head as ResponseHead,
        body: this.#bodyBuffer ?? Buffer.concat(this.#parts),
        pooled: this.#pooled,
        rest: undefined,
      })
      return
    }
    this.#hasEnded = true
    if (this.#parts.length === 0) this.#listener?.onEnd()
  }

  /** No response, or an incomplete one. */
  fail(kind: 'not-sent' | 'maybe-sent', cause: HttpCause, message: string): void {
    if (this.isOver) return
    if (!this.#isStream) {
      this.#finish({ kind, cause, message })
      return
    }
    this.#failure = cause
    this.#parts = []
    this.#listener?.onFail(cause)
  }

  #bufferOf(bytes: number): Buffer {
    if (bytes < POOLED_BODY_BYTES_MIN) return Buffer.allocUnsafe(bytes)
    this.#pooled = this.#options.bodies.acquire(bytes)
    return this.#pooled.bytes.subarray(0, bytes)
  }

  #finish(outcome: HttpOutcome): void {
    const done = this.#done
    this.#done = undefined
    this.#parts = []
    done?.(outcome)
  }

  /** The body is too large to hold: what has come is delivered now, and the reader controls the rest. */
  #startStream(): void {
    this.#isStream = true
    const body = Buffer.concat(this.#parts)
    this.#parts = []
    this.#pause()
    this.#finish({ kind: 'reply', head: this.#head as ResponseHead, body, rest: this.#rest() })
  }

  #rest(): ResponseRest {
    return {
      start: (listener) => {
        this.#listener = listener
        this.#resume()
      },
      pause: () => this.#pause(),
      resume: () => this.#resume(),
      abort: () => {
        this.#listener = undefined
        this.connection?.destroy('aborted', 'the rest of the body was aborted')
      },
    }
  }

  #pause(): void {
    this.#isPaused = true
    this.deadlineAtMs = Number.POSITIVE_INFINITY
    this.connection?.pauseReading()
  }

  #resume(): void {
    if (this.#listener === undefined) return
    this.#isPaused = false
    this.#extendDeadline()
    // Chunks that came after the pause are delivered first; the listener may pause again at any of them.
    while (this.#parts.length > 0 && !this.#isPaused) this.#listener.onData(this.#parts.shift() as Buffer)
    if (this.#isPaused) return
    if (this.#failure !== undefined) this.#listener.onFail(this.#failure)
    else if (this.#hasEnded) this.#listener.onEnd()
    else this.connection?.resumeReading()
  }

  #deliver(chunk: Buffer): void {
    if (this.#isPaused || this.#listener === undefined) {
      this.#parts.push(chunk)
      return
    }
    this.#bytesInTime += chunk.length
    if (this.#bytesInTime >= STREAM_BYTES_MIN) this.#extendDeadline()
    this.#listener.onData(chunk)
  }

  #extendDeadline(): void {
    this.#bytesInTime = 0
    this.deadlineAtMs = this.#clock.monotonicMs() + this.#options.stallMs
  }
}
