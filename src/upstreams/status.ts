import type { NodeState } from '../contract/node-states.ts'
import type { BreakerState } from './breaker.ts'
import type { UpstreamNode } from './node.ts'
import type { WsLinks } from './ws/links.ts'

/** One node for the operator, without address and credential. */
export type NodeStatus = {
  readonly name: string
  /** The subscription it belongs to; null for a shared one. */
  readonly owner: string | null
  readonly state: NodeState
  readonly reason: string
  readonly slot: number
  readonly lagSlots: number
  readonly latencyMs: number | null
  readonly breaker: BreakerState
  readonly callsInFlight: number
  /** Calls of the last ten seconds. */
  readonly recentCalls: number
  readonly recentFailures: number
  readonly wsConnections: number
  readonly wsSubscriptions: number
  readonly grpcStreams: number
}

export function statusOf(node: UpstreamNode, owner: string | undefined, { ws }: { readonly ws: WsLinks }): NodeStatus {
  const { state, reason } = node.state()
  const { calls, failures } = node.breaker.recent()
  const { connections, subscriptions } = ws.countOf(node)
  return {
    name: node.name,
    owner: owner ?? null,
    state,
    reason,
    slot: node.health.slot,
    lagSlots: node.health.lagSlots,
    latencyMs: node.latencyMs === undefined ? null : Math.round(node.latencyMs * 10) / 10,
    breaker: node.breaker.state,
    callsInFlight: node.http?.inFlight ?? 0,
    recentCalls: calls,
    recentFailures: failures,
    wsConnections: connections,
    wsSubscriptions: subscriptions,
    grpcStreams: node.openStreams.grpc,
  }
}

/** A dedicated node whose address or credential cannot be used. */
export function unusableStatus(
  { name, reason }: { readonly name: string; readonly reason: string },
  owner: string,
): NodeStatus {
  return {
    name,
    owner,
    state: 'failing',
    reason,
    slot: 0,
    lagSlots: 0,
    latencyMs: null,
    breaker: 'closed',
    callsInFlight: 0,
    recentCalls: 0,
    recentFailures: 0,
    wsConnections: 0,
    wsSubscriptions: 0,
    grpcStreams: 0,
  }
}
