import type { NodeState } from '../../../upstreams/node.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'

/** From the best to the worst. */
const STATES: readonly NodeState[] = ['healthy', 'drained', 'lagging', 'failing']
const BREAKERS: readonly NodeStatus['breaker'][] = ['closed', 'half-open', 'open']

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
  const worse = STATES.indexOf(b.state) > STATES.indexOf(a.state) ? b : a
  return {
    name: a.name,
    owner: a.owner,
    state: worse.state,
    reason: worse.reason,
    slot: Math.max(a.slot, b.slot),
    lagSlots: Math.max(a.lagSlots, b.lagSlots),
    latencyMs: b.latencyMs === null ? a.latencyMs : Math.max(a.latencyMs ?? 0, b.latencyMs),
    breaker: BREAKERS.indexOf(b.breaker) > BREAKERS.indexOf(a.breaker) ? b.breaker : a.breaker,
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
