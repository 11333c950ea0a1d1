import { messageOf } from '../../../core/error.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import { type InstanceEvents, supervise } from '../../../platform/process/supervise.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { Rendered } from '../documents/documents.ts'
import type { ServiceChannel } from './protocol.ts'
import type { Address, ThreadReady, ThreadReport, ThreadStart } from './start-data.ts'
import { CLOSE_MS, ThreadInstance, type ThreadInstanceDeps } from './thread-instance.ts'

export type SupervisedThreadOptions = {
  readonly name: string
  readonly entry: URL
  /** The data of the next instance; `ready` is that of the instance before, whose ports it takes again. */
  start(ready: ThreadReady | undefined): ThreadStart
  /** Reserves the ports of an instance that follows another one; kept until it serves. Throws where one is taken. */
  reserve?: (() => Promise<AsyncDisposable>) | undefined
}

export type SupervisedThreadDeps = BaseDeps &
  ThreadInstanceDeps & {
    readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
    /** The thread serves: the moment to send what has changed since its start data was made. */
    readonly onReady?: (channel: ServiceChannel) => void
    readonly onRestart?: () => void
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
/** A thread that is busy for longer is shown as it was. */
const REFRESH_MS = 500
/** Beyond the time that the service itself has. */
const DRAIN_MORE_MS = 1000

/** Starts the thread and waits until its service serves. Throws what the service throws at its first start. */
export async function startSupervisedThread(
  options: SupervisedThreadOptions,
  deps: SupervisedThreadDeps,
): Promise<SupervisedThread> {
  const { name, entry } = options
  const { clock, random, lifecycle } = deps
  const log = deps.log.child({ thread: name })
  const part = `thread ${name}`
  let ready: ThreadReady | undefined
  let report: ThreadReport = { nodes: [] }
  let documents: Rendered | undefined
  let isLameDuck = false
  let isDrained = false

  function open(events: InstanceEvents): ThreadInstance {
    const instance = new ThreadInstance(
      { name, entry, start: () => options.start(ready), reserve: ready && options.reserve },
      {
        alive: () => events.alive(),
        ready(now) {
          ready = now
          if (documents !== undefined) instance.channel.notify('documents', documents)
          if (isLameDuck) instance.channel.notify('lame-duck')
          lifecycle.recovered(part)
          deps.onReady?.(instance.channel)
          events.ready()
        },
        report(now) {
          report = now
          events.alive()
        },
        failed: (error) => events.failed(error),
        died: (error) => (isDrained ? endDrained(error) : events.failed(error)),
      },
      { ...deps, log },
    )
    return instance
  }

  const supervised = supervise<ThreadInstance>(
    { name: `the ${part}`, backoff: RESTART, resetAfterMs: RESET_AFTER_MS, livenessMs: LIVENESS_MS, firstStartsMax: 1 },
    {
      clock,
      random,
      start: open,
      onRestart({ error, delayMs, failedStarts }) {
        report = { nodes: [] }
        deps.onRestart?.()
        const isStarted = failedStarts === 0
        const reason = isStarted
          ? 'the thread ended unexpectedly and is being restarted'
          : `the thread cannot be started: ${messageOf(error)}`
        lifecycle.degraded(part, reason)
        const outcome = isStarted ? 'thread ended, its connections are lost' : 'thread cannot be started; retrying'
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
    notify: (notification, ...value) => channelOf()?.notify(notification, ...value),
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
export function methodsOf<Methods extends ControlMethods>(
  thread: SupervisedThread | undefined,
  local: Methods,
): Methods {
  if (thread === undefined) return local
  const forwarded: ControlMethods = Object.fromEntries(
    Object.keys(local).map((method) => [method, (params: unknown) => thread.control(method, params)]),
  )
  return forwarded as Methods
}
