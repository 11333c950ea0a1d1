import type { Access } from '../access/call-access.ts'
import type { DocsUrl } from '../contract/errors.ts'
import type { ListenerKey } from '../contract/listener-option.ts'
import type { StaticFiles } from '../platform/http/server/static-file.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { Lifecycle } from '../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { RefusalRecorder } from '../platform/telemetry/refusal-log.ts'
import type { BlockArchive } from './archive/archive.ts'
import type { History } from './history/history.ts'
import type { ExecutionMetrics } from './metrics.ts'
import type { ExecutionOptions } from './options.ts'
import type { LastEvent } from './source/last-event.ts'
import type { StartSource } from './source/message.ts'
import type { SeqStore } from './stream/seq-counter.ts'
import type { WsServerOptions } from './stream/ws.ts'

/** The configuration of the service, without what its caller uses to open the listener, the source and the history. */
export type ExecutionSettings = Omit<
  ExecutionOptions,
  ListenerKey | 'enabled' | 'publicUrl' | 'ring' | 'ringStart' | 'ringRead' | 'node' | 'simulated' | 'history'
> & {
  readonly listen: ListenerOptions
  readonly ws?: Pick<WsServerOptions, 'countsLoopback'>
}

export type ExecutionDeps = BaseDeps &
  ListenerMetrics & {
    readonly version: string
    readonly registry: Pick<MetricsRegistry, 'text' | 'contentType'>
    readonly metrics: ExecutionMetrics
    readonly access: Access
    readonly seqStore: SeqStore
    /** Outlives the service. */
    readonly lastEvent: LastEvent
    readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
    readonly startSource: StartSource
    /** Blocks on disk; without it JSON-RPC has those in memory only. */
    readonly archive?: BlockArchive | undefined
    /** Outlives the service. */
    readonly history: History
    /** Names of contracts by address. */
    readonly names?: ReadonlyMap<string, string> | undefined
    readonly refusals?: RefusalRecorder | undefined
    /** Files of the dashboard. */
    readonly page?: StaticFiles | undefined
    /** Served under `/docs`. */
    readonly documents?: StaticFiles | undefined
    /** Pages of errors; errors have no `docs_url` where it is missing. */
    readonly docsUrl?: DocsUrl | undefined
  }
