import { messageOf } from '../../../core/error.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import { type InstanceEvents, supervise } from '../../../platform/process/supervise.ts'
import {
  type ChannelMessage,
  createThreadChannel,
  errorFrom,
  type Offered,
} from '../../../platform/process/thread-channel.ts'
import { startWorker, type WorkerThread } from '../../../platform/process/worker.ts'
import type { RefusalLog } from '../../../platform/telemetry/refusal-log.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { Config } from '../config/config.ts'
import { isTrial } from '../config/served.ts'
import type { Rendered } from '../documents/documents.ts'
import type { HealthReports } from './health-reports.ts'
import type { ControlPlaneSide, GatewayMethods, ServiceChannel, ThreadSide } from './protocol.ts'
import type { Address, ThreadReady, ThreadReport, ThreadStart } from './start-data.ts'

export type SupervisedThreadOptions = {
  readonly name: string
  readonly entry: URL
  /** The data of the next instance; `ready` is that of the instance before, whose ports it takes again. */
  start(ready: ThreadReady | undefined): ThreadStart
  /** Reserves the ports of an instance that follows another one; kept until it serves. Throws where one is taken. */
  reserve?: (() => Promise<AsyncDisposable>) | undefined
}

export type SupervisedThreadDeps = BaseDeps & {
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  readonly health: HealthReports
  readonly refusals: Pick<RefusalLog, 'record'>
  /** Writes a line of the thread's log. */
  readonly writeLog: (line: string) => void
  readonly methods: Offered<ControlPlaneSide>['methods'] & Partial<GatewayMethods>
  /** Those that are not about this instance of the thread. */
  readonly notices: Omit<ControlPlaneSide['notices'], InstanceNotice>
  /** The thread serves: the moment to send what has changed since its start data was made. */
  readonly onReady?: (channel: ServiceChannel) => void
  readonly onRestart?: () => void
  /** The thread has ended, by itself or on request: what it held in shared memory can be reclaimed. Its next instance waits for it. */
  readonly onEnd?: () => void | Promise<void>
}

/** A service in a thread of its own, seen from the control plane. It is restarted when it dies. */
export type SupervisedThread = AsyncDisposable & {
  readonly name: string
  readonly addresses: Readonly<Record<string, Address>>
  readonly details: unknown
  readonly isRunning: boolean
  readonly restarts: number
  /** The nodes as this thread sees them, at most a second old. */
  nodes(): readonly NodeStatus[]
  refreshNodes(): Promise<void>
  /** Calls a method of the control socket that the service implements. */
  control(method: string, params: unknown): Promise<unknown>
  call: ServiceChannel['call']
  /** Nothing happens while the thread is being restarted; its next start data has what changed. */
  notify: ServiceChannel['notify']
  publishDocuments(rendered: Rendered): void
  reloadNodes(options: NodesOptions): Promise<void>
  /** Also for the instances that follow. */
  beginLameDuck(): void
  /** Resolves when the thread has no clients any more, also where it ended instead; it is not started again then. */
  drain(deadlineMs: number): Promise<void>
}

const RESTART = { firstMs: 200, maxMs: 30_000 }
const RESET_AFTER_MS = 60_000
/** A thread whose event loop is blocked for this long is replaced. */
const LIVENESS_MS = 30_000
/** A start may take minutes while its event loop runs, for instance until a database is open. The operator should know what it waits for. */
const SLOW_START_MS = 30_000
/** How often an instance that waits for its ports counts as alive: less than a quarter of `LIVENESS_MS`. */
const RESERVING_MS = 5000
const CLOSE_MS = 5000
/** A thread that is busy for longer is shown as it was. */
const REFRESH_MS = 500
/** As the launcher gives the main thread: three semi-spaces of 4 MiB. In a trial half of it, which is enough for some calls a second. */
const YOUNG_MIB = 12
const TRIAL_YOUNG_MIB = 6
const MIB = 2 ** 20
/** Beyond the time that the service itself has. */
const DRAIN_MORE_MS = 1000

type InstanceNotice = 'log' | 'degraded' | 'recovered' | 'refused' | 'alive' | 'ready' | 'report' | 'failed'

type Instance = AsyncDisposable & { readonly channel: ServiceChannel }

export function youngMibOf(config: Config): number {
  return isTrial(config) ? TRIAL_YOUNG_MIB : YOUNG_MIB
}

