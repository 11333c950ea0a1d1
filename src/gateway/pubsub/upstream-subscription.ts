import type { NodeUser } from '../../contract/products.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { FrameConsumer } from '../../platform/net/shared-frames.ts'
import { errorCodeOf } from '../../upstreams/extract-slot.ts'
import type { LossReason } from '../../upstreams/metrics.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { Notification } from '../../upstreams/ws/frame-id.ts'
import type { LinkSubscription } from '../../upstreams/ws/link-subscriptions.ts'
import { type CatchUp, FINALIZED_SLOTS, type Missed } from './catch-up.ts'
import { DeliveredState } from './delivered-state.ts'
import type { Deliveries } from './deliveries.ts'
import { FanOut, type FanOutSubscriber } from './fan-out.ts'
import type { PubSubKind } from './request.ts'

/** The result of a subscribe. */
export type SubscribeResponse =
  | { readonly kind: 'ready' }
  /** The node's complete response. */
  | { readonly kind: 'refused'; readonly text: string }
  /** The subscription of the client has its share of the upstream subscriptions. */
  | { readonly kind: 'over-share'; readonly limitSize: number }
  /** `isSent` when a node may have received the request. */
  | { readonly kind: 'no-upstream'; readonly isSent: boolean }

export type Gap = { readonly fromSlot: number; readonly toSlot: number; readonly reason: LossReason }

/** One client's part in an upstream subscription. */
export type UpstreamSubscriber = FanOutSubscriber & {
  /** The customer's subscription. */
  readonly subscriptionId: string
  /** Called once, never within `join`. */
  onResponse(response: SubscribeResponse): void
  onGap(gap: Gap): void
  /** The subscription is complete: the last notification was delivered. */
  onEnd(): void
}

export type UpstreamSubscriptionDeps = {
  readonly upstreams: Pick<Upstreams, 'of' | 'shared'>
  readonly clock: Clock
  readonly random: Random
  readonly catchUp: CatchUp
  readonly deliveries: Deliveries
  /** Called for each subscriber that leaves. */
  onLeave(subscriber: UpstreamSubscriber): void
  /** Called once, when it has no subscriber left or is complete. */
  onEnd(): void
}

/** A subscribe that finds no node in this time is refused. */
const SUBSCRIBE_WAIT_MS = 5000
/** A node that has not responded to a subscribe in this time is given up. */
const ATTEMPT_MS = 2500
/** Many subscriptions are lost at once; their first retries are spread over this time. */
const FIRST_RETRY_MS = 50
const RETRY_MS_MIN = 100
/** Short: every subscription is restored within three seconds of a node's return. */
const RETRY_MS_MAX = 1000
/** A node that is further behind does not lag: its chain was reset. */
const LAG_MS_MAX = 60_000
/** Allowed lag of the lost node: 32 slots of 400 ms (docs/decisions/0019-slot-length.md). */
const UNREPORTED_MS_MAX = 12_800
/** Parse error, invalid request, invalid params (JSON-RPC 2.0): every node refuses that. */
const FINAL_CODES: readonly (number | undefined)[] = [-32_700, -32_600, -32_602]
const RECEIVED = Buffer.from('"value":"receivedSignature"')

/** One subscribe at a node. */
type Attempt = {
  subscription?: LinkSubscription | undefined
  isLive: boolean
  /** The subscriber whose call this is; undefined where it only restores the subscription of earlier ones. */
  subscriber: UpstreamSubscriber | undefined
  /** It follows the refusal of another node. */
  readonly isSecond: boolean
}

type Topic = {
  /** Whose nodes notify; undefined for the shared ones. */
  readonly dedicatedTo: NodeUser | undefined
  readonly kind: PubSubKind
  readonly params: string
}

/** One subscription at a node, shared by any number of clients and restored when the node is lost. */
export class UpstreamSubscription {
  readonly #topic: Topic
  readonly #deps: UpstreamSubscriptionDeps
  readonly #subscribers = new Set<UpstreamSubscriber>()
  readonly #fanOut: FanOut
  readonly #waiting = new Map<UpstreamSubscriber, Timer>()
  /** The current attempt, or the live subscription; events of an earlier one are ignored. */
  #current: Attempt | undefined
  #timer: Timer | undefined
  /** The node that has not responded, or that has refused what another one accepted: not the next one, if there is another. */
  #avoided: string | undefined
  #hasStarted = false
  #retries = 0
  /** A node may have received the request. */
  #isSent = false
  #hasEnded = false
  readonly #delivered: DeliveredState
  #lost: { readonly fromSlot: number; readonly reason: LossReason } | undefined

