import type { Lifecycle } from '../../platform/process/lifecycle.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { UpstreamsMetrics } from '../metrics.ts'
import type { Member } from './members.ts'
import type { Pool } from './pool.ts'

export type PoolReportDeps = {
  readonly metrics: UpstreamsMetrics
  /** Notified when the shared nodes are down or lag. */
  readonly lifecycle?: Pick<Lifecycle, 'degraded' | 'recovered'> | undefined
}

/** Reports slots, lag and state of all nodes of the pool; of the shared pool also whether it can serve. */
export function reportPool(pool: Pool, { metrics, lifecycle }: PoolReportDeps): void {
  for (const node of pool.nodes) {
    const { health } = metrics.of(node.label)
    health?.slot.set(node.health.slot)
    health?.lag.set(node.health.lagSlots)
    health?.lagSeconds.set(node.health.lagMs / 1000)
    health?.state(node.state().state)
  }
  if (pool.owner !== undefined || pool.nodes.length === 0) return
  const canServe = pool.nodes.some(
    ({ isDrained, isSilent, breaker }) => !isDrained && !isSilent && breaker.state === 'closed',
  )
  if (!canServe) lifecycle?.degraded('upstreams', 'no node can take calls')
  else if (isWsDown(pool)) lifecycle?.degraded('upstreams', 'no node takes WebSocket connections')
  else if (pool.slotsBehind !== undefined) lifecycle?.degraded('upstreams', 'all available nodes lag')
  else lifecycle?.recovered('upstreams')
}

/** No node that serves WebSocket takes connections. */
export function isWsDown({ nodes }: Pool): boolean {
  const serving = nodes.filter(({ ws, isDrained }) => ws !== undefined && !isDrained)
  return serving.length > 0 && serving.every((node) => node.isWsDown)
}

/** Logs that a node fails, or works again. */
export function logFailing(member: Member, log: Logger): void {
  const { node, wasFailing } = member
  const isFailing = node.breaker.state !== 'closed' || node.isSilent
  if (isFailing === wasFailing) return
  member.wasFailing = isFailing
  if (isFailing) log.warn({ upstream: node.name, reason: node.lastFailure }, 'upstream is failing')
  else log.info({ upstream: node.name }, 'upstream works again')
}
