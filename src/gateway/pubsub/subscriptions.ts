import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { methodCost, WS_SUBSCRIPTIONS_PER_CONNECTION_MAX } from '../../access/plan.ts'
import type { Permit } from '../../access/quota/permits.ts'
import type { NodeUser } from '../../contract/products.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import { type Refusal, refusePermit } from '../refusal.ts'
import { refuseOnConnection } from './refusal.ts'
import type { PubSubKind } from './request.ts'
import type { Gap, SubscribeResponse, UpstreamSubscriber } from './upstream-subscription.ts'
import type { SubscriptionShare, UpstreamSubscriptions } from './upstream-subscriptions.ts'

export type Subscribed = {
  readonly id: number
  readonly response: SubscribeResponse
  /** To be called when the response is sent: notifications that arrived before it follow. */
  start(): void
}

/** The subscriptions of one connection, numbered from FIRST_ID. */
export type ClientSubscriptions = Disposable & {
  readonly size: number
  /** A permit for one more subscription; to be released where it is not used. */
  reserve(caller: Caller, method: string): Permit | { readonly ok: false; readonly refusal: Refusal }
  subscribe(
    topic: { readonly nodeUser: NodeUser; readonly kind: PubSubKind; readonly params: string | undefined },
    permit: Permit,
  ): Promise<Subscribed>
  /** False where there is no such subscription. */
  unsubscribe(id: number): boolean
}

export type ClientSubscriptionsDeps = {
  readonly access: Pick<Access, 'permits'>
  readonly upstreamSubscriptions: UpstreamSubscriptions
  readonly connection: Pick<WsConnection, 'sendFrame' | 'consumer'>
  /** Set where the client requested gap notifications. */
  readonly sendGap: ((id: number, gap: Gap) => void) | undefined
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

type Entry = {
  readonly permit: Permit
  share: SubscriptionShare | undefined
  /** Notifications and gaps before the response was sent, in order. */
  early: (Buffer | Gap)[] | undefined
  earlyBytes: number
  hasEnded: boolean
}

export function createClientSubscriptions(deps: ClientSubscriptionsDeps): ClientSubscriptions {
  const { access, upstreamSubscriptions, connection, sendGap } = deps
  const entries = new Map<number, Entry>()
  let nextId = FIRST_ID

  function drop(id: number): boolean {
    const entry = entries.get(id)
    if (entry === undefined) return false
    entries.delete(id)
    entry.share?.leave()
    entry.permit.release()
    return true
  }

  function subscriberOf(
    id: number,
    entry: Entry,
    onResponse: (response: SubscribeResponse) => void,
  ): UpstreamSubscriber {
    const holdEarly = (early: (Buffer | Gap)[], item: Buffer | Gap, bytes: number) => {
      early.push(item)
      entry.earlyBytes += bytes
      if (entry.earlyBytes > EARLY_BYTES_MAX) deps.onOverflow()
    }
    return {
      id,
      onResponse,
      onFrame(frame) {
        if (entry.early === undefined) connection.sendFrame(frame)
        else holdEarly(entry.early, frame, frame.length)
      },
      onGap(gap) {
        if (sendGap === undefined) return
        if (entry.early === undefined) sendGap(id, gap)
        else holdEarly(entry.early, gap, GAP_BYTES)
      },
      onEnd() {
        entry.hasEnded = true
        if (entry.early === undefined) drop(id)
      },
    }
  }

  return {
    get size() {
      return entries.size
    },

    reserve(caller, method) {
      const cost = methodCost(caller.limits, method)
      const onConnectionMax = WS_SUBSCRIPTIONS_PER_CONNECTION_MAX
      if (entries.size >= onConnectionMax)
        return { ok: false, refusal: refuseOnConnection('wsSubscriptions', onConnectionMax, cost) }
      const permit = access.permits.acquire(caller.subscription.id, 'wsSubscriptions', caller.limits)
      return permit.ok ? permit : { ok: false, refusal: refusePermit(permit, cost) }
    },

    subscribe(topic, permit) {
      const id = nextId++
      const entry: Entry = { permit, share: undefined, early: [], earlyBytes: 0, hasEnded: false }
      entries.set(id, entry)
      return new Promise((resolve) => {
        const subscriber = subscriberOf(id, entry, (response) => {
          if (response.kind !== 'ready') drop(id)
          resolve({
            id,
            response,
            start() {
              const early = entry.early ?? []
              entry.early = undefined
              // Unsubscribed or disconnected in the meantime.
              if (!entries.has(id)) return
              for (const item of early) {
                if (Buffer.isBuffer(item)) connection.sendFrame(item)
                else sendGap?.(id, item)
              }
              if (entry.hasEnded) drop(id)
              // From now on frames go to the connection without passing through here.
              else entry.share?.deliverTo(connection.consumer)
            },
          })
        })
        entry.share = upstreamSubscriptions.join(topic, subscriber)
      })
    },

    unsubscribe: (id) => drop(id),

    [Symbol.dispose]() {
      for (const id of [...entries.keys()]) drop(id)
    },
  }
}
