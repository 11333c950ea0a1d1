import type { Clock, Timer } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { FrameConsumer } from '../../platform/net/shared-frames.ts'
import type { LossReason } from '../../upstreams/metrics.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Notification } from '../../upstreams/ws-frame-id.ts'
import type { WsUpstreamSubscription } from '../../upstreams/ws-link.ts'
import { accountDigest, type CatchUp, type Missed, resultDigest } from './catch-up.ts'
import type { Deliveries } from './deliveries.ts'
import { FanOut, type FanOutSubscriber } from './fan-out.ts'
import type { PubSubKind } from './request.ts'
import { slotOf } from './splice.ts'

/** What a node or the lack of one says to a subscribe. */
export type SubscribeResponse =
  | { readonly kind: 'ready' }
  /** The node's whole answer. */
  | { readonly kind: 'refused'; readonly text: string }
  /** `wasAsked` when a node may have seen the request. */
  | { readonly kind: 'no-upstream'; readonly wasAsked: boolean }

export type Gap = { readonly fromSlot: number; readonly toSlot: number; readonly reason: LossReason }

/** One client's share in a feed. */
export type UpstreamSubscriber = FanOutSubscriber & {
  /** Called once, never within `join`. */
  onResponse(response: SubscribeResponse): void
  onGap(gap: Gap): void
  /** The node has said its last word. */
  onEnd(): void
}

export type UpstreamSubscriptionDeps = {
  readonly upstreams: Pick<Upstreams, 'of'>
  readonly clock: Clock
  readonly random: Random
  readonly catchUp: CatchUp
  readonly deliveries: Deliveries
  /** Called once, when nobody holds it any more or the node has ended it. */
  onOver(): void
}

/** A subscribe that finds no node in this time is refused. */
const SUBSCRIBE_WAIT_MS = 5000
/** A node that has not answered a subscribe by then is left. */
const ASK_MS = 2500
/** Many feeds are lost at once; they come back spread over so long. */
const FIRST_RETRY_MS = 50
const RETRY_MS_MIN = 100
/** Short: everything lives again within three seconds of a node's return. */
const RETRY_MS_MAX = 1000
/** Kinds whose slots go up at one node; after a loss older ones are repetitions. */
const RISING: ReadonlySet<PubSubKind> = new Set(['account', 'program', 'logs', 'slot', 'root', 'block'])
/** Further back is no late node but a chain that began anew. */
const LATE_SLOTS_MAX = 150
/** A node tells finalized slots about 32 after the best one, and may itself be 25 behind (`health.lagSlotsMax`). */
const UNREPORTED_SLOTS_MAX = 64
const RECEIVED = Buffer.from('"value":"receivedSignature"')

type Ask = {
  subscription?: WsUpstreamSubscription | undefined
  isLive: boolean
  /** The holder whose call this is; undefined where it only restores the subscription of earlier ones. */
  readonly askedFor: UpstreamSubscriber | undefined
}

/** One subscription at a node, held by any number of clients and kept alive over losses. */
export class UpstreamSubscription {
  readonly #wanted: { readonly owner: string | undefined; readonly kind: PubSubKind; readonly params: string }
  readonly #deps: UpstreamSubscriptionDeps
  readonly #subscribers = new Set<UpstreamSubscriber>()
  readonly #fanOut: FanOut
  readonly #waiting = new Map<UpstreamSubscriber, Timer>()
  /** The subscription asked for or live; events of an earlier one are not listened to. */
  #current: Ask | undefined
  #timer: Timer | undefined
  #hasBegun = false
  #tries = 0
  /** A node may have seen the request. */
  #wasAsked = false
  #isOver = false
  #lastSlot: number | undefined
  #lastAccount: string | undefined
  #lost: { readonly fromSlot: number; readonly reason: LossReason } | undefined
  /** Set after a loss until the new node has reached what was delivered before. */
  #floor: number | undefined

  constructor(
    wanted: { readonly owner: string | undefined; readonly kind: PubSubKind; readonly params: string },
    deps: UpstreamSubscriptionDeps,
  ) {
    this.#wanted = wanted
    this.#deps = deps
    this.#fanOut = new FanOut(deps.deliveries)
  }

