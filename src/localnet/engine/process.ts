import assert from 'node:assert/strict'
import type { BackoffOptions } from '../../core/backoff.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { type Child, startChild } from '../../platform/process/child.ts'
import { type InstanceEvents, type Restart, type Supervised, supervise } from '../../platform/process/supervise.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { EngineInstance, type EngineJob, type EngineResponse } from './instance.ts'
import type { EngineReply, EngineRequest } from './protocol.ts'

export type EngineProcessOptions = {
  /** Requests in flight at one time; the others wait here, so that a slot can end between them. */
  readonly windowMax: number
  readonly restart: BackoffOptions
}

export type EngineProcessDeps = BaseDeps & {
  /** The state that a new engine is filled with, in order. Called at every start. */
  refill(): Iterable<EngineRequest>
  /** Starts the process; tests start another program. */
  readonly startChild?: () => Child
}

const DEFAULTS: EngineProcessOptions = { windowMax: 256, restart: { firstMs: 50, maxMs: 2_000 } }
/** Requests in one message. Their replies come together, so with many of them callers and engine would wait for each other in turn. */
const BATCH_MAX = 8
/** A request that was in flight at this many deaths is taken for the cause. At the first death it may have been another request. */
const DEATHS_MAX = 2
/** After so many failed starts in a row the waiting requests fail. */
const FAILED_STARTS_MAX = 4

/** Resolves when the first engine is filled; throws when it does not start. */
export async function startEngineProcess(deps: EngineProcessDeps, options = DEFAULTS): Promise<EngineProcess> {
  const engine = new EngineProcess(options, deps)
  await engine.started
  return engine
}

/** The chain engine in a child process. Requests survive its death, except the one that causes it. */
export class EngineProcess implements AsyncDisposable {
  readonly started: Promise<void>
  readonly #options: EngineProcessOptions
  readonly #deps: EngineProcessDeps
  readonly #engine: Supervised<EngineInstance>
  readonly #waiting: EngineJob[] = []
  #flow: 'open' | 'pausing' | 'paused' = 'open'
  #onPaused: (() => void) | undefined
  #isFlushScheduled = false
  #isClosed = false

  constructor(options: EngineProcessOptions, deps: EngineProcessDeps) {
    this.#options = options
    this.#deps = deps
    this.#engine = supervise(
      { backoff: options.restart, firstStartsMax: FAILED_STARTS_MAX },
      {
        clock: deps.clock,
        random: deps.random,
        start: (events) => this.#start(events),
        onRestart: (restart) => this.#onRestart(restart),
      },
    )
    this.started = this.#engine.started.catch((cause: unknown) => {
      throw new Error('the chain engine does not start', { cause })
    })
  }

  pid(): number | undefined {
    return this.#engine.instance?.pid
  }

  restarts(): number {
    return this.#engine.restarts
  }

  send(request: EngineRequest, done: EngineResponse): void {
    if (this.#isClosed) return done('engine-down')
    this.#waiting.push({ request, done, deaths: 0, isFill: false })
    this.#flushSoon()
  }

  /**
   * Passes accounts and slot to the engine; resolves when it has them. An engine that is still taking its refill gets them after it; the refill of one
   * that is not started yet contains them.
   */
  async fill(requests: Iterable<EngineRequest>): Promise<void> {
    await this.#fill(this.#engine.instance, requests)
  }

  /** Runs one request while the engine is paused. Not run again when the engine dies with it. */
  async runPaused(request: EngineRequest): Promise<EngineReply | 'engine-down'> {
    assert(this.#flow === 'paused', 'the engine is not paused')
    return (await this.#engine.instance?.fill([request]))?.[0] ?? 'engine-down'
  }

  /** Runs `then` as soon as no request is in flight, and holds back everything sent since until `resume`. */
  pause(then: () => void): void {
    assert(this.#flow === 'open', 'the engine is paused already')
    this.#flow = 'pausing'
    this.#onPaused = then
    this.#pauseIfIdle()
  }

  resume(): void {
    this.#flow = 'open'
    this.#flushSoon()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#engine[Symbol.asyncDispose]()
    this.#failWaiting()
  }

  #start(events: InstanceEvents): EngineInstance {
    const instance = new EngineInstance((this.#deps.startChild ?? startEngineChild)(), () => {
      this.#pauseIfIdle()
      this.#flush()
    })
    void instance.exited.then(({ code, signal }) => {
      this.#requeue(instance.takeInFlight())
      events.failed(new Error(`the engine process ended with ${signal ?? `exit code ${code}`}`))
      this.#pauseIfIdle()
    })
    void this.#fill(instance, this.#deps.refill()).then(() => {
      events.ready()
      this.#flush()
    })
    return instance
  }

  async #fill(instance: EngineInstance | undefined, requests: Iterable<EngineRequest>): Promise<void> {
    for (const reply of (await instance?.fill(requests)) ?? []) logRefused(reply, this.#deps.log)
  }

  /** The jobs that a dead engine had run again, except those that died with more than one. */
  #requeue(lost: readonly EngineJob[]): void {
    for (const job of lost) job.deaths++
    const isOver = (job: EngineJob): boolean => job.isFill || job.deaths >= DEATHS_MAX
    this.#waiting.unshift(...lost.filter((job) => !isOver(job)))
    for (const job of lost) if (isOver(job)) job.done('engine-down')
  }

  #onRestart({ error, delayMs, failedStarts }: Restart): void {
    const waiting = this.#waiting.length
    this.#deps.log.warn({ reason: error.message, waiting, delayMs }, 'the engine process died and is restarted')
    if (failedStarts >= FAILED_STARTS_MAX) this.#failWaiting()
  }

  #failWaiting(): void {
    for (const job of this.#waiting.splice(0)) job.done('engine-down')
  }

  #pauseIfIdle(): void {
    if (this.#flow !== 'pausing' || (this.#engine.instance?.working ?? 0) > 0) return
    this.#flow = 'paused'
    this.#onPaused?.()
  }

  /** After a death its suspects are sent one at a time, so that only the one at fault dies twice. They are first in the queue. */
  #flush(): void {
    const { instance } = this.#engine
    while (instance && this.#engine.state === 'running' && this.#flow === 'open') {
      const [next] = this.#waiting
      if (next === undefined) return
      const room =
        next.deaths > 0 ? 1 - instance.working : Math.min(this.#options.windowMax - instance.working, BATCH_MAX)
      if (room <= 0) return
      instance.post(this.#waiting.splice(0, room))
    }
  }

  #flushSoon(): void {
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    setImmediate(() => {
      this.#isFlushScheduled = false
      this.#flush()
    })
  }
}

function logRefused(reply: EngineReply, log: Logger): void {
  if (!reply || !('refused' in reply)) return
  for (const { reason } of reply.refused) log.warn({ reason }, 'engine refused an account')
}

function startEngineChild(): Child {
  // Its heap is small and one thread does all of its work, so it needs little memory beside litesvm's own.
  return startChild(new URL('./child.ts', import.meta.url), {
    nodeFlags: ['--max-semi-space-size=2', '--v8-pool-size=1'],
    stderr: 'ignore',
  })
}
