import type { Clock } from '../../core/clock.ts'
import type { LossReason } from '../metrics.ts'
import type { UpstreamNode } from '../node.ts'
import { recordAcceptance } from './acceptance.ts'
import type { WsLink } from './link.ts'
import type { LinkSubscription, WsSubscribe, WsSubscriptionEvents } from './link-subscriptions.ts'

/** Subscribes on a connection, counts the subscription at its node, and records whether the node accepts it. */
export function subscribeCounted(
  { node, link, clock }: { readonly node: UpstreamNode; readonly link: WsLink; readonly clock: Clock },
  request: WsSubscribe,
  events: WsSubscriptionEvents,
): LinkSubscription {
  const acceptance = recordAcceptance(node.ws?.refusals, clock)
  node.openStreams.add('ws')
  let isCounted = true
  const uncount = () => {
    if (isCounted) node.openStreams.remove('ws')
    isCounted = false
  }
  const subscription = link.subscribe(request, {
    ...events,
    onReady() {
      acceptance.accepted()
      events.onReady()
    },
    onRefused(response) {
      acceptance.refused(response)
      uncount()
      events.onRefused(response)
    },
    // The link has subtracted all of its subscriptions already.
    onLost(reason: LossReason) {
      isCounted = false
      events.onLost(reason)
    },
  })
  return {
    nodeName: subscription.nodeName,
    get isSent() {
      return subscription.isSent
    },
    close(isEndedByNode) {
      uncount()
      if (subscription.sentAtMs !== undefined) acceptance.closed(subscription.sentAtMs)
      subscription.close(isEndedByNode)
    },
  }
}
