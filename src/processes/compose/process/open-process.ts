import { takeInstanceLock } from '../../../platform/files/instance-lock.ts'
import { openStateFolder, type StateFolder } from '../../../platform/files/state-folder.ts'
import { createListenerMetrics, type ListenerMetrics } from '../../../platform/net/listener-metrics.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import type { ConfigPart } from '../config/config.ts'
import { refuseFaults } from '../config/faults.ts'
import type { Settings } from '../config/settings.ts'
import { VERSION } from './version.ts'

export type OpenedProcess<Server extends string> = AsyncDisposable & {
  readonly state: StateFolder
  readonly registry: MetricsRegistry
  readonly listenerMetrics: (server: Server) => ListenerMetrics
}

/**
 * What every process that serves begins with, before it opens a port: the parts of the configuration that it uses are right, the state folder is its
 * own, and what its doors do is counted.
 */
export async function openProcess<const Endpoint extends string>(
  settings: Settings,
  { env, parts, servers }: { env: NodeJS.ProcessEnv; parts: readonly ConfigPart[]; servers: readonly Endpoint[] },
): Promise<OpenedProcess<Endpoint>> {
  await refuseFaults(settings, { env, parts })
  await using opening = new AsyncDisposableStack()
  const state = await openStateFolder(settings.stateDir)
  opening.use(takeInstanceLock(state))
  const registry = opening.use(createMetricsRegistry({ processMetrics: true, build: { version: VERSION } }))
  const opened = opening.move()
  return {
    state,
    registry,
    listenerMetrics: createListenerMetrics(registry, servers),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
