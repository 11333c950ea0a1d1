import { takeInstanceLock } from '../../../platform/files/instance-lock.ts'
import { openStateFolder, type StateFolder } from '../../../platform/files/state-folder.ts'
import { createListenerMetrics, type DoorMetrics } from '../../../platform/net/listener-metrics.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import type { ConfigPart } from '../config/config.ts'
import { refuseFaults } from '../config/faults.ts'
import type { Settings } from '../config/settings.ts'
import { VERSION } from './version.ts'

export type OpenedProcess<Door extends string> = AsyncDisposable & {
  readonly state: StateFolder
  readonly registry: MetricsRegistry
  readonly doorMetrics: (door: Door) => DoorMetrics
}

/**
 * What every process that serves begins with, before it opens a port: the parts of the configuration that it uses are right, the state folder is its
 * own, and what its doors do is counted.
 */
export async function openProcess<const Door extends string>(
  settings: Settings,
  { env, parts, doors }: { env: NodeJS.ProcessEnv; parts: readonly ConfigPart[]; doors: readonly Door[] },
): Promise<OpenedProcess<Door>> {
  await refuseFaults(settings, { env, parts })
  await using opening = new AsyncDisposableStack()
  const state = await openStateFolder(settings.stateDir)
  opening.use(takeInstanceLock(state))
  const registry = opening.use(createMetricsRegistry({ processMetrics: true, build: { version: VERSION } }))
  const opened = opening.move()
  return {
    state,
    registry,
    doorMetrics: createListenerMetrics(registry, doors),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
