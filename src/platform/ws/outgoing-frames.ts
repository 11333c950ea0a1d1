import type { FrameConsumer, SharedPart } from '../net/shared-frames.ts'
import type { JoinedFrames } from './frame.ts'

type OutgoingFramesOwner = {
  /** Called after each frame and each shared part that is added. */
  onQueued(): void
}

/** The frames that wait to be written to one socket: its own in a queue, followed by a part that it shares with other sockets. */
export class OutgoingFrames implements FrameConsumer<Buffer> {
  /** Frames in what `take` returned last. */
  takenCount = 0
  /** Their bytes without the frames' headers. */
  takenPayloadBytes = 0
  /** What was pushed with them, to be disposed of when they have left. */
  takenHeld: Disposable | undefined
  #queue: Buffer[] = []
  #queuedBytes = 0
  #held: DisposableStack | undefined
  /** May still grow until it is taken. */
  #shared: SharedPart<Buffer> | undefined
  #isOpen = true
  readonly #owner: OutgoingFramesOwner

  constructor(owner: OutgoingFramesOwner) {
    this.#owner = owner
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0 && this.#shared === undefined
  }

  /** Bytes in the queue, without the shared part. */
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  get byteLength(): number {
    return this.#queuedBytes + (this.#shared?.byteLength ?? 0)
  }

  push(frame: Buffer, held?: Disposable): void {
    if (!this.#isOpen) return held?.[Symbol.dispose]()
    this.seal()
    if (held !== undefined) {
      this.#held ??= new DisposableStack()
      this.#held.use(held)
    }
    this.#queue.push(frame)
    this.#queuedBytes += frame.length
    this.#owner.onQueued()
  }

  offer(part: SharedPart<Buffer>): void {
    if (!this.#isOpen) return
    this.seal()
    this.#shared = part
    this.#owner.onQueued()
  }

  /** Moves the shared part into the queue, so that what is added next follows it. */
  seal(): void {
    const part = this.#shared
    if (part === undefined) return
    this.#shared = undefined
    const { frames, joined } = part.take(this)
    for (const frame of frames) this.#queue.push(frame)
    this.#queuedBytes += joined.length
  }

  /** All frames as one buffer for one write; undefined when there are none. */
  take(joined?: JoinedFrames): Buffer | undefined {
    const part = this.#shared
    this.takenHeld = this.#held
    this.#held = undefined
    if (part !== undefined && this.#queue.length === 0) {
      this.#shared = undefined
      const taken = part.take(this)
      this.takenCount = taken.frames.length
      this.takenPayloadBytes = taken.joined.length - headerBytes(taken.frames)
      return taken.joined
    }
    this.seal()
    const queue = this.#queue
    if (queue.length === 0) return undefined
    const bytes = joined === undefined ? Buffer.concat(queue, this.#queuedBytes) : joined.of(queue, this.#queuedBytes)
    this.takenCount = queue.length
    this.takenPayloadBytes = bytes.length - headerBytes(queue)
    this.clear()
    return bytes
  }

  clear(): void {
    this.#queue = []
    this.#queuedBytes = 0
    this.#shared = undefined
    this.#held?.dispose()
    this.#held = undefined
  }

  /** Accepts no more frames. Those that wait can still be taken. */
  close(): void {
    this.#isOpen = false
  }
}

/** Each buffer is one frame. The length of an unmasked frame decides about that of its header (RFC 6455 section 5.2). */
function headerBytes(frames: readonly Buffer[]): number {
  let bytes = 0
  for (const { length } of frames) bytes += length < 2 + 126 ? 2 : length < 4 + 65_536 ? 4 : 10
  return bytes
}
