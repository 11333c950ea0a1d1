import { encodeTextFrame } from '../../platform/ws/frame.ts'
import { internalError } from '../rpc/errors.ts'
import { keyOf, type SubscriptionKind, type SubscriptionRequest } from './requests.ts'

/** A connection that has subscriptions. */
export type Subscriber = {
  sendFrame(frame: Buffer): void
  /** Called when the server has ended this subscription. */
  forget(id: number): void
}

/** One subscription of the node. Equal requests share it and its id, across connections. */
export type Subscription<Request extends SubscriptionRequest = SubscriptionRequest> = {
  readonly id: number
  readonly request: Request
  readonly subscribers: Set<Subscriber>
}

type RequestOf<Kind extends SubscriptionKind> = Extract<SubscriptionRequest, { kind: Kind }>

export const SUBSCRIPTIONS_MAX = 1_000_000

/** All subscriptions of the node. Ids count up from 0 and are never used again. */
export class Registry {
  readonly #max: number
  readonly #byKey = new Map<string, Subscription>()
  readonly #byId = new Map<number, Subscription>()
  readonly #byKind = new Map<SubscriptionKind, Set<Subscription>>()
  /** Account, program and signature subscriptions by their address or signature. */
  readonly #byTarget = new Map<string, Set<Subscription>>()
  #nextId = 0

  constructor(max: number = SUBSCRIPTIONS_MAX) {
    this.#max = max
  }

  get size(): number {
    return this.#byId.size
  }

  subscribe(request: SubscriptionRequest, subscriber: Subscriber): Subscription {
    const key = keyOf(request)
    const subscription = this.#byKey.get(key) ?? this.#create(key, request)
    subscription.subscribers.add(subscriber)
    return subscription
  }

  release(id: number, subscriber: Subscriber): void {
    const subscription = this.#byId.get(id)
    if (!subscription) return
    subscription.subscribers.delete(subscriber)
    if (subscription.subscribers.size === 0) this.#remove(subscription)
  }

  /** The subscriptions of a kind without a target: there are few distinct requests, for any number of clients. */
  ofKind<Kind extends SubscriptionKind>(kind: Kind): Iterable<Subscription<RequestOf<Kind>>> {
    return (this.#byKind.get(kind) ?? NONE) as Iterable<Subscription<RequestOf<Kind>>>
  }

  watching<Kind extends 'account' | 'program' | 'signature'>(
    kind: Kind,
    target: string,
  ): Iterable<Subscription<RequestOf<Kind>>> {
    return (this.#byTarget.get(`${kind} ${target}`) ?? NONE) as Iterable<Subscription<RequestOf<Kind>>>
  }

  /** Notifies every subscriber; `result` is JSON text. The last notification ends the subscription. */
  notify(subscription: Subscription, result: string, { isLast = false } = {}): void {
    const { id, request, subscribers } = subscription
    const frame = encodeTextFrame(
      `{"jsonrpc":"2.0","method":"${request.kind}Notification","params":{"result":${result},"subscription":${id}}}`,
    )
    for (const subscriber of subscribers) subscriber.sendFrame(frame)
    if (!isLast) return
    for (const owner of subscribers) owner.forget(id)
    this.#remove(subscription)
  }

  #create(key: string, request: SubscriptionRequest): Subscription {
    if (this.#byId.size >= this.#max) {
      throw internalError('Internal Error: Subscription refused. Node subscription limit reached')
    }
    const subscription: Subscription = { id: this.#nextId++, request, subscribers: new Set() }
    this.#byKey.set(key, subscription)
    this.#byId.set(subscription.id, subscription)
    addTo(this.#byKind, request.kind, subscription)
    const target = targetOf(request)
    if (target !== undefined) addTo(this.#byTarget, `${request.kind} ${target}`, subscription)
    return subscription
  }

  #remove(subscription: Subscription): void {
    const { request } = subscription
    this.#byKey.delete(keyOf(request))
    this.#byId.delete(subscription.id)
    removeFrom(this.#byKind, request.kind, subscription)
    const target = targetOf(request)
    if (target !== undefined) removeFrom(this.#byTarget, `${request.kind} ${target}`, subscription)
  }
}

const NONE: ReadonlySet<Subscription> = new Set()

function targetOf(request: SubscriptionRequest): string | undefined {
  switch (request.kind) {
    case 'account':
      return request.address
    case 'program':
      return request.programId
    case 'signature':
      return request.signature
    default:
      return undefined
  }
}

function addTo<Key>(index: Map<Key, Set<Subscription>>, key: Key, subscription: Subscription): void {
  const set = index.get(key)
  if (set) set.add(subscription)
  else index.set(key, new Set([subscription]))
}

function removeFrom<Key>(index: Map<Key, Set<Subscription>>, key: Key, subscription: Subscription): void {
  const set = index.get(key)
  set?.delete(subscription)
  if (set?.size === 0) index.delete(key)
}
