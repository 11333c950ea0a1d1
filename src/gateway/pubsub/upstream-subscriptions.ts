import type { NodeUser } from '../../contract/products.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import { createCatchUp } from './catch-up.ts'
import { createDeliveries, waitingBytesMaxOf } from './deliveries.ts'
import { canonicalParams, type PubSubKind } from './request.ts'
import { type UpstreamSubscriber, UpstreamSubscription } from './upstream-subscription.ts'

/** What a client needs of the upstream subscription that it has joined. */
export type SharedSubscription = Pick<UpstreamSubscription, 'share' | 'leave'>

export type UpstreamSubscriptions = {
  /**
   * Joins the upstream subscription that all clients of the same nodes with the same params share; returns the limit instead where it would be a new one at
   * shared nodes, and the subscription of the client has its share of those.
   */
  join(
    topic: { readonly nodeUser: NodeUser; readonly kind: PubSubKind; readonly params: string | undefined },
    subscriber: UpstreamSubscriber,
  ): SharedSubscription | { readonly limitSize: number }
  readonly size: number
}

export type UpstreamSubscriptionsDeps = {
  readonly upstreams: Pick<Upstreams, 'of'>
  readonly clock: Clock
  readonly random: Random
  /** Gateway threads of the process, which share its bounds; 1 where it is missing. */
  readonly threads?: number | undefined
  /** Memory limit of the process; none where it is missing. */
  readonly residentBytesMax?: number | undefined
}

/** From this share in use on, the upstream subscriptions that shared nodes take are scarce: */
const SCARCE_SHARE = 3 / 4
/** then one subscription creates no more than this share of them. */
const OWNER_SHARE = 1 / 2

export function createUpstreamSubscriptions(deps: UpstreamSubscriptionsDeps): UpstreamSubscriptions {
  const { upstreams, threads = 1 } = deps
  const upstreamSubscriptions = new Set<UpstreamSubscription>()
  const shared = new Map<string, UpstreamSubscription>()
  /** At shared nodes, by the subscription whose client was the first. */
  const createdBy = new Map<string, number>()
  let createdAtShared = 0
  const catchUp = createCatchUp(deps.clock, threads)
  const deliveries = createDeliveries(deps.clock, { bytesMax: waitingBytesMaxOf(deps) })

  function forgetOne(creator: string): void {
    createdAtShared -= 1
    const left = (createdBy.get(creator) ?? 1) - 1
    if (left > 0) createdBy.set(creator, left)
    else createdBy.delete(creator)
  }

  return {
    join({ nodeUser, kind, params }, subscriber) {
      // A subscription with dedicated nodes shares nothing with others.
      const owner = upstreams.of(nodeUser) === upstreams.of(undefined) ? undefined : nodeUser
      const canonical = canonicalParams(params)
      // Params that nodes may read differently are forwarded as they are, and not shared.
      const key = canonical === undefined ? undefined : `${owner?.subscriptionId ?? ''} ${kind} ${canonical}`
      const existing = key === undefined ? undefined : shared.get(key)
      const creator = owner === undefined ? nodeUser.subscriptionId : undefined
      const { subscriptionsMax } = upstreams.of(nodeUser).ws
      const limitSize = Math.ceil(subscriptionsMax * OWNER_SHARE)
      if (existing === undefined && creator !== undefined) {
        const created = createdBy.get(creator) ?? 0
        // Without nodes there is nothing to share.
        const isScarce = limitSize > 0 && createdAtShared >= subscriptionsMax * SCARCE_SHARE
        if (isScarce && created >= limitSize) return { limitSize }
        createdBy.set(creator, created + 1)
        createdAtShared += 1
      }
      const upstreamSubscription = existing ?? create(key)
      upstreamSubscription.join(subscriber)
      return upstreamSubscription

      function create(key: string | undefined): UpstreamSubscription {
        const created: UpstreamSubscription = new UpstreamSubscription(
          { owner, kind, params: canonical ?? params ?? '[]' },
          {
            ...deps,
            catchUp,
            deliveries,
            onEnd() {
              upstreamSubscriptions.delete(created)
              if (creator !== undefined) forgetOne(creator)
              if (key !== undefined && shared.get(key) === created) shared.delete(key)
            },
          },
        )
        upstreamSubscriptions.add(created)
        if (key !== undefined) shared.set(key, created)
        return created
      }
    },
    get size() {
      return upstreamSubscriptions.size
    },
  }
}
