import type { LoadedConfig } from '../../../platform/config/file.ts'
import type { StateFolder } from '../../../platform/files/state-folder.ts'
import type { ListenerMetrics } from '../../../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import type { RefusalRecorder } from '../../../platform/telemetry/refusal-log.ts'
import type { Config } from '../config/config.ts'
import type { Settings } from '../config/settings.ts'
import type { Documents } from '../documents/documents.ts'

/** The part of the settings that services use: plain data, which can be posted to a thread. */
export type ServiceSettings = Pick<Settings, 'config' | 'stateDir'> & {
  readonly loaded: Pick<LoadedConfig<Config>, 'folder' | 'file'>
}

/** What a service is given, in a process of its own or in a thread. `Listener` names the TCP listeners whose connections are counted. */
export type ServiceContext<Listener extends string> = BaseDeps & {
  readonly env: NodeJS.ProcessEnv
  readonly state: StateFolder
  readonly registry: MetricsRegistry
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  /** Refused requests of all services, for `sluice logs tail --request`. */
  readonly refusals: RefusalRecorder
  readonly listenerMetrics: (listener: Listener) => ListenerMetrics
  readonly documents: Pick<Documents, 'files' | 'docsUrlOf'>
}
