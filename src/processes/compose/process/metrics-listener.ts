import { isExecutionMetric } from '../../../contract/execution-routes.ts'
import { resolveSecret } from '../../../platform/config/secret-ref.ts'
import { startOperatorListener } from '../../../platform/http/server/operator-listener.ts'
import type { HttpServer } from '../../../platform/http/server/server.ts'
import type { ListenerMetrics } from '../../../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import type { MetricsView } from '../../../platform/telemetry/metrics-view.ts'
import { listenerOf } from '../config/listener.ts'
import type { Settings } from '../config/settings.ts'

/** The listener of the `metrics` section. It is open before the services, so that a start that takes long does not look like a dead process. */
export type MetricsListener = AsyncDisposable &
  Pick<HttpServer, 'address' | 'beginLameDuck'> & {
    /** Serves the metrics of all threads in place of those of main. */
    show(metrics: MetricsView): void
  }

export type MetricsListenerDeps = Pick<BaseDeps, 'log' | 'clock'> & {
  readonly env: NodeJS.ProcessEnv
  readonly registry: MetricsView
  readonly lifecycle: Pick<Lifecycle, 'health'>
  readonly connections: ListenerMetrics
}

/** `/metrics`, `/healthz` and `/readyz`, as the `metrics` section of the configuration sets them up. */
export async function openMetricsListener(
  { config: { metrics }, loaded: { folder } }: Settings,
  { log, clock, env, registry, lifecycle, connections }: MetricsListenerDeps,
): Promise<MetricsListener> {
  let shown = registry
  const bearer = metrics.bearer && (await resolveSecret(metrics.bearer, { env, folder }))
  const server = await startOperatorListener(
    { listen: listenerOf(metrics, folder), hosts: metrics.hosts, ...(bearer ? { bearer } : {}) },
    {
      log: log.child({ part: 'operator' }),
      registry: {
        text: (format, isShown) => shown.text(format, isShown),
        contentType: (format) => shown.contentType(format),
      },
      isShown: (name) => !isExecutionMetric(name),
      health: lifecycle.health,
      clock,
      ...connections,
    },
  )
  return {
    address: server.address,
    beginLameDuck: server.beginLameDuck,
    show(view) {
      shown = view
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
