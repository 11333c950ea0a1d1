/** One who gets the frames of a `SharedFrames`, many at a time. */
export type FrameConsumer<Frame> = {
  /** What is in this part, and what comes to be in it until it is taken, waits for the taker. */
  offer(part: SharedPart<Frame>): void
  /** It will be offered nothing more: what waits for it grows no further. */
  seal(): void
  /** False for one that no longer takes what it is offered. */
  readonly isOpen?: boolean
}

/** So many frames are kept together; then all are told of a new run, so that nobody who does not take can keep old ones alive unseen. */
const RUN_FRAMES_MAX = 128
const RUN_BYTES_MAX = 64 * 1024

type Run<Frame> = { readonly frames: Frame[]; bytes: number }

/**
 * Frames that many get. A frame is put here once and not into a queue of each: who has taken all is told of the first that comes after, and finds
 * those that came since when its turn to write comes. So fan-out costs by the write and not by the frame.
 */
export class SharedFrames<Frame> {
  readonly #bytesOf: (frame: Frame) => Buffer
  readonly #consumers = new Set<FrameConsumer<Frame>>()
  /** Those who have taken all, and a second set to change with. */
  #caughtUp = new Set<FrameConsumer<Frame>>()
  #spare = new Set<FrameConsumer<Frame>>()
  #run: Run<Frame> = { frames: [], bytes: 0 }

  constructor(bytesOf: (frame: Frame) => Buffer) {
    this.#bytesOf = bytesOf
  }

  get size(): number {
    return this.#consumers.size
  }

  /** Whether anybody takes what is appended; most often the first is asked and no other. */
  get hasOpenConsumer(): boolean {
    for (const { isOpen } of this.#consumers) if (isOpen !== false) return true
    return false
  }

  /** Gets what is appended from now on. */
  join(consumer: FrameConsumer<Frame>): void {
    this.#consumers.add(consumer)
    this.#caughtUp.add(consumer)
  }

  /** What it was offered is still its to take. */
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
    const reported = this.#caughtUp
    const part = reported.size === 0 ? undefined : new SharedPart(this, run)
    run.frames.push(frame)
    run.bytes += this.#bytesOf(frame).length
    if (part === undefined) return
    this.#caughtUp = this.#spare
    this.#spare = reported
    for (const receiver of reported) receiver.offer(part)
    reported.clear()
  }

  /** To be called by `SharedPart`. */
  took(consumer: FrameConsumer<Frame>, run: Run<Frame>): void {
    if (run !== this.#run || !this.#consumers.has(consumer)) return
    this.#caughtUp.add(consumer)
    if (this.#caughtUp.size === this.#consumers.size) this.#run = { frames: [], bytes: 0 }
  }

  joinBytes(frames: readonly Frame[]): Buffer {
    return frames.length === 1 ? this.#bytesOf(frames[0] as Frame) : Buffer.concat(frames.map(this.#bytesOf))
  }
}

export type TakenFrames<Frame> = { readonly frames: readonly Frame[]; readonly joined: Buffer }

/** The frames of a run from a place on; all who were told at the same moment have the same part, so that it is joined once for all of them. */
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

  /** All there is; what comes later is offered to the taker anew. */
  take(consumer: FrameConsumer<Frame>): TakenFrames<Frame> {
    const { frames } = this.#run
    if (this.#taken.frames.length !== frames.length - this.#from) {
      const taken = frames.slice(this.#from)
      this.#taken = { frames: taken, joined: this.#source.joinBytes(taken) }
    }
    this.#source.took(consumer, this.#run)
    return this.#taken
  }
}

const NOTHING = Buffer.alloc(0)
