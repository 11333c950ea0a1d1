import assert from 'node:assert/strict'
import { type Backoff, type BackoffOptions, createBackoff } from '../../core/backoff.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'

/** `waiting`: the last instance failed; it is being closed, or the delay before the next start runs. */
export type SupervisedState = 'starting' | 'running' | 'waiting' | 'stopped'

export type SuperviseOptions = {
  /** What is supervised, for errors: `the thread gateway`. */
  readonly name?: string | undefined
  /** Delays before restarts. */
  readonly backoff: BackoffOptions
  /** An instance that was ready for this long resets the backoff. Default 0: becoming ready resets it. */
  readonly resetAfterMs?: number | undefined
  /** An instance without a heartbeat (`ready` or `alive`) for this long, or up to a quarter longer, has failed. Default: no limit. */
  readonly livenessMs?: number | undefined
  /** Attempts to become ready for the first time; then the supervisor stops and `started` rejects. Default: no limit. */
  readonly firstStartsMax?: number | undefined
}

/** What an instance reports about itself. Calls after it failed, or after the stop, have no effect. */
export type InstanceEvents = {
  /** It works: `starting` becomes `running`. */
  ready(): void
  /** A heartbeat. */
  alive(): void
  /** It ended or cannot go on. The supervisor closes it and starts the next one. */
  failed(error: Error): void
}

export type Restart = {
  readonly error: Error
  readonly delayMs: number
  /** Instances that failed in a row before they were ready. */
  readonly failedStarts: number
}

export type SuperviseDeps<Instance extends AsyncDisposable> = {
  readonly clock: Clock
  readonly random: Random
  /** Starts an instance. The supervisor closes it, also when it failed by itself. What this throws counts as a failure. */
  start(events: InstanceEvents): Instance
  /** An instance failed and another follows. Not called for the failure after which the first start is given up. */
  onRestart?(restart: Restart): void
}

export type Supervised<Instance> = AsyncDisposable & {
  readonly state: SupervisedState
  /** The instance that is starting or running. */
  readonly instance: Instance | undefined
  readonly restarts: number
  /** Resolves when the first instance is ready; rejects when the first start is given up, or when stopped before. */
  readonly started: Promise<void>
}

/** Ticks of the liveness check per `livenessMs`. A stall of this thread costs one tick, so it is not mistaken for silence of the instance. */
const LIVENESS_TICKS = 4

/**
 * Keeps one instance of a worker thread, a child process or a service running: closes one that failed and starts the next after a delay that grows
 * with each failure. An instance is closed before the next is started, so there are never two.
 */
export function supervise<Instance extends AsyncDisposable>(
  options: SuperviseOptions,
  deps: SuperviseDeps<Instance>,
): Supervised<Instance> {
  return new Supervisor(options, deps)
}

/** For an instance that opens asynchronously: ready when it is open, failed when it cannot be opened, closed once its opening has settled. */
export function openSupervised<Value extends AsyncDisposable>(
  events: InstanceEvents,
  open: () => Promise<Value>,
): AsyncDisposable & { readonly value: Value | undefined } {
  let value: Value | undefined
  const settled = open().then(
    (opened) => {
      value = opened
      events.ready()
    },
    (error: unknown) => events.failed(errorOf(error)),
  )
  return {
    get value() {
      return value
    },
    async [Symbol.asyncDispose]() {
      await settled
      await value?.[Symbol.asyncDispose]()
    },
  }
}

class Supervisor<Instance extends AsyncDisposable> implements Supervised<Instance> {
  readonly #options: SuperviseOptions
  readonly #deps: SuperviseDeps<Instance>
  readonly #backoff: Backoff
  readonly #started = Promise.withResolvers<void>()
  #state: SupervisedState = 'starting'
  /** The events of the instance that is starting or running; those of earlier instances are ignored. */
  #events: InstanceEvents | undefined
  #instance: Instance | undefined
  #readyAtMs: number | undefined
  #hasStarted = false
  #failedStarts = 0
  #restarts = 0
  #restartTimer: Timer | undefined
  #livenessTimer: Timer | undefined
  #closing: Promise<void> | undefined

