import {
  type AcceptedSubscription,
  FIGURE_KINDS,
  type Hello,
  STREAM_CLOSE,
  type StreamError,
} from '../../contract/stream-events.ts'
import { TokenBucket } from '../../core/token-bucket.ts'
import { encodeTextFrame } from '../../platform/ws/frame.ts'
import { PRICE, UNIT, unitsOfBytes, type WorkMeter } from '../api/work-budget.ts'
import { StreamClient } from './client.ts'
import { controlFrame, type StreamHub } from './hub.ts'
import type { StreamSocket } from './send-queue.ts'
import {
  DEFAULT_SUBSCRIPTION,
  type ParsedSubscription,
  parseSubscribeMessage,
  subscriptionKey,
} from './subscription.ts'

export type JoinOptions = {
  /** The parsed `subscribe` parameter of the address; undefined without one. */
  readonly subscribe?: ParsedSubscription | undefined
  /** The `resume_from` parameter of the address, as sent. */
  readonly resumeFrom?: string | undefined
  /** The work budget of the client. */
  readonly meter?: WorkMeter | undefined
}

/** Messages held while a client replays. */
const DEFERRED_MAX = 8
/** Messages of one client: burst and rate. */
const MESSAGES = { capacity: 20, perSecond: 5 }

const UNMETERED: WorkMeter = { unitsPerSecond: Number.POSITIVE_INFINITY, take: () => ({ ok: true }), charge() {} }

/** One connected client from Hello to its close: it greets, handles subscribe messages and changes the subscription. */
export class StreamSession {
  readonly #hub: StreamHub
  readonly #socket: StreamSocket
  readonly #client: StreamClient
  readonly #meter: WorkMeter
  readonly #messageBucket: TokenBucket
  /** Messages that arrived during the replay. */
  readonly #deferred: string[] = []

