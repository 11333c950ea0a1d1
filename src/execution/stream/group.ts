import type { AcceptedSubscription, RawEventName } from '../../contract/stream-events.ts'
import { type FrameConsumer, SharedFrames, type TakenFrames } from '../../platform/net/shared-frames.ts'
import { encodeTextFrame } from '../../platform/ws/frame.ts'
import type { RawEventPart } from '../source/message.ts'
import { createEventMatcher, type EventMatcher, eventKeysOf } from './event-matcher.ts'
import type { StreamEntry } from './resume-buffer.ts'

/** One frame of one subscription, encoded for the socket. */
export type StreamFrameBytes = {
  readonly seq: number
  readonly bytes: Buffer
  /** Its size before compression. */
  readonly plainBytes: number
}

/** Frames that are joined once and written to many sockets. */
export type FrameRun = TakenFrames<StreamFrameBytes>

/** Returns the compressed form of a frame. */
export type DeflateFrame = (frame: Buffer) => Buffer

/** The clients with equal subscriptions and the same encoding: their frames are filtered, encoded and joined once for all of them. */
export class StreamGroup {
  /** The key of the subscription. */
  readonly key: string
  /** The key of the subscription and the encoding. */
  readonly groupKey: string
  readonly subscription: AcceptedSubscription
  /** An entry of raw events without any of them has no frame for this group. */
  readonly eventKeys: ReadonlySet<string>
  /** Number of clients, live or replaying. */
  members = 0
  readonly #items: ReadonlySet<string>
  readonly #matches: EventMatcher
  readonly #deflate: DeflateFrame | undefined
  /** For live clients. Replaying ones get their frames from the resume buffer. */
  readonly #frames = new SharedFrames<StreamFrameBytes>(({ bytes }) => bytes)

  constructor(
    subscription: AcceptedSubscription,
    options: Pick<StreamGroup, 'key' | 'groupKey'> & {
      readonly blocked: ReadonlySet<RawEventName>
      /** Undefined for clients that do not accept compressed frames. */
      readonly deflate: DeflateFrame | undefined
    },
  ) {
    const { key, groupKey, blocked, deflate } = options
    this.key = key
    this.groupKey = groupKey
    this.subscription = subscription
    this.#deflate = deflate
    this.#items = new Set<string>(subscription.events)
    this.#matches = createEventMatcher(subscription, blocked)
    this.eventKeys = eventKeysOf(subscription)
  }

  /** The frame of an entry for this subscription; undefined when it is not included. */
  frameOf(entry: StreamEntry): StreamFrameBytes | undefined {
    if (entry.kind === 'Events') {
      const passing = entry.events.filter(this.#matches)
      return passing.length === 0 ? undefined : this.#encode(entry.seq, eventsFrame(entry.seq, passing))
    }
    // Warnings about the source go to every client.
    const isIncluded = entry.kind === 'Warning' || this.#items.has(entry.kind)
    return isIncluded ? this.#encode(entry.seq, entry.frame) : undefined
  }

  get isDeflating(): boolean {
    return this.#deflate !== undefined
  }

  add(entry: StreamEntry): void {
    if (this.#frames.size === 0) return
    const frame = this.frameOf(entry)
    if (frame !== undefined) this.#frames.append(frame)
  }

  /** The client gets what is added from now on. */
  goLive(client: FrameConsumer<StreamFrameBytes>): void {
    this.#frames.join(client)
  }

  /** Delivers what was added before, then removes the client. */
  leave(client: FrameConsumer<StreamFrameBytes>): void {
    this.#frames.leave(client)
  }

  #encode(seq: number, frame: Buffer): StreamFrameBytes {
    return { seq, bytes: this.#deflate?.(frame) ?? frame, plainBytes: frame.length }
  }
}

export function joinFrames(frames: readonly StreamFrameBytes[]): Buffer {
  return frames.length === 1 ? (frames[0] as StreamFrameBytes).bytes : Buffer.concat(frames.map(({ bytes }) => bytes))
}

function eventsFrame(seq: number, events: readonly RawEventPart[]): Buffer {
  return encodeTextFrame(`{"seq":${seq},"Events":[${events.map(({ json }) => json).join(',')}]}`)
}