/** Starts the thread and waits until its service serves. Throws what the service throws at its first start. */
export async function startSupervisedThread(
  options: SupervisedThreadOptions,
  deps: SupervisedThreadDeps,
): Promise<SupervisedThread> {
  const { name, entry } = options
  const { clock, random, health, lifecycle } = deps
  const log = deps.log.child({ thread: name })
  const part = `thread ${name}`
  let ready: ThreadReady | undefined
  let report: ThreadReport = { nodes: [] }
  let documents: Rendered | undefined
  let isLameDuck = false
  let isDrained = false

  function open(events: InstanceEvents): Instance {
    const notices: ControlPlaneSide['notices'] = {
      ...deps.notices,
      log: deps.writeLog,
      degraded: ({ part, reason }) => health.degraded(name, part, reason),
      recovered: (part) => health.recovered(name, part),
      refused: (refused) => deps.refusals.record(refused),
      alive: () => events.alive(),
      ready(now) {
        ready = now
        slowStart.cancel()
        void reserved.disposeAsync()
        if (documents !== undefined) channel.notify('documents', documents)
        if (isLameDuck) channel.notify('lame-duck')
        lifecycle.recovered(part)
        deps.onReady?.(channel)
        events.ready()
      },
      report(now) {
        report = now
        events.alive()
      },
      failed: (error) => events.failed(errorFrom(error)),
    }
    const reserved = new AsyncDisposableStack()
    let thread: WorkerThread<ChannelMessage> | undefined
    let isClosed = false
    const post = (message: ChannelMessage) => thread?.post(message)
    const channel = createThreadChannel<ThreadSide>({ post, clock, methods: deps.methods, notices })

    function startThread(): void {
      const data = options.start(ready)
      thread = startWorker<ChannelMessage, ChannelMessage>(entry, data, {
        onMessage: (message) => channel.receive(message),
        onDeath: (error) => (isDrained ? endDrained(error) : events.failed(error)),
        endMs: CLOSE_MS,
        youngMib: youngMibOf(data.settings.config),
        // One thread cannot take more than the process may have; the memory guard refuses work before that.
        oldMib: Math.ceil(data.settings.config.memory.residentBytesMax / MIB),
      })
    }

    /** The thread before it in the queue keeps the ports until it serves. */
    async function reserveWaiting(reserve: () => Promise<AsyncDisposable>): Promise<AsyncDisposable> {
      using _waiting = clock.setRepeating(RESERVING_MS, () => events.alive())
      return await reserve()
    }

    async function startOnItsPorts(reserve: () => Promise<AsyncDisposable>): Promise<void> {
      try {
        reserved.use(await reserveWaiting(reserve))
        if (!isClosed) startThread()
      } catch (error) {
        events.failed(error instanceof Error ? error : new Error(String(error)))
      }
    }

    const starting =
      ready === undefined || options.reserve === undefined ? startThread() : startOnItsPorts(options.reserve)
    const slowStart = clock.setTimer(SLOW_START_MS, () =>
      log.warn({ startingMs: SLOW_START_MS }, 'thread is still being started'),
    )
    slowStart.unref?.()
    return {
      channel,
      async [Symbol.asyncDispose]() {
        isClosed = true
        slowStart.cancel()
        channel.end(new Error(`the thread ${name} has ended`))
        await starting
        await thread?.[Symbol.asyncDispose]()
        await reserved.disposeAsync()
        health.ended(name)
        await deps.onEnd?.()
      },
    }
  }

  const supervised = supervise<Instance>(
    { name: `the ${part}`, backoff: RESTART, resetAfterMs: RESET_AFTER_MS, livenessMs: LIVENESS_MS, firstStartsMax: 1 },
    {
      clock,
      random,
      start: open,
      onRestart({ error, delayMs, failedStarts }) {
        report = { nodes: [] }
        deps.onRestart?.()
        const isStarted = failedStarts === 0
        const reason = isStarted ? 'it ended and is started again' : `it cannot be started: ${messageOf(error)}`
        lifecycle.degraded(part, reason)
        const outcome = isStarted ? 'thread ended, its connections are lost' : 'thread cannot be started, tried again'
        log.error({ err: error, delayMs }, outcome)
      },
    },
  )

  /** It has no clients any more, and the process is about to end. */
  function endDrained(error: Error): void {
    log.warn({ err: error }, 'thread ended after it was drained')
    void supervised[Symbol.asyncDispose]()
  }

  await supervised.started
  const channelOf = (): ServiceChannel | undefined => supervised.instance?.channel
  const call: ServiceChannel['call'] = async (method, params, timeoutMs) => {
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
    async refreshNodes() {
      report = await call('report', undefined, REFRESH_MS)
    },
    control: (method, params) => call('control', { method, params }),
    call,
    notify: (notice, ...value) => channelOf()?.notify(notice, ...value),
    publishDocuments(rendered) {
      documents = rendered
      channelOf()?.notify('documents', rendered)
    },
    reloadNodes: (nodes) => call('reload-nodes', nodes),
    beginLameDuck() {
      isLameDuck = true
      channelOf()?.notify('lame-duck')
    },
    async drain(deadlineMs) {
      // A thread that has ended has no clients, and one started now would get new ones only to lose them.
      if (supervised.state !== 'running') return supervised[Symbol.asyncDispose]()
      try {
        await call('drain', deadlineMs, deadlineMs + DRAIN_MORE_MS)
        isDrained = true
      } catch (error) {
        log.warn({ err: error }, 'thread did not drain')
        await supervised[Symbol.asyncDispose]()
      }
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
export function methodsOf(thread: SupervisedThread | undefined, local: ControlMethods): ControlMethods {
  if (thread === undefined) return local
  return Object.fromEntries(
    Object.keys(local).map((method) => [method, (params: unknown) => thread.control(method, params)]),
  )
}
