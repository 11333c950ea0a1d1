import { type AccessSnapshot, Snapshot } from '../../../access/snapshot/snapshot.ts'
import { printAddressPort } from '../../../platform/net/ip-range.ts'
import { openControlSocket } from '../../../platform/process/control-socket.ts'
import { announceProcess } from '../../../platform/process/running-processes.ts'
import { createLogTap } from '../../../platform/telemetry/log-tap.ts'
import type { MetricsView } from '../../../platform/telemetry/metrics-view.ts'
import type { SlotLength } from '../../../upstreams/slot-length.ts'
import { ENDPOINT_NAMES, type Endpoints, endpointsOf } from '../access/endpoints.ts'
import type { OpenedAccess } from '../access/open-access.ts'
import type { ConfigSection } from '../config/config.ts'
import type { Settings } from '../config/settings.ts'
import type { Rendered } from '../documents/documents.ts'
import { type OperatorUpstreams, upstreamMethods } from '../services/upstreams.ts'
import { createTopReport } from '../top/report.ts'
import type { UsageWatch } from '../top/usage-watch.ts'
import type { ControlMethodsOf, ControlProtocol } from './control-protocol.ts'
import { logLines, parseLogRequest } from './log-lines.ts'
import type { ProcessContext } from './open-process.ts'
import { createSettingsReport } from './settings-report.ts'
import { createStatusReport, type StatusReport, type ThreadState } from './status.ts'

type Address = { readonly host: string; readonly port: number }

export type OperatorDeps = ProcessContext<never> & {
  /** The sections of the configuration that a process of one service uses. */
  readonly sections?: readonly ConfigSection[] | undefined
  /** What the process listens on, by the name in `sluice status`. Undefined for a service that is disabled. */
  readonly addresses: Readonly<Record<string, Address | undefined>>
  /** What to know about a service, by the same name. */
  readonly notes?: Readonly<Record<string, string>>
  /** Services that are enabled but do not run, with the reason. */
  readonly off?: Readonly<Record<string, string>>
  /** Undefined in a process without the access store. */
  readonly openedAccess?: OpenedAccess
  readonly upstreams?: OperatorUpstreams
  /** By default that of `upstreams`. */
  readonly slotLength?: SlotLength
  /** The threads of services, in a process that has some. */
  readonly threads?: () => readonly ThreadState[]
  /** Open connections of a subscription, in a process that counts them. */
  readonly connectionsOf?: (subscriptionId: string) => number
  /** The tip accounts of the sender, in a process that runs it. */
  readonly tipAccounts?: readonly string[] | undefined
  /** Called with the documents once they are published, to give them to threads. */
  readonly onDocuments?: (rendered: Rendered) => void
  /** The metrics of all threads; by default those of `registry` alone. */
  readonly metrics?: MetricsView
  /** Control methods of the services in this process, and its reload. */
  readonly methods: ServiceMethods
}

/** Methods that every process has. */
type OperatorMethod = 'status' | 'settings' | 'top' | 'logs' | 'drain' | keyof ReturnType<typeof upstreamMethods>
type ServiceMethods = Partial<ControlMethodsOf<Exclude<keyof ControlProtocol, OperatorMethod>>>

export type Operator = AsyncDisposable & {
  readonly services: StatusReport['services']
  /** With the ports in use. */
  readonly endpoints: Endpoints
  /** What the control socket serves, for other interfaces of the operator. */
  readonly methods: ControlMethodsOf<OperatorMethod> & ServiceMethods
  beginLameDuck(): void
}

const NO_USAGE: Pick<UsageWatch, 'active' | 'of'> = { active: () => [], of: () => ({ calls: 0, units: 0, refused: 0 }) }

