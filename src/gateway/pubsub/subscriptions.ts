import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { methodCost, WS_SUBSCRIPTIONS_PER_CONNECTION_MAX } from '../../access/plan.ts'
import type { Permit } from '../../access/quota/permits.ts'
import type { NodeUser } from '../../contract/products.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import { permitRefusal, type Refusal } from '../refusal.ts'
import { connectionLimitRefusal } from './refusal.ts'
import type { PubSubKind } from './request.ts'
import type { Gap, SubscribeResponse, UpstreamSubscriber } from './upstream-subscription.ts'
import type { SharedSubscription, UpstreamSubscriptions } from './upstream-subscriptions.ts'

export type Subscribed = {
  readonly id: number
  readonly response: SubscribeResponse
  /** To be called when the response is sent: notifications that arrived before it follow. */
  start(): void
}

export type ClientSubscriptionsDeps = {
  readonly access: Pick<Access, 'permits'>
  readonly upstreamSubscriptions: UpstreamSubscriptions
}

/** Whose subscriptions they are. */
export type SubscribedClient = {
  readonly connection: Pick<WsConnection, 'sendFrame' | 'consumer'>
  /** The client requested notifications of gaps. */
  readonly wantsGaps: boolean
  sendGap(id: number, gap: Gap): void
  /** Too many bytes wait for a subscription whose response is not sent yet. */
  onOverflow(): void
}

/** Bytes of notifications that wait for the response to their subscribe, which in a batch may take a while. */
const EARLY_BYTES_MAX = 1024 * 1024
/**
 * Far from the ids of requests, as with a node that serves many clients: solana-py takes both for the same subscription in its unsubscribe methods. The
 * same on every connection, since connections with equal ids share frames.
 */
export const FIRST_ID = 1_000_000_001
/** A gap notification counts as so many of them. */
const GAP_BYTES = 256

type SubscriptionTopic = {
  readonly nodeUser: NodeUser
  readonly kind: PubSubKind
  readonly params: string | undefined
}

/** The subscriptions of one connection, numbered from FIRST_ID. */
export class ClientSubscriptions implements Disposable {
  readonly #client: SubscribedClient
  readonly #deps: ClientSubscriptionsDeps
  readonly #subscriptions = new Map<number, ClientSubscription>()
  #nextId = FIRST_ID

  constructor(client: SubscribedClient, deps: ClientSubscriptionsDeps) {
    this.#client = client
    this.#deps = deps
  }

  get size(): number {
    return this.#subscriptions.size
  }

  /** A permit for one more subscription; to be released where it is not used. */
  reserve(caller: Caller, method: string): Permit | { readonly ok: false; readonly refusal: Refusal } {
    const cost = methodCost(caller.limits, method)
    const onConnectionMax = WS_SUBSCRIPTIONS_PER_CONNECTION_MAX
    if (this.size >= onConnectionMax)
      return { ok: false, refusal: connectionLimitRefusal('wsSubscriptions', onConnectionMax, cost) }
    const permit = this.#deps.access.permits.acquire(caller.subscription.id, 'wsSubscriptions', caller.limits)
    return permit.ok ? permit : { ok: false, refusal: permitRefusal(permit, cost) }
  }

  async subscribe(topic: SubscriptionTopic, permit: Permit): Promise<Subscribed> {
    const id = this.#nextId++
    const subscription = new ClientSubscription(
      id,
      topic.nodeUser.subscriptionId,
      permit,
      this.#client,
      this.#subscriptions,
    )
    const response = await subscription.join(this.#deps.upstreamSubscriptions, topic)
    return { id, response, start: () => subscription.start() }
  }

  /** False where there is no such subscription. */
  unsubscribe(id: number): boolean {
    return this.#subscriptions.get(id)?.drop() ?? false
  }

  [Symbol.dispose](): void {
    for (const subscription of [...this.#subscriptions.values()]) subscription.drop()
  }
}

/** One subscription of a client. Frames pass through it only until the response to its subscribe was sent. */
class ClientSubscription implements UpstreamSubscriber {
  readonly id: number
  readonly subscriptionId: string
  readonly #permit: Permit
  readonly #client: SubscribedClient
  /** All of the client, from which it removes itself. */
  readonly #all: Map<number, ClientSubscription>
  #shared: SharedSubscription | undefined
  #resolveResponse: ((response: SubscribeResponse) => void) | undefined
  /** Notifications and gaps before the response was sent, in order. */
  #early: (Buffer | Gap)[] | undefined = []
  #earlyBytes = 0
  #hasEnded = false

  constructor(
    id: number,
    subscriptionId: string,
    permit: Permit,
    client: SubscribedClient,
    all: Map<number, ClientSubscription>,
  ) {
    this.id = id
    this.subscriptionId = subscriptionId
    this.#permit = permit
    this.#client = client
    this.#all = all
    all.set(id, this)
  }

  join(upstreamSubscriptions: UpstreamSubscriptions, topic: SubscriptionTopic): Promise<SubscribeResponse> {
    return new Promise((resolve) => {
      this.#resolveResponse = resolve
      const joined = upstreamSubscriptions.join(topic, this)
      if ('limitSize' in joined) this.onResponse({ kind: 'over-share', ...joined })
      else this.#shared = joined
    })
  }

  onResponse(response: SubscribeResponse): void {
    if (response.kind !== 'ready') this.drop()
    this.#resolveResponse?.(response)
    this.#resolveResponse = undefined
  }

  /** To be called when the response is sent. */
  start(): void {
    const early = this.#early ?? []
    this.#early = undefined
    // Unsubscribed or disconnected in the meantime.
    if (!this.#all.has(this.id)) return
    const { connection } = this.#client
    for (const item of early) {
      if (Buffer.isBuffer(item)) connection.sendFrame(item)
      else this.#client.sendGap(this.id, item)
    }
    if (this.#hasEnded) this.drop()
    // From now on frames go to the connection without passing through here.
    else this.#shared?.share(this, connection.consumer)
  }

  onFrame(frame: Buffer): void {
    if (this.#early === undefined) this.#client.connection.sendFrame(frame)
    else this.#holdEarly(this.#early, frame, frame.length)
  }

  onGap(gap: Gap): void {
    if (!this.#client.wantsGaps) return
    if (this.#early === undefined) this.#client.sendGap(this.id, gap)
    else this.#holdEarly(this.#early, gap, GAP_BYTES)
  }

  onEnd(): void {
    this.#hasEnded = true
    if (this.#early === undefined) this.drop()
  }

  /** False where it was dropped before. */
  drop(): boolean {
    if (!this.#all.delete(this.id)) return false
    this.#shared?.leave(this)
    this.#permit.release()
    return true
  }

  #holdEarly(early: (Buffer | Gap)[], item: Buffer | Gap, bytes: number): void {
    early.push(item)
    this.#earlyBytes += bytes
    if (this.#earlyBytes > EARLY_BYTES_MAX) this.#client.onOverflow()
  }
}
