import { type AccessSnapshot, Snapshot } from '../../../access/snapshot/snapshot.ts'
import type { StateFolder } from '../../../platform/files/state-folder.ts'
import { printAddressPort } from '../../../platform/net/ip-range.ts'
import type { ListenerMetrics } from '../../../platform/net/listener-metrics.ts'
import { type ControlMethods, openControlSocket } from '../../../platform/process/control-socket.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import { createLogTap } from '../../../platform/telemetry/log-tap.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { StatusReport } from '../../serve.ts'
import type { AccessPart } from '../access/open-access.ts'
import type { Settings } from '../config/settings.ts'
import { createTopReport, type TopDeps } from '../top/report.ts'
import type { UsageWatch } from '../top/usage-watch.ts'
import type { Deps } from './deps.ts'
import { logLines, parseLogRequest } from './log-lines.ts'
import { drainMethod, openOperatorServer } from './operator-listener.ts'
import { VERSION } from './version.ts'

export type StandaloneOperatorDeps = Deps & {
  readonly state: StateFolder
  readonly lifecycle: Lifecycle
  readonly registry: MetricsRegistry
  readonly listenerMetrics: (server: 'metrics') => ListenerMetrics
  readonly service: { readonly name: keyof TopDeps['runs']; readonly address: { host: string; port: number } }
  /** Undefined in a process that knows no customers. */
  readonly customers?: AccessPart
  readonly upstreams?: () => readonly NodeStatus[]
  /** What can be asked of this service alone. */
  readonly methods?: ControlMethods
}

export type StandaloneOperator = AsyncDisposable & {
  /** The service and the operator's door, as the log and `sluice status` name them. */
  readonly services: StatusReport['services']
  beginLameDuck(): void
}

const NO_USE: Pick<UsageWatch, 'active' | 'of'> = { active: () => [], of: () => ({ calls: 0, units: 0, refused: 0 }) }

/**
 * What the operator has of every process that runs one service: metrics and health at a door, and a control socket where the command line asks how it
 * is, what it does, what it logs, and tells it to end.
 */
export async function openStandaloneOperator(
  settings: Settings,
  deps: StandaloneOperatorDeps,
): Promise<StandaloneOperator> {
  const { log, clock, lifecycle, registry, service, customers, upstreams = () => [] } = deps
  await using opening = new AsyncDisposableStack()
  const server = opening.use(
    await openOperatorServer(settings, { ...deps, listenerMetrics: deps.listenerMetrics('metrics') }),
  )
  const services = [
    { name: service.name, address: printAddressPort(service.address.host, service.address.port) },
    { name: 'metrics', address: printAddressPort(server.address.host, server.address.port) },
  ]
  const tap = deps.logTap ?? createLogTap({ write() {} })
  const nobody: AccessSnapshot = Snapshot.empty()
  const snapshot = () => customers?.access.snapshot() ?? nobody
  const usage = customers?.usage ?? NO_USE
  const status = (): StatusReport => {
    const { state, reasons, startedMs } = lifecycle.health()
    return {
      state,
      reasons,
      version: VERSION,
      pid: process.pid,
      uptimeSeconds: Math.floor((clock.nowMs() - startedMs) / 1000),
      store: customers?.store.name ?? 'none',
      revision: snapshot().revision,
      ...snapshot().counts(),
      services,
    }
  }
  const runs = { shreds: false, sender: false, indexer: false, execution: false, [service.name]: true }
  opening.use(
    await openControlSocket(deps.state.file('control.sock'), {
      log: log.child({ part: 'control' }),
      methods: {
        status,
        top: createTopReport({ registry, clock, usage, snapshot, status, upstreams, streamsOf: () => 0, runs }),
        logs: (params, { signal }) =>
          logLines(tap, parseLogRequest(params), {
            snapshot: snapshot(),
            signal,
            clock,
            ratesOf: (id) => ({ ...usage.of(id), streams: 0 }),
          }),
        upstreams: () => upstreams(),
        drain: drainMethod(lifecycle, clock),
        ...deps.methods,
      },
    }),
  )
  const opened = opening.move()
  return {
    services,
    beginLameDuck: () => server.beginLameDuck(),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
