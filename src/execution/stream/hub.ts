import {
  type AcceptedSubscription,
  type FigureKind,
  type Hello,
  RAW_EVENTS,
  type RawEventName,
  type StreamError,
  type Subscribed,
  type Warning,
} from '../../contract/stream-events.ts'
import type { Clock } from '../../core/clock.ts'
import { createSlabAllocator } from '../../core/slab-allocator.ts'
import { createFairFlushScheduler } from '../../platform/net/fair-flush-scheduler.ts'
import { encodeTextFrame } from '../../platform/ws/frame.ts'
import type { RawEventPart } from '../source/message.ts'
import { RawEventDemand, type RawEventSelection } from '../source/raw-event-demand.ts'
import type { ClientStream, StreamClient } from './client.ts'
import { createDeflatedFrames, type DeflatedFrames } from './deflated-frames.ts'
import { StreamGroup } from './group.ts'
import { GroupIndex } from './group-index.ts'
import {
  type Cursor,
  checkCursor,
  eventsBytes,
  ResumeBuffer,
  type ResumeBufferOptions,
  type StreamEntry,
} from './resume-buffer.ts'
import type { ClientLimits } from './send-queue.ts'
import type { SeqCounter } from './seq-counter.ts'
import { rawNamesOf, type SubscriptionRules, subscriptionKey } from './subscription.ts'

export type HubOptions = {
  readonly buffer: ResumeBufferOptions
  readonly client: ClientLimits
  readonly rules: SubscriptionRules
  /** How long raw events are still produced after their last subscriber has left, so that it can come back and resume. */
  readonly lingerMs: number
}

/** Fields of Hello that the stream itself does not know. */
export type HelloFacts = Omit<Hello, 'resumed' | 'newest_seqno' | 'subscribed' | 'snapshot' | 'blocked_events'>

export type HubCounts = {
  published(kind: StreamEntry['kind']): void
  delivered(frames: number): void
  dropped(frames: number): void
  joined(how: 'resume' | 'snapshot' | 'out_of_window'): void
  refused(code: StreamError['code']): void
  /** A frame was compressed. */
  deflated?(bytesBefore: number, bytesAfter: number): void
}

export type HubDeps = {
  readonly clock: Clock
  readonly seq: SeqCounter
  /** Runs a flush at the end of this turn of the event loop, so that everything published until then leaves together. */
  readonly defer: (run: () => void) => void
  readonly hello: () => HelloFacts
  /** Current payloads of a kind, as JSON. */
  readonly snapshot: (kind: FigureKind) => readonly string[]
  /** The raw events that clients subscribe to have changed; `onRawEventsActive` confirms them. */
  readonly onRawEventSelection: (selection: RawEventSelection) => void
  readonly count: HubCounts
}

/**
 * The published stream: sequence numbers, the resume buffer, and the groups of clients with equal subscriptions. It uses neither sockets
 * nor files.
 */
export class StreamHub implements Disposable {
  readonly options: HubOptions
  readonly deps: HubDeps
  readonly clientStream: ClientStream
  readonly #buffer: ResumeBuffer
  /** By subscription key and encoding. */
  readonly #groups = new Map<string, StreamGroup>()
  readonly #groupIndex = new GroupIndex<StreamGroup>()
  readonly #offered: readonly RawEventName[]
  readonly #demand: RawEventDemand
  /** Memory of frames that stay in the resume buffer. */
  readonly #frameMemory = createSlabAllocator()
  readonly #deflated: DeflatedFrames

  constructor(options: HubOptions, deps: HubDeps) {
    this.options = options
    this.deps = deps
    this.#buffer = new ResumeBuffer(options.buffer)
    this.#deflated = createDeflatedFrames(deps.count.deflated)
    this.#offered = RAW_EVENTS.filter((name) => !options.rules.blocked.has(name))
    this.#demand = new RawEventDemand({ lingerMs: options.lingerMs }, deps)
    const buffer = this.#buffer
    const scheduler = createFairFlushScheduler(deps.clock, deps.defer)
    this.clientStream = {
      get oldestSeq() {
        return buffer.oldestSeq
      },
      get newestSeq() {
        return buffer.newestSeq
      },
      at: (seq) => buffer.at(seq),
      scheduleFlush: (client) => scheduler.add(client),
      onDropped: (frames) => deps.count.dropped(frames),
      onDelivered: (frames) => deps.count.delivered(frames),
    }
  }

