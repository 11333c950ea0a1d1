import type { NodeUser } from '../../contract/products.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import { createCatchUp } from './catch-up.ts'
import { createDeliveries, WAITING_BYTES_MAX } from './deliveries.ts'
import { canonicalParams, type PubSubKind } from './request.ts'
import { type UpstreamSubscriber, UpstreamSubscription } from './upstream-subscription.ts'

/** What a client needs of the upstream subscription that it has joined. */
export type SharedSubscription = Pick<UpstreamSubscription, 'share' | 'leave'>

export type UpstreamSubscriptions = {
  /** Joins the upstream subscription that all clients of the same nodes with the same params share. */
  join(
    topic: { readonly nodeUser: NodeUser; readonly kind: PubSubKind; readonly params: string | undefined },
    subscriber: UpstreamSubscriber,
  ): SharedSubscription
  readonly size: number
}

export type UpstreamSubscriptionsDeps = {
  readonly upstreams: Pick<Upstreams, 'of'>
  readonly clock: Clock
  readonly random: Random
  /** Gateway threads of the process, which share its bounds; 1 where it is missing. */
  readonly threads?: number | undefined
}

export function createUpstreamSubscriptions(deps: UpstreamSubscriptionsDeps): UpstreamSubscriptions {
  const { upstreams, threads = 1 } = deps
  const upstreamSubscriptions = new Set<UpstreamSubscription>()
  const shared = new Map<string, UpstreamSubscription>()
  const catchUp = createCatchUp(deps.clock, threads)
  const deliveries = createDeliveries(deps.clock, { bytesMax: WAITING_BYTES_MAX / threads })

  return {
    join({ nodeUser, kind, params }, subscriber) {
      // A subscription with dedicated nodes shares nothing with others.
      const owner = upstreams.of(nodeUser) === upstreams.of(undefined) ? undefined : nodeUser
      const canonical = canonicalParams(params)
      // Params that nodes may read differently are forwarded as they are, and not shared.
      const key = canonical === undefined ? undefined : `${owner?.subscriptionId ?? ''} ${kind} ${canonical}`
      const upstreamSubscription = (key === undefined ? undefined : shared.get(key)) ?? create(key)
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
