import { startDiskWatch } from '../../../platform/files/disk-watch.ts'
import { takeInstanceLock } from '../../../platform/files/instance-lock.ts'
import { openStateFolder } from '../../../platform/files/state-folder.ts'
import { createListenerMetrics } from '../../../platform/net/listener-metrics.ts'
import { createLifecycle, type Lifecycle, type LifecycleOptions } from '../../../platform/process/lifecycle.ts'
import { createProcessRegistry } from '../../../platform/telemetry/process-metrics.ts'
import { createRefusalLog, type RefusalLog } from '../../../platform/telemetry/refusal-log.ts'
import { type ConfigSection, FORMER_KEYS } from '../config/config.ts'
import { assertValidConfig } from '../config/faults.ts'
import type { Settings } from '../config/settings.ts'
import { createDocuments, type Documents } from '../documents/documents.ts'
import type { Deps } from './deps.ts'
import { lastBackupMs } from './last-backup.ts'
import { type MetricsListener, openMetricsListener } from './metrics-listener.ts'
import { processHealthMetrics } from './process-health-metrics.ts'
import type { ServiceContext } from './service-context.ts'
import { VERSION } from './version.ts'

/** The context of the control plane: a `ServiceContext` with the full lifecycle, the refusal log, the documents and the metrics listener. */
export type ProcessContext<Listener extends string> = Deps &
  ServiceContext<Listener> & {
    readonly lifecycle: Lifecycle
    readonly refusals: RefusalLog
    readonly documents: Documents
    readonly metricsListener: MetricsListener
  }

export type ProcessOptions<Listener extends string> = {
  /** The sections of the configuration that this process uses; only these are checked. */
  readonly sections: readonly ConfigSection[]
  /** Besides that of `metrics`. */
  readonly listeners: readonly Listener[]
  readonly drain: LifecycleOptions
}

/** The first step of every process: checks its part of the configuration, locks the state folder, then opens the listener for metrics and health. */
export async function openProcess<const Listener extends string>(
  settings: Settings,
  deps: Deps,
  { sections, listeners, drain }: ProcessOptions<Listener>,
): Promise<ProcessContext<Listener> & AsyncDisposable> {
  await assertValidConfig(settings, { env: deps.env, sections })
  for (const [key, name] of FORMER_KEYS)
    if (settings.loaded.originOf(key.split('.')).from !== 'default')
      deps.log.warn({ key, name }, 'a configuration key has its former name, which is accepted until 0.2')
  await using opening = new AsyncDisposableStack()
  const state = await openStateFolder(settings.stateDir)
  opening.use(takeInstanceLock(state))
  const registry = opening.use(createProcessRegistry({ build: { version: VERSION } }))
  const lifecycle = createLifecycle(drain, deps)
  processHealthMetrics(registry, {
    degraded: () => lifecycle.health().reasons.length,
    lastBackupMs: () => lastBackupMs(state.path),
  })
  opening.use(await startDiskWatch(state.path, { clock: deps.clock, registry, lifecycle }))
  const listenerMetrics = createListenerMetrics(registry, ['metrics', ...listeners], lifecycle)
  const connections = listenerMetrics('metrics')
  const metricsListener = opening.use(
    await openMetricsListener(settings, { ...deps, registry, lifecycle, connections }),
  )
  const opened = opening.move()
  return {
    ...deps,
    state,
    registry,
    lifecycle,
    refusals: createRefusalLog(deps),
    listenerMetrics,
    documents: createDocuments(),
    metricsListener,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