  /** The resume buffer; 0 and 0 while it is empty. */
  get window(): { oldestSeq: number; newestSeq: number; entries: number; bytes: number } {
    const { oldestSeq, newestSeq, size: entries, bytes } = this.#buffer
    return { oldestSeq, newestSeq, entries, bytes }
  }

  /** `payload` is JSON. */
  publish(kind: FigureKind, payload: string): void {
    const seq = this.deps.seq.next()
    this.#append({ seq, kind, frame: encodeTextFrame(`{"seq":${seq},"${kind}":${payload}}`, this.#frameMemory) })
  }

  /** A warning about the source takes a sequence number, so that a resumed client gets it too. */
  publishWarning(warning: Warning): void {
    this.#append({ seq: this.deps.seq.next(), kind: 'Warning', frame: controlFrame('Warning', warning) })
  }

  publishEvents(parts: readonly RawEventPart[]): void {
    const events = parts.filter(({ name }) => this.#demand.isActive(name))
    if (events.length === 0) return
    this.#append({ seq: this.deps.seq.next(), kind: 'Events', events, bytes: eventsBytes(events) })
  }

  /** The source produces these raw events from here on. */
  onRawEventsActive(selection: RawEventSelection): void {
    this.#demand.onActive(selection, this.deps.seq.upcoming)
  }

  /** For sessions: adds a client to the group of a subscription. */
  enter(subscription: AcceptedSubscription, isDeflating: boolean): StreamGroup {
    const key = subscriptionKey(subscription)
    const groupKey = isDeflating ? `${key} deflated` : key
    let group = this.#groups.get(groupKey)
    if (group === undefined) {
      const { blocked } = this.options.rules
      const deflate = isDeflating ? this.#deflated.of : undefined
      group = new StreamGroup(subscription, { key, groupKey, blocked, deflate })
      this.#groups.set(groupKey, group)
      this.#groupIndex.add(group)
    }
    group.members += 1
    this.#demand.enter(rawNamesOf(subscription, this.#offered))
    return group
  }

  /** For sessions: removes a client from its group. */
  leave(client: StreamClient): void {
    const { group } = client
    group.leave(client)
    group.members -= 1
    if (group.members === 0) {
      this.#groups.delete(group.groupKey)
      this.#groupIndex.delete(group)
    }
    this.#demand.leave(rawNamesOf(group.subscription, this.#offered))
  }

  /** For sessions: whether a subscription can resume after a cursor without missing anything. */
  checkCursor(resumeFrom: string, subscription: AcceptedSubscription): Cursor {
    const { oldestSeq, newestSeq } = this.#buffer
    const cursor = checkCursor(resumeFrom, { oldestSeq, newestSeq, upcomingSeq: this.deps.seq.upcoming })
    if (!cursor.ok) return cursor
    const names = rawNamesOf(subscription, this.#offered)
    return this.#demand.isComplete(names, cursor.seq) ? cursor : { ok: false, reason: 'not_recorded' }
  }

  [Symbol.dispose](): void {
    this.#demand[Symbol.dispose]()
  }

  #append(entry: StreamEntry): void {
    this.#buffer.append(entry)
    this.deps.count.published(entry.kind)
    const groups = entry.kind === 'Events' ? this.#groupIndex.find(entry.events) : this.#groups.values()
    for (const group of groups) group.add(entry)
  }
}

type ControlPayloads = { Hello: Hello; Subscribed: Subscribed; Warning: Warning; Error: StreamError }

/** Control frames have the sequence number 0, so that no client moves its cursor to them. */
export function controlFrame<Kind extends keyof ControlPayloads>(kind: Kind, payload: ControlPayloads[Kind]): Buffer {
  return encodeTextFrame(`{"seq":0,"${kind}":${JSON.stringify(payload)}}`)
}
