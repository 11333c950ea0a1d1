import type { Caller } from '../../access/authorize.ts'
import { WS_SUBSCRIPTIONS_PER_CONNECTION_MAX } from '../../access/plan.ts'
import type { Permit } from '../../access/quota/permits.ts'
import type { Access } from '../../access/service.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import { type Refusal, refusePermit } from '../refusal.ts'
import { refuseOnConnection } from './refusal.ts'
import type { PubSubKind } from './request.ts'
import type { Gap, SubscribeResponse, UpstreamSubscriber } from './upstream-subscription.ts'
import type { SubscriptionShare, UpstreamSubscriptions } from './upstream-subscriptions.ts'

export type Subscribed = {
  readonly id: number
  readonly response: SubscribeResponse
  /** To be called when the answer is on its way: what the node said meanwhile follows it. */
  start(): void
}

/** The subscriptions of one connection, under ids of its own. */
export type WsSubscriptions = Disposable & {
  readonly size: number
  /** A place for one more; to be released when it is not then used. */
  reserve(caller: Caller): Permit | { readonly ok: false; readonly refusal: Refusal }
  subscribe(
    wanted: { readonly subscriptionId: string; readonly kind: PubSubKind; readonly params: string | undefined },
    permit: Permit,
  ): Promise<Subscribed>
  /** False where there is no such subscription. */
  unsubscribe(id: number): boolean
}

export type WsSubscriptionsDeps = {
  readonly access: Pick<Access, 'permits'>
  readonly upstreamSubscriptions: UpstreamSubscriptions
  readonly connection: Pick<WsConnection, 'sendFrame' | 'consumer'>
  /** Called only where the client asked to be told. */
  readonly sendGap: ((id: number, gap: Gap) => void) | undefined
  /** Too much has come for a subscription whose answer could not be sent yet. */
  onOverflow(): void
}

/** Notifications that wait for the answer to their subscribe, which in a batch may take a while. */
const EARLY_BYTES_MAX = 1024 * 1024

type Held = {
  readonly permit: Permit
  share: SubscriptionShare | undefined
  early: Buffer[] | undefined
  earlyBytes: number
  isOver: boolean
}

export function createWsSubscriptions(deps: WsSubscriptionsDeps): WsSubscriptions {
  const { access, upstreamSubscriptions, connection, sendGap } = deps
  const held = new Map<number, Held>()
  let nextId = 1

  function drop(id: number): boolean {
    const entry = held.get(id)
    if (entry === undefined) return false
    held.delete(id)
    entry.share?.leave()
    entry.permit.release()
    return true
  }

  function subscriberOf(
    id: number,
    entry: Held,
    onResponse: (response: SubscribeResponse) => void,
  ): UpstreamSubscriber {
    return {
      id,
      onResponse,
      onFrame(frame) {
        if (entry.early === undefined) return connection.sendFrame(frame)
        entry.early.push(frame)
        entry.earlyBytes += frame.length
        if (entry.earlyBytes > EARLY_BYTES_MAX) deps.onOverflow()
      },
      onGap: (gap) => {
        if (entry.early === undefined) sendGap?.(id, gap)
      },
      onEnd() {
        entry.isOver = true
        if (entry.early === undefined) drop(id)
      },
    }
  }

  return {
    get size() {
      return held.size
    },

    reserve(caller) {
      if (held.size >= WS_SUBSCRIPTIONS_PER_CONNECTION_MAX) {
        return {
          ok: false,
          refusal: refuseOnConnection('wsSubscriptions', WS_SUBSCRIPTIONS_PER_CONNECTION_MAX, 'live subscriptions'),
        }
      }
      const permit = access.permits.acquire(caller.subscription.id, 'wsSubscriptions', caller.limits)
      return permit.ok ? permit : { ok: false, refusal: refusePermit(permit) }
    },

    subscribe(wanted, permit) {
      const id = nextId++
      const entry: Held = { permit, share: undefined, early: [], earlyBytes: 0, isOver: false }
      held.set(id, entry)
      return new Promise((resolve) => {
        const subscriber = subscriberOf(id, entry, (response) => {
          if (response.kind !== 'ready') drop(id)
          resolve({
            id,
            response,
            start() {
              const early = entry.early ?? []
              entry.early = undefined
              // Ended meanwhile by the client or by its leaving.
              if (!held.has(id)) return
              for (const frame of early) connection.sendFrame(frame)
              if (entry.isOver) drop(id)
              // From here on nothing stands between the feed and the connection.
              else entry.share?.deliverTo(connection.consumer)
            },
          })
        })
        entry.share = upstreamSubscriptions.join(wanted, subscriber)
      })
    },

    unsubscribe: (id) => drop(id),

    [Symbol.dispose]() {
      for (const id of [...held.keys()]) drop(id)
    },
  }
}
