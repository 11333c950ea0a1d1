import { isExecutionMetric } from '../../../contract/execution-routes.ts'
import type { Clock } from '../../../core/clock.ts'
import { resolveSecret } from '../../../platform/config/secret-ref.ts'
import { startOperatorListener } from '../../../platform/http/server/operator-listener.ts'
import type { HttpServer } from '../../../platform/http/server/server.ts'
import type { ListenerMetrics } from '../../../platform/net/listener-metrics.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import { listenerOf } from '../config/listener.ts'
import type { Settings } from '../config/settings.ts'
import type { Deps } from './deps.ts'

export type OperatorServerDeps = Omit<Deps, 'random'> & {
  readonly registry: MetricsRegistry
  readonly lifecycle: Lifecycle
  readonly listenerMetrics: ListenerMetrics
}

/** Metrics and health of this process for the operator, as `metrics` in the configuration says. */
export async function openOperatorServer(
  { config, loaded: { folder } }: Pick<Settings, 'config' | 'loaded'>,
  { log, clock, env, registry, lifecycle, listenerMetrics }: OperatorServerDeps,
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
      ...listenerMetrics,
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
