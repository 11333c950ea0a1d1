import type { AcceptedSubscription, RawEventName } from '../../contract/stream-events.ts'
import { type FrameConsumer, SharedFrames, type TakenFrames } from '../../platform/net/shared-frames.ts'
import { encodeTextFrame } from '../../platform/ws/frame.ts'
import type { RawEventPart } from '../source/message.ts'
import { createEventMatcher, type EventMatcher } from './event-filter.ts'
import type { StreamEntry } from './resume-buffer.ts'

/** One frame of one subscription, as bytes for the socket. */
export type StreamFrameBytes = { readonly seq: number; readonly bytes: Buffer }

/** Frames that leave together: joined once, written to as many sockets as there are. */
export type FrameRun = TakenFrames<StreamFrameBytes>

/** Everybody with the same subscription: its frames are made and joined once for all of them. */
export class StreamGroup {
  readonly key: string
  readonly subscription: AcceptedSubscription
  /** All its clients, live or replaying. */
  members = 0
  readonly #items: ReadonlySet<string>
  readonly #matches: EventMatcher
  /** For clients at the end of the stream. Those that still replay get their frames from the buffer. */
  readonly #frames = new SharedFrames<StreamFrameBytes>(({ bytes }) => bytes)

  constructor(key: string, subscription: AcceptedSubscription, blocked: ReadonlySet<RawEventName>) {
    this.key = key
    this.subscription = subscription
    this.#items = new Set<string>(subscription.events)
    this.#matches = createEventMatcher(subscription, blocked)
  }

  /** The frame of an entry for this subscription, or undefined when it is not included. */
  frameOf(entry: StreamEntry): StreamFrameBytes | undefined {
    if (entry.kind === 'Events') {
      const passing = entry.events.filter(this.#matches)
      return passing.length === 0 ? undefined : { seq: entry.seq, bytes: eventsFrame(entry.seq, passing) }
    }
    // Troubles of the source concern everybody.
    const isIncluded = entry.kind === 'Warning' || this.#items.has(entry.kind)
    return isIncluded ? { seq: entry.seq, bytes: entry.frame } : undefined
  }

  add(entry: StreamEntry): void {
    if (this.#frames.size === 0) return
    const frame = this.frameOf(entry)
    if (frame !== undefined) this.#frames.append(frame)
  }

  /** Gets what is added from now on. */
  goLive(client: FrameConsumer<StreamFrameBytes>): void {
    this.#frames.join(client)
  }

  /** What was added before is delivered within this call. */
  leave(client: FrameConsumer<StreamFrameBytes>): void {
    this.#frames.leave(client)
  }
}

export function joinFrames(frames: readonly StreamFrameBytes[]): Buffer {
  return frames.length === 1 ? (frames[0] as StreamFrameBytes).bytes : Buffer.concat(frames.map(({ bytes }) => bytes))
}

function eventsFrame(seq: number, events: readonly RawEventPart[]): Buffer {
  return encodeTextFrame(`{"seq":${seq},"Events":[${events.map(({ json }) => json).join(',')}]}`)
}
