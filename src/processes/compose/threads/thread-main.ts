import assert from 'node:assert/strict'
import { openThreadAccess, type ThreadAccess } from '../../../access/thread-access.ts'
import { openSharedLimits, type SharedLimits } from '../../../gateway/limits.ts'
import { openStateFolder } from '../../../platform/files/state-folder.ts'
import { createListenerMetrics } from '../../../platform/net/listener-metrics.ts'
import type { ChildWatcher } from '../../../platform/process/child.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import { MemoryCells } from '../../../platform/process/memory-cells.ts'
import type { MemoryGuard } from '../../../platform/process/memory-guard.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import {
  type ChannelMessage,
  createThreadChannel,
  type Offered,
  postedError,
} from '../../../platform/process/thread-channel.ts'
import { openWorkerPort } from '../../../platform/process/worker.ts'
import { createLogger } from '../../../platform/telemetry/logger.ts'
import { createThreadRegistry } from '../../../platform/telemetry/process-metrics.ts'
import { createProbeReceiver, type ProbeReceiver } from '../../../upstreams/probes/shared-probes.ts'
import type { Upstreams } from '../../../upstreams/service.ts'
import { createDocuments } from '../documents/documents.ts'
import { openThreadMemoryGuard } from '../process/memory.ts'
import type { ServiceContext, ServiceSettings } from '../process/service-context.ts'
import { forwardRefusals } from './forward-refusals.ts'
import type { ControlPlaneChannel, ControlPlaneGatewaySide, ControlPlaneSide, ThreadSide } from './protocol.ts'
import type { Address, ThreadReady, ThreadReport, ThreadStart } from './start-data.ts'

/** What runs in a thread, as its entry opens it. */
export type ThreadService = AsyncDisposable & {
  readonly addresses: Readonly<Record<string, Address>>
  readonly details?: unknown
  /** Methods of the control socket that this service implements. */
  readonly methods?: ControlMethods
  readonly upstreams?: Upstreams
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

/** What the entry of a thread is given. */
export type ThreadContext<Listener extends string> = ServiceContext<Listener> & {
  readonly settings: ServiceSettings
  readonly start: ThreadStart
  /** To the control plane. */
  readonly channel: ControlPlaneChannel
  readonly memory: MemoryGuard
  readonly limits: SharedLimits
  /** The control plane probes the nodes for all threads. */
  readonly probes: ProbeReceiver
  /** The control plane reaps the child processes of a thread that dies. */
  readonly children: ChildWatcher
  /** Authenticates and charges from the memory that all threads share. */
  openAccess(): ThreadAccess
}

const REPORT_MS = 1000

/** The body of a thread's entry: opens the service with a context whose log, health and metrics are those of the process, and serves the control plane. */
export function runThread<const Listener extends string>(
  listeners: readonly Listener[],
  open: (context: ThreadContext<Listener>) => Promise<ThreadService>,
): void {
  const port = openWorkerPort<ChannelMessage, ChannelMessage>()
  if (port === undefined) return
  const start = port.data as ThreadStart
  const clock = systemClock
  const documents = createDocuments()
  const opened = Promise.withResolvers<ThreadService>()
  let access: ThreadAccess | undefined
  // A call that arrives after a failed start is rejected; without calls nobody handles the rejection.
  opened.promise.catch(() => {})

  let refreshMetrics = () => {}
  const methods: Offered<ThreadSide>['methods'] = {
    'refresh-metrics': () => refreshMetrics(),
    report: async () => reportOf(await opened.promise),
    control: async ({ method, params }) =>
      (await opened.promise).methods?.[method]?.(params as never, { signal: NEVER }),
    drain: async (deadlineMs) => (await opened.promise).drain(deadlineMs),
    close: async () => (await opened.promise)[Symbol.asyncDispose](),
    'reload-nodes': async (options) => void (await (await opened.promise).upstreams?.reload(options)),
  }
  const notifications: ThreadSide['notifications'] = {
    'lame-duck': () => void opened.promise.then((service) => service.beginLameDuck()),
    // What arrives before the access is opened arrives again when the thread is ready.
    'access-update': (update) => access?.apply(update),
    'log-level': (level) => void (log.level = level),
    documents: (rendered) => documents.adopt(rendered),
    'drain-node': ({ node, isDrained }) =>
      void opened.promise.then(({ upstreams }) => (isDrained ? upstreams?.drain(node) : upstreams?.undrain(node))),
    'node-probed': ({ key, result }) => probes.receive(key, result),
  }
  const channel: ControlPlaneChannel = createThreadChannel<ControlPlaneSide & ControlPlaneGatewaySide>({
    post: port.post,
    clock,
    methods,
    notifications,
  })
  const probes = createProbeReceiver({
    known: (key) => channel.call('node-health', key),
    request: (key) => channel.notify('probe-requested', key),
  })
  const log = createLogger({
    level: start.settings.config.log.level,
    destination: { write: (line: string) => channel.notify('log', line) },
  }).child({ thread: start.name })
  port.onMessage(channel.receive)
  // The control plane is gone or has closed this thread already.
  port.onEnd(() => process.exit())

  async function run(): Promise<void> {
    using _starting = clock.setRepeating(REPORT_MS, () => channel.notify('alive'))
    const registry = createThreadRegistry({
      thread: start.name,
      shared: { onFamily: (family) => channel.notify('metric', family), previous: start.metrics },
    })
    const lifecycle = {
      degraded: (part: string, reason: string) => channel.notify('degraded', { part, reason }),
      recovered: (part: string) => channel.notify('recovered', part),
    }
    const service = await open({
      log,
      clock,
      random: secureRandom,
      env: process.env,
      state: await openStateFolder(start.settings.stateDir),
      registry,
      lifecycle,
      refusals: forwardRefusals((refused) => channel.notify('refused', refused), clock),
      listenerMetrics: createListenerMetrics(registry, listeners, lifecycle),
      documents,
      settings: start.settings,
      start,
      channel,
      memory: openThreadMemoryGuard({ clock, registry }, new MemoryCells(start.memory, start.index)),
      limits: openSharedLimits(start.limits, start.index),
      probes,
      children: {
        started: (pid) => channel.notify('child-started', pid),
        ended: (pid) => channel.notify('child-ended', pid),
      },
      openAccess() {
        assert(start.access !== undefined, 'the thread was started with access')
        access = openThreadAccess(start.access, {
          log,
          clock,
          registry,
          lifecycle,
          requestBookings: () => channel.notify('bookings-requested'),
        })
        return access
      },
    })
    for (const node of start.drainedNodes) service.upstreams?.drain(node)
    opened.resolve(service)
    const { addresses, details } = service
    channel.notify('ready', { addresses, details } satisfies ThreadReady)
    refreshMetrics = registry.refresh
    const report = () => {
      registry.refresh()
      channel.notify('report', reportOf(service))
    }
    report()
    clock.setRepeating(REPORT_MS, report).unref?.()
  }

  run().catch((error: unknown) => {
    opened.reject(error)
    channel.notify('failed', postedError(error))
  })
}

/** Methods of a thread reply with a value, never with a stream that would have to be cancelled. */
const NEVER = new AbortController().signal

function reportOf({ upstreams }: ThreadService): ThreadReport {
  return { nodes: upstreams?.status() ?? [] }
}
