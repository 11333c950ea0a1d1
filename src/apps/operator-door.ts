import { isExecutionMetric } from '../contract/execution-routes.ts'
import type { Clock } from '../core/clock.ts'
import type { HttpServer } from '../host/http-server.ts'
import type { Lifecycle } from '../host/lifecycle.ts'
import type { DoorMetrics } from '../host/listener-metrics.ts'
import type { MetricsRegistry } from '../host/metrics-registry.ts'
import { startOperatorListener } from '../host/operator-listener.ts'
import { resolveSecret } from '../host/secret-ref.ts'
import type { Settings } from './commands/settings.ts'
import type { Deps } from './deps.ts'
import { listenerOf } from './listener-of.ts'

export type OperatorDoorDeps = Omit<Deps, 'random'> & {
  readonly registry: MetricsRegistry
  readonly lifecycle: Lifecycle
  readonly doorMetrics: DoorMetrics
}

/** Metrics and health of this process for the operator, as `metrics` in the configuration says. */
export async function openOperatorDoor(
  { config, loaded: { folder } }: Pick<Settings, 'config' | 'loaded'>,
  { log, clock, env, registry, lifecycle, doorMetrics }: OperatorDoorDeps,
): Promise<HttpServer> {
  const bearer = config.metrics.bearer && (await resolveSecret(config.metrics.bearer, { env, folder }))
  return startOperatorListener(
    { listen: listenerOf(config.metrics, folder), hosts: config.metrics.hosts, ...(bearer ? { bearer } : {}) },
    {
      log: log.child({ part: 'operator' }),
      registry,
      isShown: (name) => !isExecutionMetric(name),
      health: lifecycle.health,
      clock,
      ...doorMetrics,
    },
  )
}

/** The control socket's answer to `sluice drain`. */
export function drainMethod(lifecycle: Lifecycle, clock: Clock): () => { draining: true } {
  return () => {
    // In the next turn, so that this answer is on its way before its socket closes.
    clock.setTimer(0, () => lifecycle.stop('sluice drain'))
    return { draining: true }
  }
}
