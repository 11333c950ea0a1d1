import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import type { FrameTaker } from '../host/shared-frames.ts'
import type { Upstreams } from '../upstreams/service.ts'
import { createCatchUp } from './ws-catch-up.ts'
import { Feed, type FeedHolder } from './ws-feed.ts'
import { type PubSubKind, subscriptionKey } from './ws-request.ts'

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
  const feeds = new Map<string, Feed>()
  const catchUp = createCatchUp()

  return {
    join({ subscriptionId, kind, params }, holder) {
      // Who has nodes of its own shares nothing with others.
      const owner = upstreams.of(subscriptionId) === upstreams.of(undefined) ? undefined : subscriptionId
      const key = `${owner ?? ''} ${subscriptionKey(kind, params)}`
      let feed = feeds.get(key)
      if (feed === undefined) {
        const created: Feed = new Feed(
          { owner, kind, params: params ?? '[]' },
          {
            ...deps,
            catchUp,
            onOver() {
              if (feeds.get(key) === created) feeds.delete(key)
            },
          },
        )
        feeds.set(key, created)
        feed = created
      }
      const joined = feed
      joined.join(holder)
      return { deliverTo: (taker) => joined.share(holder, taker), leave: () => joined.leave(holder) }
    },
    get size() {
      return feeds.size
    },
  }
}
