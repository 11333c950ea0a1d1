import { type AccessSnapshot, Snapshot } from '../access/snapshot.ts'
import type { Clock } from '../core/clock.ts'
import { type ControlMethods, type ControlSocket, openControlSocket } from '../host/control-socket.ts'
import type { Lifecycle } from '../host/lifecycle.ts'
import { createLogTap, type LogTap } from '../host/log-tap.ts'
import type { Logger } from '../host/logger.ts'
import type { MetricsRegistry } from '../host/metrics-registry.ts'
import type { StateFolder } from '../host/state-folder.ts'
import type { NodeStatus } from '../upstreams/status.ts'
import type { StatusReport } from './all.ts'
import { logLines, parseLogRequest } from './log-lines.ts'
import { drainMethod } from './operator-door.ts'
import { createTopReport, type TopDeps } from './top/report.ts'
import type { UsageWatch } from './top/usage-watch.ts'
import { VERSION } from './version.ts'

export type AloneControlDeps = {
  readonly state: StateFolder
  readonly log: Logger
  readonly logTap?: LogTap | undefined
  readonly clock: Clock
  readonly lifecycle: Lifecycle
  readonly registry: MetricsRegistry
  readonly services: StatusReport['services']
  readonly runs: Partial<TopDeps['runs']>
  /** Undefined in a process that knows no customers. */
  readonly customers?: {
    readonly store: string
    readonly snapshot: () => AccessSnapshot
    readonly usage: UsageWatch
  }
  readonly upstreams?: () => readonly NodeStatus[]
  /** What can be asked of this service alone. */
  readonly methods?: ControlMethods
}

const NO_USE: Pick<UsageWatch, 'active' | 'of'> = { active: () => [], of: () => ({ calls: 0, units: 0, refused: 0 }) }

/** What the command line can ask of every process that runs one service: how it is, what it does, what it logs, and to end. */
export function openAloneControl(deps: AloneControlDeps): Promise<ControlSocket> {
  const { log, clock, lifecycle, registry, customers, services, upstreams = () => [] } = deps
  const tap = deps.logTap ?? createLogTap({ write() {} })
  const nobody = Snapshot.empty()
  const snapshot = customers?.snapshot ?? (() => nobody)
  const usage = customers?.usage ?? NO_USE
  const status = (): StatusReport => {
    const { state, reasons, startedMs } = lifecycle.health()
    return {
      state,
      reasons,
      version: VERSION,
      pid: process.pid,
      uptimeSeconds: Math.floor((clock.nowMs() - startedMs) / 1000),
      store: customers?.store ?? 'none',
      revision: snapshot().revision,
      ...snapshot().counts(),
      services,
    }
  }
  const runs = { shreds: false, sender: false, indexer: false, execution: false, ...deps.runs }
  return openControlSocket(deps.state.file('control.sock'), {
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
  })
}
