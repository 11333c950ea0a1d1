/** Receives the frames of a `SharedFrames`, several at a time. */
export type FrameConsumer<Frame> = {
  /** Offers a part that may still grow until the consumer takes it. */
  offer(part: SharedPart<Frame>): void
  /** Nothing more is offered: the part it was offered must not grow for it any more. */
  seal(): void
  /** False when it ignores offers. */
  readonly isOpen?: boolean
}

/** A run that is full is replaced, and all consumers are offered the next one: so a consumer that does not take keeps no more than its runs alive. */
const RUN_FRAMES_MAX = 128
const RUN_BYTES_MAX = 64 * 1024

type Run<Frame> = { readonly frames: Frame[]; bytes: number }

/**
 * Frames for many consumers, stored once instead of in a queue of each. A consumer that has taken everything is offered a part at the next frame, and
 * finds all later frames in it when it writes. So fan-out costs by the write and not by the frame.
 */
export class SharedFrames<Frame> {
  readonly #bytesOf: (frame: Frame) => Buffer
  readonly #consumers = new Set<FrameConsumer<Frame>>()
  /** Consumers that have taken everything, and a second set to swap with. */
  #caughtUp = new Set<FrameConsumer<Frame>>()
  #spare = new Set<FrameConsumer<Frame>>()
  #run: Run<Frame> = { frames: [], bytes: 0 }

  constructor(bytesOf: (frame: Frame) => Buffer) {
    this.#bytesOf = bytesOf
  }

  get size(): number {
    return this.#consumers.size
  }

  /** Whether any consumer accepts frames; usually the first one does. */
  get hasOpenConsumer(): boolean {
    for (const { isOpen } of this.#consumers) if (isOpen !== false) return true
    return false
  }

  /** Adds a consumer for the frames that are appended from now on. */
  join(consumer: FrameConsumer<Frame>): void {
    this.#consumers.add(consumer)
    this.#caughtUp.add(consumer)
  }

  /** Removes a consumer, which can still take what it was offered. */
  leave(consumer: FrameConsumer<Frame>): void {
    if (!this.#consumers.delete(consumer)) return
    this.#caughtUp.delete(consumer)
    this.#spare.delete(consumer)
    consumer.seal()
  }

  append(frame: Frame): void {
    if (this.#consumers.size === 0) return
    if (this.#run.frames.length >= RUN_FRAMES_MAX || this.#run.bytes >= RUN_BYTES_MAX) {
      this.#run = { frames: [], bytes: 0 }
      for (const consumer of this.#consumers) this.#caughtUp.add(consumer)
    }
    const run = this.#run
    const receivers = this.#caughtUp
    const part = receivers.size === 0 ? undefined : new SharedPart(this, run)
    run.frames.push(frame)
    run.bytes += this.#bytesOf(frame).length
    if (part === undefined) return
    this.#caughtUp = this.#spare
    this.#spare = receivers
    for (const receiver of receivers) receiver.offer(part)
    receivers.clear()
  }

  /** Called by `SharedPart.take`. */
  onTaken(consumer: FrameConsumer<Frame>, run: Run<Frame>): void {
    if (run !== this.#run || !this.#consumers.has(consumer)) return
    this.#caughtUp.add(consumer)
    if (this.#caughtUp.size === this.#consumers.size) this.#run = { frames: [], bytes: 0 }
  }

  joinBytes(frames: readonly Frame[]): Buffer {
    return frames.length === 1 ? this.#bytesOf(frames[0] as Frame) : Buffer.concat(frames.map(this.#bytesOf))
  }
}

export type TakenFrames<Frame> = { readonly frames: readonly Frame[]; readonly joined: Buffer }

/** The frames of a run from an index on. Consumers that are offered it at the same frame share it, so that its frames are joined once for all. */
export class SharedPart<Frame> {
  readonly #source: SharedFrames<Frame>
  readonly #run: Run<Frame>
  readonly #from: number
  readonly #fromBytes: number
  #taken: TakenFrames<Frame> = { frames: [], joined: NOTHING }

  constructor(source: SharedFrames<Frame>, run: Run<Frame>) {
    this.#source = source
    this.#run = run
    this.#from = run.frames.length
    this.#fromBytes = run.bytes
  }

  get byteLength(): number {
    return this.#run.bytes - this.#fromBytes
  }

  /** All frames so far; later ones are offered to the consumer in a new part. */
  take(consumer: FrameConsumer<Frame>): TakenFrames<Frame> {
    const { frames } = this.#run
    if (this.#taken.frames.length !== frames.length - this.#from) {
      const taken = frames.slice(this.#from)
      this.#taken = { frames: taken, joined: this.#source.joinBytes(taken) }
    }
    this.#source.onTaken(consumer, this.#run)
    return this.#taken
  }
}

const NOTHING = Buffer.alloc(0)
