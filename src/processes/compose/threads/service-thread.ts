import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import { type InstanceEvents, supervise } from '../../../platform/process/supervise.ts'
import {
  type ChannelListeners,
  type ChannelMessage,
  type ChannelMethods,
  createThreadChannel,
  errorFrom,
  type PostedError,
  type ThreadChannel,
} from '../../../platform/process/thread-channel.ts'
import { startWorker, type WorkerThread } from '../../../platform/process/worker.ts'
import type { RefusalLog, RefusedRequest } from '../../../platform/telemetry/refusal-log.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { Rendered } from '../documents/documents.ts'
import type { HealthReports } from './health-reports.ts'
import type { Address, ThreadReady, ThreadReport, ThreadStart } from './start-data.ts'

export type ServiceThreadOptions = {
  readonly name: string
  readonly entry: URL
  /** The data of the next instance; `ready` is that of the instance before, whose ports it takes again. */
  start(ready: ThreadReady | undefined): ThreadStart
}

export type ServiceThreadDeps = BaseDeps & {
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  readonly health: HealthReports
  readonly refusals: Pick<RefusalLog, 'note'>
  /** Writes a line of the thread's log. */
  readonly writeLog: (line: string) => void
  /** Methods of the control plane that the thread may call, besides those of every thread. */
  readonly methods?: ChannelMethods | undefined
  /** Notices of the thread that the control plane handles, besides those of every thread. */
  readonly listeners?: ChannelListeners | undefined
  /** The thread serves: the moment to send what has changed since its start data was made. */
  readonly onReady?: (channel: ThreadChannel) => void
  readonly onRestart?: () => void
  /** The thread has ended, by itself or on request: what it held in shared memory can be reclaimed. */
  readonly onEnd?: () => void
}

/** A service in a thread of its own, seen from the control plane. It is restarted when it dies. */
export type ServiceThread = AsyncDisposable & {
  readonly name: string
  readonly addresses: Readonly<Record<string, Address>>
  readonly details: unknown
  readonly isRunning: boolean
  readonly restarts: number
  /** The nodes as this thread sees them. */
  nodes(): readonly NodeStatus[]
  /** Calls a method of the control socket that the service implements. */
  control(method: string, params: unknown): Promise<unknown>
  call: ThreadChannel['call']
  /** Nothing happens while the thread is being restarted; its next start data has what changed. */
  notify: ThreadChannel['notify']
  publishDocuments(rendered: Rendered): void
  reloadNodes(options: NodesOptions): Promise<void>
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

const RESTART = { firstMs: 200, maxMs: 30_000 }
const RESET_AFTER_MS = 60_000
/** A thread whose event loop is blocked for this long is replaced. */
const LIVENESS_MS = 30_000
const CLOSE_MS = 5000
/** As the launcher gives the main thread: three semi-spaces of 4 MiB. */
const YOUNG_MIB = 12
const MIB = 2 ** 20
/** Beyond the time that the service itself has. */
const DRAIN_MORE_MS = 1000

type Instance = AsyncDisposable & { readonly channel: ThreadChannel }

/** Starts the thread and waits until its service serves. Throws what the service throws at its first start. */
export async function startServiceThread(
  options: ServiceThreadOptions,
  deps: ServiceThreadDeps,
): Promise<ServiceThread> {
  const { name, entry } = options
  const { clock, random, health, lifecycle } = deps
  const log = deps.log.child({ thread: name })
  const part = `thread ${name}`
  let ready: ThreadReady | undefined
  let report: ThreadReport = { nodes: [] }
  let documents: Rendered | undefined

  function open(events: InstanceEvents): Instance {
    const listeners = {
      ...deps.listeners,
      log: deps.writeLog,
      degraded: ({ part, reason }: { part: string; reason: string }) => health.degraded(name, part, reason),
      recovered: (part: string) => health.recovered(name, part),
      refused: (refused: RefusedRequest) => deps.refusals.note(refused),
      ready(now: ThreadReady) {
        ready = now
        if (documents !== undefined) channel.notify('documents', documents)
        lifecycle.recovered(part)
        deps.onReady?.(channel)
        events.ready()
      },
      report(now: ThreadReport) {
        report = now
        events.alive()
      },
      failed: (error: PostedError) => events.failed(errorFrom(error)),
    } satisfies ChannelListeners
    const data = options.start(ready)
    const thread: WorkerThread<ChannelMessage> = startWorker<ChannelMessage, ChannelMessage>(entry, data, {
      onMessage: (message) => channel.receive(message),
      onDeath: (error) => events.failed(error),
      endMs: CLOSE_MS,
      youngMib: YOUNG_MIB,
      // One thread cannot take more than the process may have; the memory guard refuses work before that.
      oldMib: Math.ceil(data.settings.config.memory.residentBytesMax / MIB),
    })
    const channel = createThreadChannel({ post: thread.post, clock, methods: deps.methods ?? {}, listeners })
    return {
      channel,
      async [Symbol.asyncDispose]() {
        channel.end(new Error(`the thread ${name} has ended`))
        await thread[Symbol.asyncDispose]()
        health.ended(name)
        deps.onEnd?.()
      },
    }
  }

  const supervised = supervise<Instance>(
    { backoff: RESTART, resetAfterMs: RESET_AFTER_MS, livenessMs: LIVENESS_MS, firstStartsMax: 1 },
    {
      clock,
      random,
      start: open,
      onRestart({ error, delayMs }) {
        report = { nodes: [] }
        deps.onRestart?.()
        lifecycle.degraded(part, 'it ended and is started again')
        log.error({ err: error, delayMs }, 'thread ended, its connections are lost')
      },
    },
  )
  await supervised.started
  const channelOf = (): ThreadChannel | undefined => supervised.instance?.channel
  const call: ThreadChannel['call'] = async (method, params, timeoutMs) => {
    const channel = channelOf()
    if (channel === undefined) throw new Error(`the thread ${name} is being restarted`)
    return channel.call(method, params, timeoutMs)
  }
  return {
    name,
    get addresses() {
      return ready?.addresses ?? {}
    },
    get details() {
      return ready?.details
    },
    get isRunning() {
      return supervised.state === 'running'
    },
    get restarts() {
      return supervised.restarts
    },
    nodes: () => report.nodes,
    control: (method, params) => call('control', { method, params }),
    call,
    notify: (notice, value) => channelOf()?.notify(notice, value),
    publishDocuments(rendered) {
      documents = rendered
      channelOf()?.notify('documents', rendered)
    },
    reloadNodes: async (nodes) => void (await call('reload-nodes', nodes)),
    beginLameDuck: () => channelOf()?.notify('lame-duck'),
    async drain(deadlineMs) {
      await channelOf()?.call('drain', deadlineMs, deadlineMs + DRAIN_MORE_MS)
    },
    async [Symbol.asyncDispose]() {
      await channelOf()
        ?.call('close', undefined, CLOSE_MS)
        .catch((error: unknown) => log.warn({ err: error }, 'thread did not close in time'))
      await supervised[Symbol.asyncDispose]()
    },
  }
}

/** The control methods of a service, run in its thread. `local` are the methods without the service, used where it does not run. */
export function methodsOf(thread: ServiceThread | undefined, local: ControlMethods): ControlMethods {
  if (thread === undefined) return local
  return Object.fromEntries(
    Object.keys(local).map((method) => [method, (params: unknown) => thread.control(method, params)]),
  )
}