  constructor(topic: Topic, deps: UpstreamSubscriptionDeps) {
    this.#topic = topic
    this.#deps = deps
    this.#delivered = new DeliveredState(topic, () => this.#upstream.slotLength.inSlots(LAG_MS_MAX))
    this.#fanOut = new FanOut(deps.deliveries)
  }

  /** The first subscriber starts the subscribe; those who join before its response wait for it. */
  join(subscriber: UpstreamSubscriber): void {
    if (this.#current?.isLive === true) {
      this.#enter(subscriber)
      queueMicrotask(() => subscriber.onResponse({ kind: 'ready' }))
      return
    }
    const timer = this.#deps.clock.setTimer(SUBSCRIBE_WAIT_MS, () => {
      this.#giveUp(subscriber)
      this.#endIfUnused()
    })
    this.#waiting.set(subscriber, timer)
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#subscribe()
  }

  /** Responds to a waiting subscriber that timed out or left. It is charged only where a node may have received the request. */
  #giveUp(subscriber: UpstreamSubscriber): void {
    if (!this.#waiting.delete(subscriber)) return
    const isSent = this.#isSent || this.#current?.subscription?.isSent === true
    subscriber.onResponse({ kind: 'no-upstream', isSent })
  }

  /** Delivers the frames of a subscriber together with others of the same id. To be called after its response was sent. */
  share(subscriber: UpstreamSubscriber, consumer: FrameConsumer<Buffer>): void {
    this.#fanOut.share(subscriber, consumer)
  }

  /** Once for each that has joined, whatever its response. */
  leave(subscriber: UpstreamSubscriber): void {
    this.#waiting.get(subscriber)?.cancel()
    this.#giveUp(subscriber)
    this.#exit(subscriber)
    this.#deps.onLeave(subscriber)
    this.#endIfUnused()
  }

  #enter(subscriber: UpstreamSubscriber): void {
    this.#subscribers.add(subscriber)
    this.#fanOut.add(subscriber)
  }

  #exit(subscriber: UpstreamSubscriber): void {
    this.#subscribers.delete(subscriber)
    this.#fanOut.remove(subscriber)
  }

  #endIfUnused(): void {
    if (this.#subscribers.size === 0 && this.#waiting.size === 0) this.#end(false)
  }

  #end(isEndedByNode: boolean): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#timer?.cancel()
    this.#current?.subscription?.close(isEndedByNode)
    this.#current = undefined
    this.#deps.onEnd()
  }

  get #upstream(): Upstream {
    const { upstreams } = this.#deps
    const { dedicatedTo } = this.#topic
    return dedicatedTo === undefined ? upstreams.shared : upstreams.of(dedicatedTo)
  }

  #subscribe(): void {
    if (this.#avoided !== undefined && this.#attempt({ except: this.#avoided })) return
    if (!this.#attempt()) this.#retry()
  }

  /** False where there is no node for it. */
  #attempt({ except, isSecond = false }: { except?: string; isSecond?: boolean } = {}): boolean {
    const { kind, params } = this.#topic
    const [subscriber] = this.#waiting.keys()
    const attempt: Attempt = { isLive: false, subscriber, isSecond }
    this.#current = attempt
    const ifCurrent =
      <Args extends unknown[]>(handle: (...args: Args) => void) =>
      (...args: Args) => {
        if (this.#current === attempt) handle(...args)
      }
    attempt.subscription = this.#upstream.ws.subscribe(
      { method: `${kind}Subscribe`, unsubscribe: `${kind}Unsubscribe`, params },
      {
        onReady: ifCurrent(() => this.#onReady(attempt)),
        onRefused: ifCurrent((text: string) => this.#onRefused(attempt, text)),
        onNotification: ifCurrent((frame: Buffer, at: Notification) => this.#onNotification(frame, at)),
        onLost: ifCurrent((reason: LossReason) => this.#onLost(reason)),
      },
      { except },
    )
    if (attempt.subscription === undefined) return false
    this.#timer = this.#deps.clock.setTimer(ATTEMPT_MS, () => {
      if (attempt.subscription?.isSent === true) this.#isSent = true
      this.#avoided = attempt.subscription?.nodeName
      attempt.subscription?.close()
      this.#retry()
    })
    return true
  }

  #retry(): void {
    const { clock, random } = this.#deps
    this.#current = undefined
    this.#timer?.cancel()
    const maxMs =
      this.#retries === 0 ? FIRST_RETRY_MS : Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(this.#retries, 8))
    this.#retries += 1
    this.#timer = clock.setTimer(maxMs * (0.5 + random.float() / 2), () => this.#subscribe())
  }

  #onReady(attempt: Attempt): void {
    this.#timer?.cancel()
    this.#retries = 0
    this.#avoided = undefined
    attempt.isLive = true
    // A client that leaves is not kept in memory by the others.
    attempt.subscriber = undefined
    this.#reportGap(attempt)
    const ready = [...this.#waiting]
    this.#waiting.clear()
    for (const [subscriber, timer] of ready) {
      timer.cancel()
      this.#enter(subscriber)
      subscriber.onResponse({ kind: 'ready' })
    }
  }

  /** A refusal is only for the subscriber whose call it was. The next one's call follows. */
  #onRefused(attempt: Attempt, text: string): void {
    if (this.#isTriedElsewhere(attempt, text)) return
    const { subscriber } = attempt
    const timer = subscriber && this.#waiting.get(subscriber)
    timer?.cancel()
    if (subscriber) this.#waiting.delete(subscriber)
    this.#timer?.cancel()
    // Another node accepted it before, so this refusal is not final.
    if (this.#subscribers.size > 0) {
      this.#avoided = attempt.subscription?.nodeName
      this.#retry()
    } else if (this.#waiting.size > 0) this.#subscribe()
    else this.#end(true)
    if (timer !== undefined) subscriber?.onResponse({ kind: 'refused', text })
  }

  /** A refusal that is not about the params is tried once at another node: this one may refuse everything. */
  #isTriedElsewhere({ subscriber, subscription, isSecond }: Attempt, text: string): boolean {
    if (isSecond || subscriber === undefined || !this.#waiting.has(subscriber) || subscription === undefined)
      return false
    if (this.#subscribers.size > 0 || FINAL_CODES.includes(errorCodeOf(Buffer.from(text)))) return false
    this.#timer?.cancel()
    this.#isSent = true
    return this.#attempt({ except: subscription.nodeName, isSecond: true })
  }

  #onLost(reason: LossReason): void {
    if (this.#current?.subscription?.isSent === true) this.#isSent = true
    if (this.#subscribers.size > 0 && this.#lost === undefined) {
      const { bestSlot, slotLength } = this.#upstream
      const unreported = FINALIZED_SLOTS + slotLength.inSlots(UNREPORTED_MS_MAX)
      this.#lost = { fromSlot: Math.max(this.#delivered.lastSlot ?? 0, bestSlot - unreported), reason }
    }
    this.#retry()
  }

  #reportGap(attempt: Attempt): void {
    const lost = this.#lost
    if (lost === undefined) return
    this.#lost = undefined
    const { kind, params } = this.#topic
    const upstream = this.#upstream
    this.#delivered.onNodeChange()
    const gap = { ...lost, toSlot: Math.max(lost.fromSlot, upstream.bestSlot) }
    for (const subscriber of this.#subscribers) subscriber.onGap(gap)
    this.#deps.catchUp.start(this, {
      upstream,
      kind,
      params,
      minSlot: gap.toSlot,
      isNeeded: () => this.#current === attempt,
      onMissed: (missed) => this.#deliverMissed(missed),
    })
  }

  /** False where the state is older than what was delivered. */
  #deliverMissed(missed: Missed): boolean {
    const outcome = this.#delivered.receiveMissed(missed)
    if (outcome !== 'new') return outcome === 'known'
    const head = `{"jsonrpc":"2.0","method":"${this.#topic.kind}Notification","params":{"result":${missed.result},"subscription":`
    const payload = Buffer.from(`${head}0}}`)
    const idFrom = payload.length - 3
    this.#deliver({ bytes: payload, idFrom, idTo: idFrom + 1 }, missed.isLast ? 'ended-here' : undefined)
    return true
  }

  #onNotification(frame: Buffer, { idFrom, idTo }: Notification): void {
    if (!this.#delivered.receiveNotification(frame, idFrom)) return
    const isLast = this.#topic.kind === 'signature' && !frame.includes(RECEIVED)
    this.#deliver({ bytes: frame, idFrom, idTo }, isLast ? 'ended-by-node' : undefined)
  }

  /** The last notification ends the subscription at once, and each subscriber after its delivery. */
  #deliver(payload: Parameters<FanOut['push']>[0], last?: 'ended-here' | 'ended-by-node'): void {
    if (last !== undefined) this.#end(last === 'ended-by-node')
    const isAccepted = this.#fanOut.push(payload, last && (() => this.#finish()))
    if (isAccepted) return
    if (last !== undefined) return this.#finish()
    // More arrives than can be delivered: the missed part is reported as a gap, as after the loss of a node.
    this.#current?.subscription?.close()
    this.#onLost('too-slow')
  }

  #finish(): void {
    const subscribers = [...this.#subscribers]
    for (const subscriber of subscribers) this.#exit(subscriber)
    for (const subscriber of subscribers) subscriber.onEnd()
  }
}
