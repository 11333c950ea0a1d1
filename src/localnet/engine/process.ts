import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Clock, Timer } from '../../core/clock.ts'
import { childEnv } from '../../platform/process/child.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { EngineReply, EngineRequest, FromEngine, ToEngine } from './protocol.ts'

/** Called once, in the order of `send`; `engine-down` when the engine died of this very request, or does not come up. */
export type EngineResponse = (reply: EngineReply | 'engine-down') => void

export type EngineProcessOptions = {
  /** Requests the engine has at one time; the others wait here, so that a slot can end between them. */
  readonly windowMax: number
  readonly restartDelayMs: number
  readonly restartDelayMsMax: number
}

export type EngineProcessDeps = {
  readonly clock: Clock
  readonly log: Logger
  /** What a new engine is filled with, in order. Asked at every start. */
  refill(): Iterable<EngineRequest>
  /** Starts the process; tests put another program in its place. */
  fork?: () => ChildProcess
}

export type EngineProcess = AsyncDisposable & {
  send(request: EngineRequest, done: EngineResponse): void
  /** Passes accounts and slot to the engine; resolves when it has them. An engine that is down gets them by its refill. */
  fill(requests: Iterable<EngineRequest>): Promise<void>
  /** Runs `then` as soon as the engine has nothing in hand, and holds back everything sent since until `resume`. */
  pause(then: () => void): void
  resume(): void
  pid(): number | undefined
  restarts(): number
}

type Job = {
  readonly request: EngineRequest
  readonly done: EngineResponse
  /** How many engines died while they had it. */
  deaths: number
  /** State rather than work: nobody waits for its answer, and a new engine gets it anyway. */
  readonly isFill: boolean
}

const DEFAULTS: EngineProcessOptions = { windowMax: 256, restartDelayMs: 50, restartDelayMsMax: 2_000 }
/** Requests that travel in one message. They are answered together, so many would leave callers and engine waiting for each other in turns. */
const BATCH_MAX = 8
/** A request that saw this many engines die is taken for the cause. The first time it may have been another's fault. */
const DEATHS_MAX = 2
/** Engines that died in a row without taking their fill; then what waits is answered instead of kept waiting. */
const FAILED_STARTS_MAX = 4

