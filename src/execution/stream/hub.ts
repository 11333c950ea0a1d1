import {
  type AcceptedSubscription,
  type Hello,
  METRIC_KINDS,
  type MetricKind,
  RAW_EVENTS,
  type RawEventName,
  STREAM_CLOSE,
  type StreamError,
  type Subscribed,
  type Warning,
} from '../../contract/stream-events.ts'
import type { Clock } from '../../core/clock.ts'
import { keptMemory } from '../../core/slab-allocator.ts'
import { TokenBucket } from '../../core/token-bucket.ts'
import { createFairFlushScheduler } from '../../platform/net/fair-flush-scheduler.ts'
import { encodeTextFrame } from '../../platform/ws/frame.ts'
import { PRICE, UNIT, unitsOfBytes, type WorkMeter } from '../api/work-budget.ts'
import type { RawEventPart } from '../source/message.ts'
import { type Wanted, WantedEvents } from '../source/wanted-events.ts'
import { type ClientLimits, type ClientStream, StreamClient, type StreamSocket } from './client.ts'
import { StreamGroup } from './group.ts'
import { ResumeBuffer, type ResumeBufferOptions, type StreamEntry } from './resume-buffer.ts'
import { type Cursor, checkCursor } from './resume-cursor.ts'
import type { SeqCounter } from './seq-counter.ts'
import {
  DEFAULT_SUBSCRIPTION,
  type ParsedSubscription,
  parseSubscribeMessage,
  rawNamesOf,
  type SubscriptionRules,
  subscriptionKey,
} from './subscription.ts'

export type HubOptions = {
  readonly buffer: ResumeBufferOptions
  readonly client: ClientLimits
  readonly rules: SubscriptionRules
  /** How long raw events are still made after the last who listened has left, so that it can come back and resume. */
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
}

export type HubDeps = {
  readonly clock: Clock
  readonly seq: SeqCounter
  /** Runs at the end of this turn; what was published until then leaves together. */
  readonly defer: (run: () => void) => void
  readonly hello: () => HelloFacts
  /** Present payloads of a kind, as JSON. */
  readonly snapshot: (kind: MetricKind) => readonly string[]
  readonly onWanted: (wanted: Wanted) => void
  readonly count: HubCounts
}

export type JoinOptions = {
  /** What the address asked for; undefined when it said nothing. */
  readonly subscribe?: ParsedSubscription | undefined
  /** As it stood in the address. */
  readonly resumeFrom?: string | undefined
  /** What its work is counted on. */
  readonly meter?: WorkMeter | undefined
}

/** One connected client, as its door sees it. */
export type JoinedClient = {
  readonly waitingFrames: number
  message(text: string): void
  drained(): void
  left(): void
}

type Greeting = {
  readonly subscription: AcceptedSubscription
  readonly resumeFrom?: string | undefined
  readonly error?: StreamError
}

/** Messages that may wait while a client catches up. */
const DEFERRED_MAX = 8
/** Messages of one client: so many at once, and so many a second. */
const MESSAGES = { capacity: 20, perSecond: 5 }

/** Everything published, to everybody who wants it: numbers, buffer, subscriptions, resume. It knows no socket and no file. */
export class StreamHub implements Disposable {
  readonly #options: HubOptions
  readonly #deps: HubDeps
  readonly #buffer: ResumeBuffer
  readonly #groups = new Map<string, StreamGroup>()
  readonly #offered: readonly RawEventName[]
  readonly #wanted: WantedEvents
  readonly #stream: ClientStream
  /** Memory of frames that stay in the buffer. */
  readonly #kept = keptMemory()

