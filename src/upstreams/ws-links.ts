import type { Clock } from '../core/clock.ts'
import type { LossReason, UpstreamsMetrics } from './metrics.ts'
import type { UpstreamNode } from './node.ts'
import type { ConnectionOptions, HealthOptions } from './options.ts'
import type { ClientView, Pool } from './pool.ts'
import {
  openWsLink,
  type WsLink,
  type WsSubscribe,
  type WsSubscriptionEvents,
  type WsUpstreamSubscription,
} from './ws-link.ts'

/** The WebSocket connections to all nodes of a pool. Each node with a door has one from the start, which tells its slot. */
export type WsLinks = Disposable & {
  /** On the best node that can take it; undefined when none can. Events come later, never before this returns. */
  subscribe(
    wanted: WsSubscribe,
    events: WsSubscriptionEvents,
    on?: { readonly view?: ClientView | undefined; readonly except?: UpstreamNode | undefined },
  ): WsUpstreamSubscription | undefined
  /** Moves everything off a node: its subscriptions are told that they are lost. */
  leave(node: UpstreamNode): void
  countOf(node: UpstreamNode): { readonly connections: number; readonly subscriptions: number }
}

export type WsLinksDeps = {
  readonly clock: Clock
  readonly metrics: UpstreamsMetrics
  readonly ca?: string | undefined
}

/** How often a node without a connection is looked at; its gate decides whether it is tried. */
const REOPEN_MS = 100

export function createWsLinks(
  pool: Pool,
  options: { readonly connections: ConnectionOptions; readonly health: HealthOptions },
  { clock, metrics, ca }: WsLinksDeps,
): WsLinks {
  const links = new Map<UpstreamNode, Set<WsLink>>(
    pool.nodes.filter(({ ws }) => ws !== undefined).map((node) => [node, new Set()]),
  )
  let isClosed = false

  function open(node: UpstreamNode): WsLink | undefined {
    const { ws: server } = node
    const ofNode = links.get(node)
    if (server === undefined || ofNode === undefined || isClosed) return undefined
    const link = openWsLink({
      upstream: node.name,
      server,
      clock,
      meter: metrics.of(node.label),
      ca,
      stallMs: options.health.stallMs,
      onSlot(slot) {
        if (node.health.sawSlot(slot)) pool.assess()
      },
      bestSlot: () => pool.bestSlot,
      onOpen: () => setUp(node),
      onLost: () => {
        node.open.ws -= link.size
        ofNode.delete(link)
        setUp(node)
      },
    })
    ofNode.add(link)
    return link
  }

  function setUp(node: UpstreamNode): void {
    node.isWsUp = [...(links.get(node) ?? [])].some(({ state }) => state === 'open')
  }

  /** Before the first connection stands, a node that is being connected to is better than none. */
  function connectingNode(...except: (UpstreamNode | undefined)[]): UpstreamNode | undefined {
    let least: UpstreamNode | undefined
    for (const [node, ofNode] of links) {
      if (except.includes(node) || node.isWsUp || ofNode.size === 0 || node.isDrained) continue
      if (least === undefined || node.open.ws < least.open.ws) least = node
    }
    return least
  }

  function linkFor(node: UpstreamNode): WsLink | undefined {
    let best: WsLink | undefined
    const ofNode = links.get(node) ?? new Set()
    for (const link of ofNode) {
      if (link.size < options.connections.wsSubscriptionsMax && (best === undefined || link.size < best.size))
        best = link
    }
    if (best !== undefined || ofNode.size >= options.connections.wsPerNodeMax) return best
    return open(node)
  }

  const reopen = () => {
    for (const [node, ofNode] of links) {
      if (ofNode.size === 0 && !node.isDrained && node.ws?.backoff.isShut === false) open(node)
    }
  }
  const timer = clock.setRepeating(REOPEN_MS, reopen)
  timer.unref?.()
  reopen()

  function takeOn(
    node: UpstreamNode,
    wanted: WsSubscribe,
    events: WsSubscriptionEvents,
  ): WsUpstreamSubscription | undefined {
    const link = linkFor(node)
    if (link === undefined) return undefined
    node.open.ws += 1
    let isCounted = true
    const uncount = () => {
      if (isCounted) node.open.ws -= 1
      isCounted = false
    }
    const subscription = link.subscribe(wanted, {
      ...events,
      onRefused(response) {
        uncount()
        events.onRefused(response)
      },
      // The link has taken all of its subscriptions off the count.
      onLost(reason: LossReason) {
        isCounted = false
        events.onLost(reason)
      },
    })
    return {
      upstream: subscription.upstream,
      get isSent() {
        return subscription.isSent
      },
      close(isOver) {
        uncount()
        subscription.close(isOver)
      },
    }
  }

  return {
    subscribe(wanted, events, { view, except } = {}) {
      const first = pool.pick('ws', view, except) ?? connectingNode(except)
      const taken = first && takeOn(first, wanted, events)
      if (taken !== undefined || first === undefined) return taken
      // The first has no room left.
      const second = pool.pick('ws', view, first) ?? connectingNode(first, except)
      return second && second !== except ? takeOn(second, wanted, events) : undefined
    },
    leave(node) {
      for (const link of [...(links.get(node) ?? [])]) link.cut('closed')
    },
    countOf(node) {
      const ofNode = [...(links.get(node) ?? [])].filter(({ state }) => state === 'open')
      return { connections: ofNode.length, subscriptions: ofNode.reduce((sum, { size }) => sum + size, 0) }
    },
    [Symbol.dispose]() {
      isClosed = true
      timer.cancel()
      for (const ofNode of links.values()) for (const link of [...ofNode]) link.cut('closed')
    },
  }
}
