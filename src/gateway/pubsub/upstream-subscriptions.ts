import type { NodeUser } from '../../contract/products.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import { createCatchUp } from './catch-up.ts'
import { createDeliveries, waitingBytesMaxOf } from './deliveries.ts'
import { canonicalParams, type PubSubKind } from './request.ts'
import { UpstreamCharge, UpstreamCharges } from './upstream-charges.ts'
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
  readonly upstreams: Pick<Upstreams, 'of' | 'shared' | 'usesShared'>
  readonly clock: Clock
  readonly random: Random
  /** Gateway threads of the process, which share its bounds; 1 where it is missing. */
  readonly threads?: number | undefined
  /** Memory limit of the process; none where it is missing. */
  readonly residentBytesMax?: number | undefined
}

/** From this share in use on, the upstream subscriptions that shared nodes take are scarce. */
const SCARCE_SHARE = 3 / 4
/** While they are scarce, one subscription creates no more than this share of them. */
const SUBSCRIPTION_SHARE = 1 / 2

export function createUpstreamSubscriptions(deps: UpstreamSubscriptionsDeps): UpstreamSubscriptions {
  const { upstreams, threads = 1 } = deps
  /** With the charge for each at shared nodes. */
  const upstreamSubscriptions = new Map<UpstreamSubscription, UpstreamCharge | undefined>()
  const shared = new Map<string, UpstreamSubscription>()
  const charges = new UpstreamCharges()
  const catchUp = createCatchUp(deps.clock, threads)
  const deliveries = createDeliveries(deps.clock, { bytesMax: waitingBytesMaxOf(deps) })

  return {
    join({ nodeUser, kind, params }, subscriber) {
      // A subscription with dedicated nodes shares nothing with others.
      const dedicatedTo = upstreams.usesShared(nodeUser) ? undefined : nodeUser
      const canonical = canonicalParams(params)
      // Params that nodes may read differently are forwarded as they are, and not shared.
      const key = canonical === undefined ? undefined : `${dedicatedTo?.subscriptionId ?? ''} ${kind} ${canonical}`
      const existing = key === undefined ? undefined : shared.get(key)
      if (existing === undefined && dedicatedTo === undefined) {
        const { subscriptionsMax } = upstreams.shared.ws
        const limitSize = Math.ceil(subscriptionsMax * SUBSCRIPTION_SHARE)
        // Without nodes there is nothing to share.
        const isScarce = limitSize > 0 && charges.total >= subscriptionsMax * SCARCE_SHARE
        if (isScarce && charges.of(subscriber.subscriptionId) >= limitSize) return { limitSize }
      }
      const upstreamSubscription = existing ?? create(key)
      upstreamSubscriptions.get(upstreamSubscription)?.join(subscriber.subscriptionId)
      upstreamSubscription.join(subscriber)
      return upstreamSubscription

      function create(key: string | undefined): UpstreamSubscription {
        const charge = dedicatedTo === undefined ? new UpstreamCharge(charges) : undefined
        const created: UpstreamSubscription = new UpstreamSubscription(
          { dedicatedTo, kind, params: canonical ?? params ?? '[]' },
          {
            ...deps,
            catchUp,
            deliveries,
            onLeave: (left) => charge?.leave(left.subscriptionId),
            onEnd() {
              upstreamSubscriptions.delete(created)
              charge?.end()
              if (key !== undefined && shared.get(key) === created) shared.delete(key)
            },
          },
        )
        upstreamSubscriptions.set(created, charge)
        if (key !== undefined) shared.set(key, created)
        return created
      }
    },
    get size() {
      return upstreamSubscriptions.size
    },
  }
}