  constructor(options: HubOptions, deps: HubDeps) {
    this.#options = options
    this.#deps = deps
    this.#buffer = new ResumeBuffer(options.buffer)
    this.#offered = RAW_EVENTS.filter((name) => !options.rules.blocked.has(name))
    this.#wanted = new WantedEvents({ lingerMs: options.lingerMs }, deps)
    const buffer = this.#buffer
    // What was published since a client's last turn leaves with one write, joined once for all who have the same subscription.
    const rounds = createFairFlushScheduler(deps.clock, deps.defer)
    this.#stream = {
      get oldestSeq() {
        return buffer.oldestSeq
      },
      get newestSeq() {
        return buffer.newestSeq
      },
      at: (seq) => buffer.at(seq),
      onDue: (client) => rounds.add(client),
      onDropped: (frames) => deps.count.dropped(frames),
      onDelivered: (frames) => deps.count.delivered(frames),
    }
  }

  /** 0 and 0 while nothing is kept. */
  get window(): { oldestSeq: number; newestSeq: number; entries: number; bytes: number } {
    const { oldestSeq, newestSeq, size: entries, bytes } = this.#buffer
    return { oldestSeq, newestSeq, entries, bytes }
  }

  /** `payload` is JSON. */
  publish(kind: MetricKind, payload: string): void {
    const seq = this.#deps.seq.next()
    this.#append({ seq, kind, frame: encodeTextFrame(`{"seq":${seq},"${kind}":${payload}}`, this.#kept) })
  }

  /** A trouble of the source takes its place in the stream, so that it is told in a resume as well. */
  publishWarning(warning: Warning): void {
    this.#append({ seq: this.#deps.seq.next(), kind: 'Warning', frame: controlFrame('Warning', warning) })
  }

  publishEvents(made: readonly RawEventPart[]): void {
    const events = made.filter(({ name }) => this.#wanted.isRecorded(name))
    if (events.length === 0) return
    const bytes = events.reduce((sum, { json }) => sum + json.length, 0)
    this.#append({ seq: this.#deps.seq.next(), kind: 'Events', events, bytes })
  }

  /** The source makes these raw events from here on. */
  recording(wanted: Wanted): void {
    this.#wanted.recording(wanted, this.#deps.seq.upcoming)
  }

  join(socket: StreamSocket, { subscribe, resumeFrom, meter = FREE }: JoinOptions = {}): JoinedClient {
    const { clock } = this.#deps
    const deferred: string[] = []
    const bucket = new TokenBucket(MESSAGES, clock.monotonicMs())
    const subscription = subscribe?.ok === true ? subscribe.subscription : DEFAULT_SUBSCRIPTION
    const client = new StreamClient(this.#enter(subscription), {
      socket,
      limits: this.#options.client,
      stream: this.#stream,
      onLive: () => {
        client.group.goLive(client)
        for (const text of deferred.splice(0)) this.#handle(client, meter, text)
      },
      onReplayed: (items, bytes) => meter.charge(items / UNIT.items + bytes / UNIT.readyBytes),
    })
    // A cursor belongs to a subscription: with one that cannot be read it means nothing.
    if (subscribe?.ok === false) this.#greet(client, meter, { subscription, error: subscribe.error })
    else this.#greet(client, meter, { subscription, resumeFrom })
    return {
      get waitingFrames() {
        return client.waitingFrames
      },
      message: (text) => {
        if (!bucket.take(1, clock.monotonicMs()))
          return socket.close(STREAM_CLOSE.policy, `more than ${MESSAGES.perSecond} messages a second`)
        const taken = meter.take(PRICE.call)
        if (!taken.ok) return this.#refuse(client, outOfWork(meter, taken.retryAfterMs))
        if (client.isLive) return this.#handle(client, meter, text)
        if (deferred.push(text) > DEFERRED_MAX) socket.close(STREAM_CLOSE.policy, 'too many messages before the stream')
      },
      drained: () => client.drained(),
      left: () => {
        client.closed()
        this.#leave(client)
      },
    }
  }

  [Symbol.dispose](): void {
    this.#wanted[Symbol.dispose]()
  }

  #append(entry: StreamEntry): void {
    this.#buffer.append(entry)
    this.#deps.count.published(entry.kind)
    for (const group of this.#groups.values()) group.add(entry)
  }

  /** Hello, what became of the cursor, and either the frames after it or a snapshot. */
  #greet(client: StreamClient, meter: WorkMeter, { subscription, resumeFrom, error }: Greeting): void {
    const cursor = resumeFrom === undefined ? undefined : this.#check(resumeFrom, subscription)
    const { seq } = this.#deps
    const newestSeq = this.#buffer.newestSeq === 0 ? seq.upcoming - 1 : this.#buffer.newestSeq
    const isResumed = cursor?.ok === true
    const snapshot = isResumed ? [] : this.#snapshot(subscription.events, meter)
    const hello: Hello = {
      ...this.#deps.hello(),
      blocked_events: [...this.#options.rules.blocked],
      resumed: isResumed,
      newest_seqno: newestSeq,
      subscribed: subscription,
      snapshot: snapshot.length,
    }
    this.#deps.count.joined(cursor === undefined ? 'snapshot' : cursor.ok ? 'resume' : 'out_of_window')
    client.send(controlFrame('Hello', hello))
    if (error !== undefined) this.#refuse(client, error)
    if (cursor?.ok === false) {
      const { oldestSeq: oldest_seqno, newestSeq: newest_seqno } = this.#buffer
      const requested = (resumeFrom as string).slice(0, 32)
      const { reason } = cursor
      client.send(
        controlFrame('Warning', { type: 'resume_out_of_window', requested, oldest_seqno, newest_seqno, reason }),
      )
    }
    for (const frame of snapshot) client.send(frame)
    if (isResumed) client.begin(cursor.seq)
    else client.group.goLive(client)
  }

  #check(resumeFrom: string, subscription: AcceptedSubscription): Cursor {
    const { oldestSeq, newestSeq } = this.#buffer
    const cursor = checkCursor(resumeFrom, { oldestSeq, newestSeq, upcomingSeq: this.#deps.seq.upcoming })
    if (!cursor.ok) return cursor
    const names = rawNamesOf(subscription, this.#offered)
    return this.#wanted.isComplete(names, cursor.seq) ? cursor : { ok: false, reason: 'not_recorded' }
  }

  /** A message of a client at the end of the stream. */
  #handle(client: StreamClient, meter: WorkMeter, text: string): void {
    const parsed = parseSubscribeMessage(text, this.#options.rules)
    if (!parsed.ok) return this.#refuse(client, parsed.error)
    const { subscription } = parsed
    if (subscriptionKey(subscription) === client.group.key) return
    const before = new Set<string>(client.group.subscription.events)
    const group = this.#enter(subscription)
    this.#leave(client)
    client.group = group
    group.goLive(client)
    const isNew = (item: string): boolean => !before.has(item)
    const snapshot = this.#snapshot(subscription.events.filter(isNew), meter)
    client.send(controlFrame('Subscribed', { ...subscription, snapshot: snapshot.length }))
    for (const frame of snapshot) client.send(frame)
  }

  #refuse(client: StreamClient, error: StreamError): void {
    this.#deps.count.refused(error.code)
    client.send(controlFrame('Error', error))
  }

  /** In the order of kinds; all with the newest number. */
  #snapshot(items: readonly string[], meter: WorkMeter): Buffer[] {
    const seq = this.#buffer.newestSeq
    const frames = METRIC_KINDS.filter((kind) => items.includes(kind)).flatMap((kind) =>
      this.#deps.snapshot(kind).map((payload) => encodeTextFrame(`{"seq":${seq},"${kind}":${payload}}`)),
    )
    meter.charge(unitsOfBytes(frames.reduce((sum, { length }) => sum + length, 0)))
    return frames
  }

  #enter(subscription: AcceptedSubscription): StreamGroup {
    const key = subscriptionKey(subscription)
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = new StreamGroup(key, subscription, this.#options.rules.blocked)
      this.#groups.set(key, group)
    }
    group.members += 1
    this.#wanted.enter(rawNamesOf(subscription, this.#offered))
    return group
  }

  #leave(client: StreamClient): void {
    const { group } = client
    group.leave(client)
    group.members -= 1
    if (group.members === 0) this.#groups.delete(group.key)
    this.#wanted.leave(rawNamesOf(group.subscription, this.#offered))
  }
}

const FREE: WorkMeter = { unitsPerSecond: Number.POSITIVE_INFINITY, take: () => ({ ok: true }), charge() {} }

function outOfWork({ unitsPerSecond }: WorkMeter, retryAfterMs: number): StreamError {
  const message = `limit reached: ${unitsPerSecond} units of work per second; try again in ${Math.ceil(retryAfterMs)} ms`
  return { code: 'rate_limited', message }
}

type ControlPayloads = { Hello: Hello; Subscribed: Subscribed; Warning: Warning; Error: StreamError }

/** Control frames have number 0: no client moves its cursor on them. */
function controlFrame<Kind extends keyof ControlPayloads>(kind: Kind, payload: ControlPayloads[Kind]): Buffer {
  return encodeTextFrame(`{"seq":0,"${kind}":${JSON.stringify(payload)}}`)
}