/** The operator's access to a process that has started: its metrics and health, and the control socket that the command line calls. */
export async function openOperator(settings: Settings, deps: OperatorDeps): Promise<Operator> {
  const { log, clock, lifecycle, openedAccess, upstreams, connectionsOf = () => 0 } = deps
  const { metrics = deps.registry } = deps
  await using opening = new AsyncDisposableStack()
  // Closed here, before the services whose metrics it reads.
  const server = opening.use(deps.metricsListener)
  server.show(metrics)
  const services = Object.entries({ ...deps.addresses, metrics: server.address }).flatMap(([name, address]) =>
    address === undefined ? [] : [serviceOf(name, address, deps.notes?.[name])],
  )
  const off = Object.entries(deps.off ?? {}).map(([name, reason]) => ({ name, reason }))
  const endpoints = endpointsOf(settings.config, {
    ...Object.fromEntries(ENDPOINT_NAMES.map((name) => [name, deps.addresses[name]?.port])),
    tipAccounts: deps.tipAccounts,
  })
  await publishDocuments(settings, deps, endpoints)
  const noCustomers: AccessSnapshot = Snapshot.empty()
  const snapshot = () => openedAccess?.access.snapshot() ?? noCustomers
  const usage = openedAccess?.usage ?? NO_USAGE
  const status = createStatusReport({
    lifecycle,
    clock,
    store: openedAccess?.store.name ?? 'none',
    snapshot,
    services,
    off,
    usage: () => openedAccess?.access.usage.state(),
    ending: () => openedAccess?.access.ending(),
    nodes: () => deps.upstreams?.status() ?? [],
    threads: deps.threads ?? (() => []),
    slotLength: deps.slotLength ?? upstreams?.shared.slotLength,
  })
  const runs = (name: string): boolean => deps.addresses[name] !== undefined
  const tap = deps.logTap ?? createLogTap({ write() {} })
  const methods: Operator['methods'] = {
    status,
    settings: createSettingsReport(settings, deps.env, endpoints, deps.sections),
    top: createTopReport({
      registry: metrics,
      clock,
      usage,
      snapshot,
      status,
      upstreams: () => upstreams?.status() ?? [],
      streamsOf: connectionsOf,
      runs: {
        shreds: runs('shreds'),
        sender: runs('sender'),
        indexer: runs('indexer'),
        execution: runs('execution'),
      },
    }),
    logs: (params, { signal }) =>
      logLines({ log: tap, refusals: deps.refusals }, parseLogRequest(params), {
        snapshot,
        signal,
        clock,
        ratesOf: (id) => ({ ...usage.of(id), streams: connectionsOf(id) }),
      }),
    drain() {
      // In the next turn of the event loop, so that the response is written before the control socket closes.
      clock.setTimer(0, () => lifecycle.stop('sluice drain'))
      const waitingRows = openedAccess?.access.usage.state().waitingRows ?? 0
      return { draining: true, pid: process.pid, reportsStop: openedAccess !== undefined, waitingRows }
    },
    ...upstreamMethods(upstreams),
    ...deps.methods,
  }
  opening.use(
    await openControlSocket(deps.state.file('control.sock'), { log: log.child({ part: 'control' }), methods }),
  )
  const { stateDir, loaded } = settings
  opening.use(announceProcess({ pid: process.pid, state: stateDir, config: loaded.file ?? null }, deps.env))
  const opened = opening.move()
  return {
    services,
    endpoints,
    methods,
    beginLameDuck: () => server.beginLameDuck(),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function serviceOf(name: string, { host, port }: Address, note: string | undefined): StatusReport['services'][number] {
  return { name, address: printAddressPort(host, port), ...(note === undefined ? {} : { note }) }
}

/** Publishes the documents where the addresses in them are known, and reports the services without a public address. */
async function publishDocuments(
  { config }: Settings,
  { documents, addresses, log, onDocuments }: OperatorDeps,
  endpoints: Endpoints,
): Promise<void> {
  for (const { name, key } of endpoints.missing) {
    if (addresses[name] !== undefined)
      log.warn({ service: name, key }, 'no publicUrl configured: cards, tickets and errors name no address of it')
  }
  const { rpc, execution } = addresses
  const rendered = await documents.publish({
    endpoints,
    servers: {
      // A listener of another process is known only by its configured address.
      rpc: rpc === undefined && config.bundle.rpc.publicUrl === undefined ? undefined : endpoints.rpc,
      execution: execution === undefined && config.execution.publicUrl === undefined ? undefined : endpoints.execution,
    },
    isServedHere: rpc !== undefined || execution !== undefined,
  })
  onDocuments?.(rendered)
}