/** Resolves when the first engine has taken its fill; throws when none does. */
export async function startEngineProcess(deps: EngineProcessDeps, options = DEFAULTS): Promise<EngineProcess> {
  const { clock, log } = deps
  const waiting: Job[] = []
  const inHand = new Map<number, Job>()
  let child: ChildProcess | undefined
  let isFilled = false
  let isClosed = false
  let isPaused = false
  let isFlushing = false
  let onIdle: (() => void) | undefined
  let seq = 0
  /** Requests in hand whose answer somebody waits for. */
  let working = 0
  let restarts = 0
  let failedStarts = 0
  let restartTimer: Timer | undefined
  const firstFill = Promise.withResolvers<void>()

  function startChild(): void {
    const started = (deps.fork ?? forkEngine)()
    child = started
    started.on('message', (batch: FromEngine) => child === started && take(batch))
    started.on('exit', (code, signal) => child === started && died({ code, signal }))
    started.on('error', (err) => {
      log.warn({ err }, 'engine process reported an error')
      if (child === started && started.pid === undefined) died({ code: null, signal: null })
    })
    void fill(deps.refill()).then(() => {
      if (child === started) becomeReady()
    })
  }

  function becomeReady(): void {
    isFilled = true
    failedStarts = 0
    firstFill.resolve()
    flush()
  }

  function fill(requests: Iterable<EngineRequest>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const all = [...requests]
    all.forEach((request, index) => {
      const done: EngineResponse = (reply) => {
        noteRefused(reply)
        if (index === all.length - 1) resolve()
      }
      // One message each: a fill may be large, and the engine works on one while the next is on its way.
      post([{ request, done, deaths: DEATHS_MAX, isFill: true }])
    })
    if (all.length === 0) resolve()
    return promise
  }

  function noteRefused(reply: EngineReply | 'engine-down'): void {
    if (!reply || reply === 'engine-down' || !('refused' in reply)) return
    for (const { reason } of reply.refused) log.warn({ reason }, 'engine refused an account')
  }

  function post(jobs: readonly Job[]): void {
    const batch: ToEngine = jobs.map((job) => {
      inHand.set(++seq, job)
      if (!job.isFill) working++
      return { seq, request: job.request }
    })
    // A failure to write shows itself as the exit of the engine.
    child?.send(batch, () => {})
  }

  function take(batch: FromEngine): void {
    for (const { seq: responded, reply } of batch) {
      const job = inHand.get(responded)
      assert(job, 'the engine answered a request it was not asked')
      inHand.delete(responded)
      if (!job.isFill) working--
      job.done(reply)
    }
    settle()
    flush()
  }

  function died(how: { readonly code: number | null; readonly signal: NodeJS.Signals | null }): void {
    child = undefined
    isFilled = false
    // Nothing the engine had in hand was answered, so nothing of it has happened: it can all run again.
    const lost = [...inHand.values()]
    inHand.clear()
    working = 0
    for (const job of lost) job.deaths++
    waiting.unshift(...lost.filter((job) => job.deaths < DEATHS_MAX))
    for (const job of lost) if (job.deaths >= DEATHS_MAX) job.done('engine-down')
    if (isClosed) return
    failedStarts++
    if (failedStarts >= FAILED_STARTS_MAX) giveUpWaiting()
    restarts++
    const delayMs = Math.min(options.restartDelayMs * 2 ** (failedStarts - 1), options.restartDelayMsMax)
    log.warn({ ...how, inHand: lost.length, delayMs }, 'engine process died; starting another')
    restartTimer = clock.setTimer(delayMs, startChild)
    settle()
  }

  function giveUpWaiting(): void {
    firstFill.reject(new Error('the chain engine does not start'))
    for (const job of waiting.splice(0)) job.done('engine-down')
  }

  function settle(): void {
    if (!onIdle || working > 0) return
    const run = onIdle
    onIdle = undefined
    run()
  }

  /** After a death the suspects go one at a time, so that only the one at fault dies twice. They stand in front. */
  function flush(): void {
    while (isFilled && !isPaused && waiting.length > 0) {
      const isSuspect = (waiting[0] as Job).deaths > 0
      const room = isSuspect ? 1 - working : Math.min(options.windowMax - working, BATCH_MAX)
      if (room <= 0) return
      post(waiting.splice(0, room))
    }
  }

  function flushSoon(): void {
    if (isFlushing) return
    isFlushing = true
    setImmediate(() => {
      isFlushing = false
      flush()
    })
  }

  async function close(): Promise<void> {
    isClosed = true
    restartTimer?.cancel()
    const ending = child
    if (ending) {
      const { promise, resolve } = Promise.withResolvers<void>()
      ending.once('exit', () => resolve())
      ending.kill('SIGKILL')
      await promise
    }
    for (const job of waiting.splice(0)) job.done('engine-down')
  }

  startChild()
  try {
    await firstFill.promise
  } catch (error) {
    await close()
    throw error
  }

  return {
    send(request, done) {
      if (isClosed) return done('engine-down')
      waiting.push({ request, done, deaths: 0, isFill: false })
      flushSoon()
    },
    // An engine that is still taking its refill gets this after it; one not yet started will find it in its own.
    fill: (requests) => (child ? fill(requests) : Promise.resolve()),
    pause(then) {
      assert(!isPaused, 'the engine is paused already')
      isPaused = true
      onIdle = then
      settle()
    },
    resume() {
      isPaused = false
      flushSoon()
    },
    pid: () => child?.pid,
    restarts: () => restarts,
    [Symbol.asyncDispose]: close,
  }
}

function forkEngine(): ChildProcess {
  // In the published package the files are emitted JavaScript.
  const url = import.meta.url.endsWith('.ts')
    ? new URL('./child.ts', import.meta.url)
    : new URL('./child.js', import.meta.url)
  // It inherits no secret of the environment, no flag of the parent (a debugger's port, a test runner's) and no terminal.
  // Its heap is small and one thread does all of its work, so it gets by with little memory beside litesvm's own.
  return fork(fileURLToPath(url), [], {
    serialization: 'advanced',
    env: childEnv(),
    execArgv: ['--max-semi-space-size=2', '--v8-pool-size=1'],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
}
