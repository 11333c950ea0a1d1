import { STREAM_CLOSE, type Warning } from '../../contract/stream-events.ts'
import type { FlushWriter } from '../../platform/net/fair-flush-scheduler.ts'
import type { FrameConsumer, SharedPart } from '../../platform/net/shared-frames.ts'
import { encodeTextFrame } from '../../platform/ws/frame.ts'
import { type FrameRun, joinFrames, type StreamFrameBytes, type StreamGroup } from './group.ts'
import type { StreamEntry } from './resume-buffer.ts'
import { type ClientLimits, SendQueue, type StreamSocket, WRITE_BYTES } from './send-queue.ts'

/** What a client uses of the stream. */
export type ClientStream = {
  readonly oldestSeq: number
  readonly newestSeq: number
  at(seq: number): StreamEntry
  /** Schedules a call of `flush`. */
  scheduleFlush(client: FlushWriter): void
  onDropped(frames: number): void
  onDelivered(frames: number): void
}

/** A backpressure warning is sent after this many dropped frames, and in any case before the next frame. */
const WARN_EVERY = 1000
/** Entries and raw events examined before other clients continue: filters may let none of them pass. */
const REPLAY_ITEMS = 1024
/** Bytes replayed at a time to a client with compression: those that were not sent live have to be compressed first. */
const DEFLATED_REPLAY_BYTES = 64 * 1024

/**
 * The delivery of frames to one client. A client that resumes is `replaying`: it gets entries from the resume buffer as fast as its
 * socket takes them. A `live` client gets what its group publishes; when it does not keep up, frames are dropped and reported to it. A
 * slow client never delays another.
 */
export class StreamClient implements FrameConsumer<StreamFrameBytes>, FlushWriter {
  group: StreamGroup
  readonly #socket: StreamSocket
  readonly #stream: ClientStream
  readonly #limits: ClientLimits
  readonly #queue: SendQueue
  readonly #onLive: () => void
  readonly #onReplayed: (items: number, bytes: number) => void
  #state: 'live' | 'replaying' | 'closed' = 'live'
  /** While replaying: the next entry. */
  #replaySeq = 0
  /** Published frames that were not taken yet; later ones are added to the same part. */
  #offered: SharedPart<StreamFrameBytes> | undefined
  #isFlushScheduled = false
  #dropped = 0
  /** Dropped frames that were not reported to the client yet. */
  #gap: { frames: number; fromSeq: number; toSeq: number } | undefined

  constructor(
    group: StreamGroup,
    deps: {
      socket: StreamSocket
      stream: ClientStream
      limits: ClientLimits
      /** The replay has reached the end of the stream. */
      onLive: () => void
      /** Entries and raw events examined during a replay, and bytes sent. */
      onReplayed: (items: number, bytes: number) => void
    },
  ) {
    this.group = group
    this.#socket = deps.socket
    this.#stream = deps.stream
    this.#limits = deps.limits
    this.#queue = new SendQueue(deps.socket, deps.limits, deps.stream.onDelivered)
    this.#onLive = deps.onLive
    this.#onReplayed = deps.onReplayed
  }

  get isLive(): boolean {
    return this.#state !== 'replaying'
  }

  get waitingFrames(): number {
    return this.#queue.frames
  }

  /** Replays the entries after `seq`, then goes live. */
  replayAfter(seq: number): void {
    this.#state = 'replaying'
    this.#replaySeq = seq + 1
    this.drained()
  }

  /**
   * Sends a control frame or a snapshot; these are never dropped. A client that requests many and reads none is closed. A snapshot has a
   * number above that of dropped frames, so these are reported before it.
   */
  send(bytes: Buffer): void {
    this.seal()
    this.#reportGap()
    this.#sendControl(bytes)
  }