  /** The first to join makes the call; those who join while it is on its way wait for it. */
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
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#ask()
  }

  /** Who waits in vain, or no longer, is told whether a node may have seen the request: only then has it cost anything. */
  #giveUp(subscriber: UpstreamSubscriber): void {
    if (!this.#waiting.delete(subscriber)) return
    const wasAsked = this.#wasAsked || this.#current?.subscription?.isSent === true
    subscriber.onResponse({ kind: 'no-upstream', wasAsked })
  }

  /** From here on a holder that was answered gets its frames together with others. */
  share(subscriber: UpstreamSubscriber, consumer: FrameConsumer<Buffer>): void {
    this.#fanOut.share(subscriber, consumer)
  }

  leave(subscriber: UpstreamSubscriber): void {
    this.#waiting.get(subscriber)?.cancel()
    this.#giveUp(subscriber)
    this.#exit(subscriber)
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

  #end(isOverAtNode: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#timer?.cancel()
    this.#current?.subscription?.close(isOverAtNode)
    this.#current = undefined
    this.#deps.onOver()
  }

  #ask(): void {
    const { owner, kind, params } = this.#wanted
    const [askedFor] = this.#waiting.keys()
    const ask: Ask = { isLive: false, askedFor }
    this.#current = ask
    const ifCurrent =
      <Args extends unknown[]>(handle: (...args: Args) => void) =>
      (...args: Args) => {
        if (this.#current === ask) handle(...args)
      }
    ask.subscription = this.#deps.upstreams.of(owner).ws.subscribe(
      { method: `${kind}Subscribe`, unsubscribe: `${kind}Unsubscribe`, params },
      {
        onReady: ifCurrent(() => this.#onReady(ask)),
        onRefused: ifCurrent((text: string) => this.#onRefused(ask, text)),
        onNotification: ifCurrent((frame: Buffer, at: Notification) => this.#onNotification(frame, at)),
        onLost: ifCurrent((reason: LossReason) => this.#onLost(reason)),
      },
    )
    if (ask.subscription === undefined) return this.#retry()
    this.#timer = this.#deps.clock.setTimer(ASK_MS, () => {
      if (ask.subscription?.isSent === true) this.#wasAsked = true
      ask.subscription?.close()
      this.#retry()
    })
  }

  #retry(): void {
    const { clock, random } = this.#deps
    this.#current = undefined
    this.#timer?.cancel()
    const most =
      this.#tries === 0 ? FIRST_RETRY_MS : Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(this.#tries, 8))
    this.#tries += 1
    this.#timer = clock.setTimer(most * (0.5 + random.float() / 2), () => this.#ask())
  }

  #onReady(ask: Ask): void {
    this.#timer?.cancel()
    this.#tries = 0
    ask.isLive = true
    this.#closeGap(ask)
    const ready = [...this.#waiting]
    this.#waiting.clear()
    for (const [subscriber, timer] of ready) {
      timer.cancel()
      this.#enter(subscriber)
      subscriber.onResponse({ kind: 'ready' })
    }
  }

  /** A refusal is only for the holder whose call it was. The others' call is made in turn. */
  #onRefused({ askedFor }: Ask, text: string): void {
    const timer = askedFor && this.#waiting.get(askedFor)
    timer?.cancel()
    if (askedFor) this.#waiting.delete(askedFor)
    this.#timer?.cancel()
    // Another node took it before, so this refusal is not final.
    if (this.#subscribers.size > 0) this.#retry()
    else if (this.#waiting.size > 0) this.#ask()
    else this.#end(true)
    if (timer !== undefined) askedFor?.onResponse({ kind: 'refused', text })
  }

  #onLost(reason: LossReason): void {
    if (this.#current?.subscription?.isSent === true) this.#wasAsked = true
    if (this.#subscribers.size > 0 && this.#lost === undefined) {
      const best = this.#deps.upstreams.of(this.#wanted.owner).bestSlot
      this.#lost = { fromSlot: Math.max(this.#lastSlot ?? 0, best - UNREPORTED_SLOTS_MAX), reason }
    }
    this.#retry()
  }

  #closeGap(ask: Ask): void {
    const lost = this.#lost
    if (lost === undefined) return
    this.#lost = undefined
    const { owner, kind, params } = this.#wanted
    const upstream = this.#deps.upstreams.of(owner)
    if (RISING.has(kind)) this.#floor = this.#lastSlot
    const gap = { ...lost, toSlot: Math.max(lost.fromSlot, upstream.bestSlot) }
    for (const subscriber of this.#subscribers) subscriber.onGap(gap)
    this.#deps.catchUp.find(this, {
      upstream,
      kind,
      params,
      isWanted: () => this.#current === ask,
      found: (missed) => this.#deliverMissed(missed),
    })
  }

  #deliverMissed({ result, slot, isLast }: Missed): void {
    if (this.#lastSlot !== undefined && slot < this.#lastSlot) return
    if (!isLast) {
      const digest = resultDigest(result)
      if (digest !== undefined && digest === this.#lastAccount) return
      this.#lastAccount = digest
    }
    this.#lastSlot = slot
    const head = `{"jsonrpc":"2.0","method":"${this.#wanted.kind}Notification","params":{"result":${result},"subscription":`
    const payload = Buffer.from(`${head}0}}`)
    const idFrom = payload.length - 3
    this.#deliver({ bytes: payload, idFrom, idTo: idFrom + 1 }, isLast ? 'ended here' : undefined)
  }

  #onNotification(frame: Buffer, { idFrom, idTo }: Notification): void {
    const { kind } = this.#wanted
    const slot = slotOf(kind, frame)
    if (slot !== undefined && RISING.has(kind)) {
      if (this.#floor !== undefined && slot < this.#floor && slot >= this.#floor - LATE_SLOTS_MAX) return
      this.#floor = undefined
      this.#lastSlot = slot
    }
    if (kind === 'account') this.#lastAccount = accountDigest(frame, idFrom)
    const isLast = kind === 'signature' && !frame.includes(RECEIVED)
    this.#deliver({ bytes: frame, idFrom, idTo }, isLast ? 'ended by the node' : undefined)
  }

  /** The last notification ends the subscription at once, and each holder once it has got it. */
  #deliver(payload: Parameters<FanOut['push']>[0], last?: 'ended here' | 'ended by the node'): void {
    if (last !== undefined) this.#end(last === 'ended by the node')
    const isTaken = this.#fanOut.push(payload, last && (() => this.#finish()))
    if (isTaken) return
    if (last !== undefined) return this.#finish()
    // More comes than can be delivered: what is missed is reported as a gap, as after the loss of a node.
    this.#current?.subscription?.close()
    this.#onLost('too-slow')
  }

  #finish(): void {
    const subscribers = [...this.#subscribers]
    for (const subscriber of subscribers) this.#exit(subscriber)
    for (const one of subscribers) one.onEnd()
  }
}
