import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { FrameTaker } from '../../platform/net/shared-frames.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import { createCatchUp } from './catch-up.ts'
import { createDeliveries } from './deliveries.ts'
import { canonicalParams, type PubSubKind } from './request.ts'
import { Feed, type FeedHolder } from './upstream-subscription.ts'

/** A share in a feed. */
export type FeedShare = {
  /** Its frames come to the taker from now on. To be called once it was answered. */
  deliverTo(taker: FrameTaker<Buffer>): void
  leave(): void
}

export type Feeds = {
  /** Takes part in the one subscription for all who ask the same nodes for the same. */
  join(
    wanted: { readonly subscriptionId: string; readonly kind: PubSubKind; readonly params: string | undefined },
    holder: FeedHolder,
  ): FeedShare
  readonly size: number
}

export type FeedsDeps = { readonly upstreams: Pick<Upstreams, 'of'>; readonly clock: Clock; readonly random: Random }

export function createFeeds(deps: FeedsDeps): Feeds {
  const { upstreams } = deps
  const feeds = new Set<Feed>()
  const shared = new Map<string, Feed>()
  const catchUp = createCatchUp()
  const deliveries = createDeliveries(deps.clock)

  return {
    join({ subscriptionId, kind, params }, holder) {
      // Who has nodes of its own shares nothing with others.
      const owner = upstreams.of(subscriptionId) === upstreams.of(undefined) ? undefined : subscriptionId
      const canonical = canonicalParams(params)
      // Params that nodes may read differently are forwarded as they are, and for this client alone.
      const key = canonical === undefined ? undefined : `${owner ?? ''} ${kind} ${canonical}`
      const feed = (key === undefined ? undefined : shared.get(key)) ?? create(key)
      feed.join(holder)
      return { deliverTo: (taker) => feed.share(holder, taker), leave: () => feed.leave(holder) }

      function create(key: string | undefined): Feed {
        const created: Feed = new Feed(
          { owner, kind, params: canonical ?? params ?? '[]' },
          {
            ...deps,
            catchUp,
            deliveries,
            onOver() {
              feeds.delete(created)
              if (key !== undefined && shared.get(key) === created) shared.delete(key)
            },
          },
        )
        feeds.add(created)
        if (key !== undefined) shared.set(key, created)
        return created
      }
    },
    get size() {
      return feeds.size
    },
  }
}
