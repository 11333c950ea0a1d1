import {
  type AcceptedSubscription,
  type EventFilter,
  type Hex,
  RAW_EVENTS,
  type RawEventName,
} from '../../contract/stream-events.ts'
import { type FrameConsumer, SharedFrames, type TakenFrames } from '../../platform/net/shared-frames.ts'
import { encodeTextFrame } from '../../platform/ws/frame.ts'
import type { FilterFields, RawEventPart } from '../source/message.ts'
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
  /** Of the subscription. */
  readonly key: string
  /** Of the subscription and the encoding. */
  readonly groupKey: string
  readonly subscription: AcceptedSubscription
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

/** Whether a subscription includes a raw event. It has no state, so a resumed stream includes the same events. */
type EventMatcher = (part: RawEventPart) => boolean

function createEventMatcher(
  { events, filters, correlate }: AcceptedSubscription,
  blocked: ReadonlySet<RawEventName>,
): EventMatcher {
  const names = new Set<string>(events)
  const tests = filters.map(compileFilter)
  const testsOfName = new Map(RAW_EVENTS.map((name) => [name, tests.filter((test) => test.appliesTo(name))]))
  const passes = (name: RawEventName, fields: FilterFields): boolean => {
    if (!names.has(name)) return false
    const applying = testsOfName.get(name) ?? []
    return applying.length === 0 || applying.some((test) => test.passes(fields))
  }
  return ({ name, fields, header }) => {
    if (blocked.has(name)) return false
    if (passes(name, fields)) return true
    return correlate && header !== undefined && passes('TxnHeaderStart', header)
  }
}

type FilterTest = { appliesTo(name: RawEventName): boolean; passes(fields: FilterFields): boolean }

function compileFilter(filter: EventFilter): FilterTest {
  const names = filter.events === undefined ? undefined : new Set(filter.events)
  const addresses = filter.address === undefined ? undefined : setOf(filter.address)
  const topics = filter.topics?.map((topic) => (topic === null ? undefined : setOf(topic)))
  return {
    appliesTo: (name) => names === undefined || names.has(name),
    passes: (fields) =>
      isWithin(fields.txnIndex, filter.txn_index) &&
      isWithin(fields.logIndex, filter.log_index) &&
      (addresses === undefined || (fields.addresses?.some((address) => addresses.has(address)) ?? false)) &&
      (topics === undefined || hasTopics(fields.topics, topics)),
  }
}

function isWithin(value: number | undefined, range: { min?: number; max?: number } | undefined): boolean {
  if (range === undefined) return true
  if (value === undefined) return false
  return value >= (range.min ?? 0) && value <= (range.max ?? Number.POSITIVE_INFINITY)
}

function hasTopics(topics: readonly Hex[] | undefined, accepted: readonly (ReadonlySet<Hex> | undefined)[]): boolean {
  if (topics === undefined || topics.length < accepted.length) return false
  return accepted.every((choice, at) => choice === undefined || choice.has(topics[at] as Hex))
}

function setOf(values: Hex | readonly Hex[]): ReadonlySet<Hex> {
  return new Set(typeof values === 'string' ? [values] : values)
}