  offer(part: SharedPart<StreamFrameBytes>): void {
    if (this.#state === 'closed') return
    this.seal()
    this.#offered = part
    this.#scheduleFlush()
  }

  flush(): void {
    this.#isFlushScheduled = false
    this.seal()
    if (this.#state === 'replaying') this.drained()
  }

  /** Takes the offered frames, so that they leave before anything that follows. */
  seal(): void {
    const part = this.#offered
    if (part === undefined) return
    this.#offered = undefined
    this.#deliver(part.take(this))
  }

  /** The socket takes bytes again. */
  drained(): void {
    if (this.#state === 'closed') return
    this.#queue.flush()
    this.#reportGapIfClear()
    if (this.#state === 'replaying') this.#replay()
  }

  closed(): void {
    this.#state = 'closed'
    this.#queue.clear()
    this.#offered = undefined
  }

  #scheduleFlush(): void {
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    this.#stream.scheduleFlush(this)
  }

  #deliver({ joined, frames }: FrameRun): void {
    if (this.#state === 'closed') return
    // After a drop the gap is reported before the next frame, so frames are queued one by one.
    if (this.#gap !== undefined || !this.#queue.hasRoom(frames.length, joined.length)) {
      for (const frame of frames) this.#deliverOne(frame)
    } else if (this.#queue.isClear) this.#queue.write(joined, frames.length)
    else this.#push(joined, frames.length)
  }

  #deliverOne({ seq, bytes }: StreamFrameBytes): void {
    if (this.#state === 'closed') return
    if (!this.#queue.hasRoom(1, bytes.length)) return this.#drop(seq, seq, 1)
    this.#reportGap()
    this.#push(bytes, 1)
  }

  #push(bytes: Buffer, frames: number): void {
    if (this.#state === 'closed') return
    this.#queue.push(bytes, frames)
    this.#reportGapIfClear()
  }

  #sendControl(bytes: Buffer): void {
    this.#push(bytes, 0)
    if (this.#queue.bytes > 2 * this.#limits.bytesMax) this.#close('replies wait unread')
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
    if (this.#dropped >= this.#limits.dropsMax) this.#close(`${this.#dropped} frames dropped`)
  }

  /** No further frame may follow for a while, so a gap is reported as soon as the client reads again. */
  #reportGapIfClear(): void {
    if (this.#gap !== undefined && this.#queue.isClear) this.#reportGap()
  }

  #reportGap(): void {
    if (this.#gap === undefined) return
    const { fromSeq: from_seq, toSeq: to_seq } = this.#gap
    this.#gap = undefined
    const { dropsMax: drop_limit } = this.#limits
    const warning: Warning = { type: 'backpressure', dropped: this.#dropped, drop_limit, from_seq, to_seq }
    this.#sendControl(encodeTextFrame(`{"seq":0,"Warning":${JSON.stringify(warning)}}`))
  }

  /** A replay drops nothing: it waits for the socket. It loses entries only when they leave the resume buffer meanwhile. */
  #replay(): void {
    let itemsLeft = REPLAY_ITEMS
    while (this.#state === 'replaying' && this.#queue.isClear) {
      const { oldestSeq, newestSeq } = this.#stream
      let next = this.#replaySeq
      if (next < oldestSeq) {
        this.#drop(next, oldestSeq - 1, oldestSeq - next)
        this.#reportGap()
        this.#replaySeq = oldestSeq
        continue
      }
      if (next > newestSeq || newestSeq === 0) {
        // All published entries are sent, so the next one published is the next one for this client.
        this.#state = 'live'
        return this.#onLive()
      }
      if (itemsLeft <= 0) return this.#scheduleFlush()
      const frames: StreamFrameBytes[] = []
      const itemsBefore = itemsLeft
      const bytesMax = this.group.isDeflating ? DEFLATED_REPLAY_BYTES : WRITE_BYTES
      let bytes = 0
      for (; next <= newestSeq && bytes < bytesMax && itemsLeft > 0; next++) {
        const entry = this.#stream.at(next)
        itemsLeft -= entry.kind === 'Events' ? entry.events.length + 1 : 1
        const frame = this.group.frameOf(entry)
        if (frame === undefined) continue
        frames.push(frame)
        bytes += frame.plainBytes
      }
      this.#replaySeq = next
      this.#onReplayed(itemsBefore - itemsLeft, bytes)
      if (frames.length > 0) this.#queue.write(joinFrames(frames), frames.length)
      // A socket takes compressed frames faster than they are made, so it does not limit the work of this turn.
      if (this.group.isDeflating) return this.#scheduleFlush()
    }
  }

  #close(detail: string): void {
    if (this.#state === 'closed') return
    this.closed()
    this.#socket.close(STREAM_CLOSE.policy, `too slow: ${detail}`, 'slow')
  }
}
