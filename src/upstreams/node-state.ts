import type { UpstreamNode } from './node.ts'

/** What the operator sees of it. */
export function stateOf(node: UpstreamNode): ReturnType<UpstreamNode['state']> {
  const { health } = node
  if (node.isDrained) return { state: 'drained', reason: 'by the operator' }
  if (node.breaker.state !== 'closed' || node.isSilent) return { state: 'failing', reason: node.lastFailure }
  if (health.lagReason === 'behind-best')
    return { state: 'lagging', reason: `${health.lagSlots} slots behind the best` }
  if (health.lagReason === 'ahead-of-all') {
    return { state: 'lagging', reason: `its slot ${health.slot} is far above those of all other nodes` }
  }
  if (health.lagReason === 'no-slot') return { state: 'lagging', reason: 'it responds to getSlot without a slot' }
  if (health.lagReason === 'behind-own-shreds') {
    return { state: 'lagging', reason: `${health.shredSlot - health.slot} slots behind its own shreds` }
  }
  if (node.isWsDown) return { state: 'healthy', reason: 'no WebSocket connection' }
  if (node.breaker.isSuspect)
    return { state: 'healthy', reason: `it fails many calls (${node.lastFailure}), though its probes succeed` }
  return { state: 'healthy', reason: health.slot === 0 ? 'slot not known yet' : '' }
}
