import type { Clock } from '../../core/clock.ts'
import type { UpstreamsMetrics } from '../metrics.ts'
import type { UpstreamNode } from '../node.ts'
import type { ConnectionOptions, HealthOptions } from '../options.ts'
import type { ClientView, Pool } from '../pool/pool.ts'
import { subscribeCounted } from './counted-subscription.ts'
import { openWsLink, type WsLink } from './link.ts'
import type { LinkSubscription, WsSubscribe, WsSubscriptionEvents } from './link-subscriptions.ts'

/** The WebSocket connections to the nodes of a pool, which are added and removed here too. Each node with a WebSocket endpoint has one from the start, which reports its slot. */
export type WsLinks = Disposable & {
  /** Subscribes at the best available node but the one of the name `except`; undefined where there is none. Events never come before this returns. */
  subscribe(
    request: WsSubscribe,
    events: WsSubscriptionEvents,
    options?: { readonly view?: ClientView | undefined; readonly except?: string | undefined },
  ): LinkSubscription | undefined
  /** Opens a first connection to a node that was added to the pool. */
  add(node: UpstreamNode): void
  /** Closes all connections to a node; its subscriptions get `onLost`. */
  leave(node: UpstreamNode): void
  /** The same, and opens no more. */
  remove(node: UpstreamNode): void
  /** Subscriptions that all nodes together take from this thread. */
  readonly subscriptionsMax: number
  countOf(node: UpstreamNode): { readonly connections: number; readonly subscriptions: number }
}

export type WsLinksDeps = {
  readonly clock: Clock
  readonly metrics: UpstreamsMetrics
  readonly ca?: string | undefined
  readonly slotMs: () => number
  /** A node announced a new slot. */
  readonly onSlot: (node: UpstreamNode) => void
}

/** How often nodes without a connection are checked; the backoff decides whether one is opened. */
const REOPEN_MS = 100

export function createWsLinks(
  pool: Pool,
  options: { readonly connections: ConnectionOptions; readonly health: HealthOptions },
  { clock, metrics, ca, slotMs, onSlot }: WsLinksDeps,
): WsLinks {
  const links = new Map<UpstreamNode, Set<WsLink>>()
  let isClosed = false

  function open(node: UpstreamNode): WsLink | undefined {
    const { ws: endpoint } = node
    const ofNode = links.get(node)
    if (endpoint === undefined || ofNode === undefined || isClosed) return undefined
    const link = openWsLink({
      nodeName: node.name,
      endpoint,
      clock,
      meter: metrics.of(node.label),
      ca,
      stallMs: options.health.stallMs,
      onSlot(slot) {
        if (node.health.recordSlot(slot)) onSlot(node)
      },
      bestSlot: () => pool.bestSlot,
      slotMs,
      onOpen: () => updateIsUp(node),
      onLost: (reason) => {
        node.openStreams.remove('ws', link.size)
        ofNode.delete(link)
        updateIsUp(node, reason === 'connect' || reason === 'protocol')
      },
    })
    ofNode.add(link)
    return link
  }

  function updateIsUp(node: UpstreamNode, hasFailed = false): void {
    node.setWs({ isUp: [...(links.get(node) ?? [])].some(({ state }) => state === 'open'), hasFailed })
  }

  /** Before any connection is open, a node that is being connected to is better than none. */
  function connectingNode(...except: (UpstreamNode | undefined)[]): UpstreamNode | undefined {
    let least: UpstreamNode | undefined
    for (const [node, ofNode] of links) {
      if (except.includes(node) || node.isWsUp || ofNode.size === 0 || node.isDrained) continue
      if (least === undefined || node.openStreams.ws < least.openStreams.ws) least = node
    }
    return least
  }

  function linkFor(node: UpstreamNode): WsLink | undefined {
    let best: WsLink | undefined
    let leastSize = options.connections.wsSubscriptionsMax
    const ofNode = links.get(node) ?? new Set()
    for (const link of ofNode) {
      if (link.sizeAtNode >= leastSize) continue
      best = link
      leastSize = link.sizeAtNode
    }
    if (best !== undefined || ofNode.size >= options.connections.wsPerNodeMax) return best
    return open(node)
  }

  const reopen = () => {
    for (const [node, ofNode] of links) {
      if (ofNode.size === 0 && !node.isDrained && node.ws?.backoff.isActive === false) open(node)
    }
  }
  const timer = clock.setRepeating(REOPEN_MS, reopen)
  timer.unref?.()

  function leave(node: UpstreamNode): void {
    for (const link of [...(links.get(node) ?? [])]) link.cut('closed')
  }

  function subscribeAt(
    node: UpstreamNode,
    request: WsSubscribe,
    events: WsSubscriptionEvents,
  ): LinkSubscription | undefined {
    const link = linkFor(node)
    return link && subscribeCounted({ node, link, clock }, request, events)
  }

  return {
    subscribe(request, events, { view, except: name } = {}) {
      const except = name === undefined ? undefined : pool.nodes.find((node) => node.name === name)
      const first = pool.pick('ws', view, except) ?? connectingNode(except)
      const subscription = first && subscribeAt(first, request, events)
      if (subscription !== undefined || first === undefined) return subscription
      // The first node has reached its limits.
      const second = pool.pick('ws', view, first) ?? connectingNode(first, except)
      return second && second !== except ? subscribeAt(second, request, events) : undefined
    },
    add(node) {
      if (node.ws === undefined) return
      links.set(node, new Set())
      open(node)
    },
    leave,
    remove(node) {
      leave(node)
      links.delete(node)
    },
    get subscriptionsMax() {
      const { wsPerNodeMax, wsSubscriptionsMax } = options.connections
      const taking = [...links.keys()].filter(({ isWsUp, isDrained }) => isWsUp && !isDrained)
      return taking.length * wsPerNodeMax * wsSubscriptionsMax
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