  constructor(options: SuperviseOptions, deps: SuperviseDeps<Instance>) {
    this.#options = options
    this.#deps = deps
    this.#backoff = createBackoff(options.backoff, deps.random)
    // Not every caller waits for the first start.
    this.#started.promise.catch(() => {})
    this.#start()
  }

  get state(): SupervisedState {
    return this.#state
  }

  get instance(): Instance | undefined {
    return this.#events === undefined ? undefined : this.#instance
  }

  get restarts(): number {
    return this.#restarts
  }

  get started(): Promise<void> {
    return this.#started.promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = 'stopped'
    this.#restartTimer?.cancel()
    this.#started.reject(new Error('stopped before the first start was complete'))
    this.#closing ??= this.#close()
    await this.#closing
  }

  #start(): void {
    assert(this.#instance === undefined, 'the instance before it is closed')
    let silentTicks = 0
    const events: InstanceEvents = {
      ready: () => {
        silentTicks = 0
        if (this.#events === events) this.#ready()
      },
      alive() {
        silentTicks = 0
      },
      failed: (error) => {
        if (this.#events === events) this.#failed(error)
      },
    }
    this.#state = 'starting'
    this.#readyAtMs = undefined
    this.#events = events
    const { livenessMs } = this.#options
    if (livenessMs !== undefined) {
      this.#livenessTimer = this.#deps.clock.setRepeating(livenessMs / LIVENESS_TICKS, () => {
        if (++silentTicks > LIVENESS_TICKS) events.failed(this.#silence(livenessMs))
      })
      this.#livenessTimer.unref?.()
    }
    try {
      this.#instance = this.#deps.start(events)
    } catch (error) {
      events.failed(errorOf(error))
    }
  }

  /** Before the first start is complete this is a slow machine more often than a fault: loading the code takes processor time and disk. */
  #silence(livenessMs: number): Error {
    const { name = 'a thread' } = this.#options
    const message = `${name} sent no heartbeat for ${livenessMs} ms`
    return this.#hasStarted ? new Error(message) : new ServiceError('start-timeout', `${message} while it started`)
  }

  #ready(): void {
    if (this.#state !== 'starting') return
    this.#state = 'running'
    this.#readyAtMs = this.#deps.clock.monotonicMs()
    this.#failedStarts = 0
    this.#hasStarted = true
    this.#started.resolve()
  }

  #failed(error: Error): void {
    const { clock, onRestart } = this.#deps
    const { resetAfterMs = 0, firstStartsMax = Number.POSITIVE_INFINITY } = this.#options
    if (this.#readyAtMs === undefined) this.#failedStarts += 1
    else if (clock.monotonicMs() - this.#readyAtMs >= resetAfterMs) this.#backoff.reset()
    const isGivenUp = !this.#hasStarted && this.#failedStarts >= firstStartsMax
    this.#state = isGivenUp ? 'stopped' : 'waiting'
    // An instance that fails to close has failed before and was reported; its replacement matters more.
    const closing = this.#close().catch(() => {})
    this.#closing = closing
    if (isGivenUp) {
      void closing.then(() => this.#started.reject(error))
      return
    }
    const delayMs = Math.round(this.#backoff.nextMs())
    this.#restarts += 1
    onRestart?.({ error, delayMs, failedStarts: this.#failedStarts })
    void closing.then(() => {
      if (this.#state !== 'waiting') return
      this.#closing = undefined
      this.#restartTimer = clock.setTimer(delayMs, () => this.#start())
    })
  }

  async #close(): Promise<void> {
    this.#events = undefined
    this.#livenessTimer?.cancel()
    // `start` may be the caller: it has not returned the instance yet.
    await Promise.resolve()
    const instance = this.#instance
    this.#instance = undefined
    await instance?.[Symbol.asyncDispose]()
  }
}

function errorOf(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
