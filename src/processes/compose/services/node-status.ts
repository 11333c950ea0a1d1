import type { NodeState } from '../../../contract/node-states.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'

/** The higher the worse. */
const STATE_SEVERITY: Readonly<Record<NodeState, number>> = { healthy: 0, drained: 1, lagging: 2, failing: 3 }
const BREAKER_SEVERITY: Readonly<Record<NodeStatus['breaker'], number>> = { closed: 0, 'half-open': 1, open: 2 }

/**
 * The nodes over all threads. Each thread has its own connections and its own view: calls and connections are added up, of the state and the circuit
 * breaker the worst is shown, because some calls see it.
 */
export function mergeNodeStatus(
  own: readonly NodeStatus[],
  threads: readonly (readonly NodeStatus[])[],
): readonly NodeStatus[] {
  const merged = new Map(own.map((node) => [keyOf(node), node]))
  for (const node of threads.flat()) {
    const known = merged.get(keyOf(node))
    // A node that the control plane does not know any more is about to leave the thread too.
    if (known !== undefined) merged.set(keyOf(node), mergeTwo(known, node))
  }
  return [...merged.values()]
}

function mergeTwo(a: NodeStatus, b: NodeStatus): NodeStatus {
  const worse = STATE_SEVERITY[b.state] > STATE_SEVERITY[a.state] ? b : a
  return {
    name: a.name,
    owner: a.owner,
    state: worse.state,
    reason: worse.reason,
    slot: Math.max(a.slot, b.slot),
    lagSlots: Math.max(a.lagSlots, b.lagSlots),
    latencyMs: b.latencyMs === null ? a.latencyMs : Math.max(a.latencyMs ?? 0, b.latencyMs),
    breaker: BREAKER_SEVERITY[b.breaker] > BREAKER_SEVERITY[a.breaker] ? b.breaker : a.breaker,
    callsInFlight: a.callsInFlight + b.callsInFlight,
    recentCalls: a.recentCalls + b.recentCalls,
    recentFailures: a.recentFailures + b.recentFailures,
    wsConnections: a.wsConnections + b.wsConnections,
    wsSubscriptions: a.wsSubscriptions + b.wsSubscriptions,
    grpcStreams: a.grpcStreams + b.grpcStreams,
  }
}

function keyOf({ name, owner }: NodeStatus): string {
  return `${owner ?? ''} ${name}`
}
