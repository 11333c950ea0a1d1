import type { Timer } from '../../../core/clock.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import {
  type ChannelMessage,
  createThreadChannel,
  errorFrom,
  type Offered,
} from '../../../platform/process/thread-channel.ts'
import { startWorker, type WorkerThread } from '../../../platform/process/worker.ts'
import type { RefusalLog } from '../../../platform/telemetry/refusal-log.ts'
import type { Config } from '../config/config.ts'
import { runsEmbeddedOnly } from '../config/served.ts'
import type { HealthReports } from './health-reports.ts'
import type { ControlPlaneSide, GatewayMethods, ServiceChannel, ThreadSide } from './protocol.ts'
import type { ThreadReady, ThreadReport, ThreadStart } from './start-data.ts'

export type ThreadInstanceOptions = {
  readonly name: string
  readonly entry: URL
  readonly start: () => ThreadStart
  /** Reserves its ports, where another instance had them before; kept until it serves. Throws where one is taken. */
  readonly reserve: (() => Promise<AsyncDisposable>) | undefined
}

export type ThreadInstanceEvents = {
  readonly alive: () => void
  readonly ready: (ready: ThreadReady) => void
  readonly report: (report: ThreadReport) => void
  readonly failed: (error: Error) => void
  /** The thread ended without being asked to. */
  readonly died: (error: Error) => void
}

export type ThreadInstanceDeps = Pick<BaseDeps, 'log' | 'clock'> & {
  readonly health: HealthReports
  readonly refusals: Pick<RefusalLog, 'record'>
  /** Writes a line of the thread's log. */
  readonly writeLog: (line: string) => void
  readonly methods: Offered<ControlPlaneSide>['methods'] & Partial<GatewayMethods>
  /** Those that are not about this instance of the thread. */
  readonly notifications: Omit<ControlPlaneSide['notifications'], InstanceNotification>
  /** The thread has ended, by itself or on request: what it held in shared memory can be reclaimed. Its next instance waits for it. */
  readonly onEnd?: () => void | Promise<void>
}

type InstanceNotification = 'log' | 'degraded' | 'recovered' | 'refused' | 'alive' | 'ready' | 'report' | 'failed'

/** A start may take minutes while its event loop runs, for instance until a database is open. The operator should know what it waits for. */
const SLOW_START_MS = 30_000
/** How often an instance that waits for its ports counts as alive: less than a quarter of the time after which it is replaced. */
const RESERVING_MS = 5000
/** How long its service, and then the thread, may take to close. */
export const CLOSE_MS = 5000
/** As the launcher gives the main thread: three semi-spaces of 4 MiB. Where only the embedded chains run half of it, which is enough for some calls a second. */
const YOUNG_MIB = 12
const EMBEDDED_YOUNG_MIB = 6
const MIB = 2 ** 20

export function youngMibOf(config: Config): number {
  return runsEmbeddedOnly(config) ? EMBEDDED_YOUNG_MIB : YOUNG_MIB
}

/** One instance of a service's thread, from its start to its end. */
export class ThreadInstance implements AsyncDisposable {
  readonly channel: ServiceChannel
  readonly #options: ThreadInstanceOptions
  readonly #events: ThreadInstanceEvents
  readonly #deps: ThreadInstanceDeps
  readonly #reserved = new AsyncDisposableStack()
  readonly #slowStart: Timer
  #starting: Promise<void> | undefined
  #thread: WorkerThread<ChannelMessage> | undefined
  #isClosed = false

  /** Throws where the thread cannot be started. */
  constructor(options: ThreadInstanceOptions, events: ThreadInstanceEvents, deps: ThreadInstanceDeps) {
    const { clock, methods, log } = deps
    this.#options = options
    this.#events = events
    this.#deps = deps
    const post = (message: ChannelMessage) => this.#thread?.post(message)
    this.channel = createThreadChannel<ThreadSide>({ post, clock, methods, notifications: this.#notifications() })
    if (options.reserve === undefined) this.#startThread()
    else this.#starting = this.#startOnItsPorts(options.reserve)
    this.#slowStart = clock.setTimer(SLOW_START_MS, () =>
      log.warn({ startingMs: SLOW_START_MS }, 'thread is still being started'),
    )
    this.#slowStart.unref?.()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { name } = this.#options
    this.#isClosed = true
    this.#slowStart.cancel()
    this.channel.end(new Error(`the thread ${name} has ended`))
    await this.#starting
    await this.#thread?.[Symbol.asyncDispose]()
    await this.#reserved.disposeAsync()
    this.#deps.health.ended(name)
    await this.#deps.onEnd?.()
  }

  #notifications(): ControlPlaneSide['notifications'] {
    const { name } = this.#options
    const { notifications, writeLog, health, refusals } = this.#deps
    const { alive, report, failed } = this.#events
    return {
      ...notifications,
      log: writeLog,
      degraded: ({ part, reason }) => health.degraded(name, part, reason),
      recovered: (part) => health.recovered(name, part),
      refused: (refused) => refusals.record(refused),
      alive,
      ready: (ready) => this.#onReady(ready),
      report,
      failed: (error) => failed(errorFrom(error)),
    }
  }

  #onReady(ready: ThreadReady): void {
    this.#slowStart.cancel()
    void this.#reserved.disposeAsync()
    this.#events.ready(ready)
  }

  #startThread(): void {
    const { entry, start } = this.#options
    const data = start()
    this.#thread = startWorker<ChannelMessage, ChannelMessage>(entry, data, {
      onMessage: (message) => this.channel.receive(message),
      onDeath: (error) => this.#events.died(error),
      endMs: CLOSE_MS,
      youngMib: youngMibOf(data.settings.config),
      // One thread cannot take more than the process may have; the memory guard refuses work before that.
      oldMib: Math.ceil(data.settings.config.memory.residentBytesMax / MIB),
    })
  }

  async #startOnItsPorts(reserve: () => Promise<AsyncDisposable>): Promise<void> {
    try {
      this.#reserved.use(await this.#reserveWaiting(reserve))
      if (!this.#isClosed) this.#startThread()
    } catch (error) {
      this.#events.failed(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** Waits for the ports, which threads reserve one after another; reports `alive` meanwhile. */
  async #reserveWaiting(reserve: () => Promise<AsyncDisposable>): Promise<AsyncDisposable> {
    using _waiting = this.#deps.clock.setRepeating(RESERVING_MS, () => this.#events.alive())
    return await reserve()
  }
}