  constructor(hub: StreamHub, socket: StreamSocket, { subscribe, resumeFrom, meter = UNMETERED }: JoinOptions = {}) {
    this.#hub = hub
    this.#socket = socket
    this.#meter = meter
    this.#messageBucket = new TokenBucket(MESSAGES, hub.deps.clock.monotonicMs())
    const subscription = subscribe?.ok === true ? subscribe.subscription : DEFAULT_SUBSCRIPTION
    this.#client = new StreamClient(hub.enter(subscription, socket.isDeflating === true), {
      socket,
      limits: hub.options.client,
      stream: hub.clientStream,
      onLive: () => this.#onLive(),
      onReplayed: (items, bytes) => meter.charge(items / UNIT.items + bytes / UNIT.readyBytes),
    })
    // A cursor belongs to a subscription: without a valid subscription it is ignored.
    if (subscribe?.ok === false) this.#greet(subscription, undefined, subscribe.error)
    else this.#greet(subscription, resumeFrom, undefined)
  }

  get waitingFrames(): number {
    return this.#client.waitingFrames
  }

  /** A text message of the client. */
  message(text: string): void {
    if (!this.#messageBucket.take(1, this.#hub.deps.clock.monotonicMs()))
      return this.#socket.close(STREAM_CLOSE.policy, `more than ${MESSAGES.perSecond} messages a second`, 'policy')
    const taken = this.#meter.take(PRICE.call)
    if (!taken.ok) return this.#refuse(workLimitError(this.#meter, taken.retryAfterMs))
    if (this.#client.isLive) return this.#subscribe(text)
    if (this.#deferred.push(text) > DEFERRED_MAX)
      this.#socket.close(STREAM_CLOSE.policy, 'too many messages before the stream', 'policy')
  }

  /** The socket takes bytes again. */
  drained(): void {
    this.#client.drained()
  }

  /** The connection is closed. */
  left(): void {
    this.#client.closed()
    this.#hub.leave(this.#client)
  }

  /** Sends Hello, the result of the cursor check, and either a replay after the cursor or a snapshot. */
  #greet(subscription: AcceptedSubscription, resumeFrom: string | undefined, error: StreamError | undefined): void {
    const { deps, options, window } = this.#hub
    const cursor = resumeFrom === undefined ? undefined : this.#hub.checkCursor(resumeFrom, subscription)
    const isResumed = cursor?.ok === true
    const snapshot = isResumed ? [] : this.#snapshot(subscription.events)
    const hello: Hello = {
      ...deps.hello(),
      blocked_events: [...options.rules.blocked],
      resumed: isResumed,
      newest_seqno: this.#newestSeq,
      subscribed: subscription,
      snapshot: snapshot.length,
    }
    deps.count.joined(cursor === undefined ? 'snapshot' : cursor.ok ? 'resume' : 'out_of_window')
    this.#client.send(controlFrame('Hello', hello))
    if (error !== undefined) this.#refuse(error)
    if (cursor?.ok === false) {
      const requested = (resumeFrom as string).slice(0, 32)
      const { oldestSeq: oldest_seqno, newestSeq: newest_seqno } = window
      const { reason } = cursor
      this.#client.send(
        controlFrame('Warning', { type: 'resume_out_of_window', requested, oldest_seqno, newest_seqno, reason }),
      )
    }
    this.#sendSnapshot(snapshot)
    if (isResumed) this.#client.replayAfter(cursor.seq)
    else this.#client.group.goLive(this.#client)
  }

  #onLive(): void {
    this.#client.group.goLive(this.#client)
    for (const text of this.#deferred.splice(0)) this.#subscribe(text)
  }

  /** Replaces the subscription of a live client; items that are new to it begin with a snapshot. */
  #subscribe(text: string): void {
    const client = this.#client
    const parsed = parseSubscribeMessage(text, this.#hub.options.rules)
    if (!parsed.ok) return this.#refuse(parsed.error)
    const { subscription } = parsed
    if (subscriptionKey(subscription) === client.group.key) return
    const before = new Set<string>(client.group.subscription.events)
    const group = this.#hub.enter(subscription, this.#socket.isDeflating === true)
    this.#hub.leave(client)
    client.group = group
    group.goLive(client)
    const snapshot = this.#snapshot(subscription.events.filter((item) => !before.has(item)))
    client.send(controlFrame('Subscribed', { ...subscription, snapshot: snapshot.length }))
    this.#sendSnapshot(snapshot)
  }

  /** In one write: a source with many active blocks has thousands of frames. */
  #sendSnapshot(frames: readonly Buffer[]): void {
    if (frames.length > 0) this.#client.send(Buffer.concat(frames))
  }

  #refuse(error: StreamError): void {
    this.#hub.deps.count.refused(error.code)
    this.#client.send(controlFrame('Error', error))
  }

  /** The sequence number of the last published frame, also of an earlier process. */
  get #newestSeq(): number {
    const { window, deps } = this.#hub
    return window.newestSeq === 0 ? deps.seq.upcoming - 1 : window.newestSeq
  }

  /**
   * Current payloads of the kinds among `items`, in the order of kinds. All have the newest sequence number, because they contain everything up to
   * it: a client that has received all of them resumes after that number. Numbers of their own would be numbers of other frames.
   */
  #snapshot(items: readonly string[]): Buffer[] {
    const seq = this.#newestSeq
    const frames = FIGURE_KINDS.filter((kind) => items.includes(kind)).flatMap((kind) =>
      this.#hub.deps.snapshot(kind).map((payload) => encodeTextFrame(`{"seq":${seq},"${kind}":${payload}}`)),
    )
    this.#meter.charge(unitsOfBytes(frames.reduce((sum, { length }) => sum + length, 0)))
    return frames
  }
}

function workLimitError({ unitsPerSecond }: WorkMeter, retryAfterMs: number): StreamError {
  const message = `limit reached: ${unitsPerSecond} work units per second; try again in ${Math.ceil(retryAfterMs)} ms`
  return { code: 'rate_limited', message }
}
