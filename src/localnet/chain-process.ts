import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Clock, Timer } from '../core/clock.ts'
import type { Logger } from '../host/logger.ts'
import type { EngineReply, EngineRequest, FromEngine, ToEngine } from './engine-protocol.ts'

/** Called once, in the order of `send`; `engine-down` when the engine died on this very request, or could not be started. */
export type EngineAnswer = (reply: EngineReply | 'engine-down') => void

export type EngineProcessOptions = {
  /** Requests the engine has at one time; the others wait here, so that a slot can end between them. */
  readonly windowMax: number
  readonly restartDelayMs: number
  readonly restartDelayMsMax: number
}

export type EngineProcessDeps = {
  readonly clock: Clock
  readonly log: Logger
  /** What a new engine is filled with, in order. Called at every start. */
  refill(): Iterable<EngineRequest>
}

export type EngineProcess = {
  send(request: EngineRequest, done: EngineAnswer): void
  /** Runs `then` as soon as the engine has nothing in hand, and holds back everything sent since until `resume`. */
  pause(then: () => void): void
  /** Passes `first` to the engine ahead of all that waited. An engine that is down gets the same by its refill. */
  resume(first: Iterable<EngineRequest>): void
  /** How many requests wait or are in the engine's hands. */
  backlog(): number
  pid(): number | undefined
  restarts(): number
  [Symbol.asyncDispose](): Promise<void>
}

type Job = { readonly request: EngineRequest; readonly done: EngineAnswer; deaths: number; readonly isFill?: true }

/** How often a request may have seen the engine die before it is given up. Once may be another request's fault. */
const DEATHS_MAX = 2

const ENGINE_PROCESS: EngineProcessOptions = { windowMax: 256, restartDelayMs: 50, restartDelayMsMax: 2_000 }

/** Resolves when the first engine has taken its fill. */
export async function startEngineProcess(deps: EngineProcessDeps, options = ENGINE_PROCESS): Promise<EngineProcess> {
  const { clock, log } = deps
  const waiting: Job[] = []
  const inHand = new Map<number, Job>()
  let child: ChildProcess | undefined
  let filled = false
  let closed = false
  let paused = false
  let onIdle: (() => void) | undefined
  let seq = 0
  /** Requests in hand whose answer somebody waits for. */
  let running = 0
  let restarts = 0
  let delayMs = options.restartDelayMs
  let restartTimer: Timer | undefined
  let flushing = false
  const first = Promise.withResolvers<void>()

  function startChild(): void {
    const path = fileURLToPath(
      new URL(import.meta.url.endsWith('.ts') ? './engine-child.ts' : './engine-child.js', import.meta.url),
    )
    // The engine inherits no secrets of the environment and no debugger port of the parent.
    const started = fork(path, [], {
      serialization: 'advanced',
      env: {},
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    child = started
    filled = false
    started.on('message', (batch: FromEngine) => child === started && take(batch))
    started.on('exit', (code, signal) => child === started && died({ code, signal }))
    started.on('error', (err) => log.warn({ err }, 'engine process reported an error'))

    const requests = [...deps.refill()]
    let missing = requests.length
    const fillDone = (reply: EngineReply | 'engine-down') => {
      if (reply === 'engine-down' || child !== started) return
      if (reply && 'refused' in reply)
        for (const { reason } of reply.refused) log.warn({ reason }, 'engine refused an account')
      if (--missing === 0) ready()
    }
    if (missing === 0) missing = 1
    for (const request of requests) post([{ request, done: fillDone, deaths: DEATHS_MAX, isFill: true }])
    if (requests.length === 0) setImmediate(() => fillDone(null))
  }

  function ready(): void {
    filled = true
    delayMs = options.restartDelayMs
    first.resolve()
    flush()
  }

  function post(jobs: readonly Job[]): void {
    const batch: ToEngine = jobs.map((job) => {
      inHand.set(++seq, job)
      return { seq, request: job.request }
    })
    running += jobs.filter((job) => !job.isFill).length
    // A failure to write shows itself as the exit of the engine.
    child?.send(batch, () => {})
  }

  function take(batch: FromEngine): void {
    for (const { seq: answered, reply } of batch) {
      const job = inHand.get(answered)
      assert(job, 'the engine answered a request it was not asked')
      inHand.delete(answered)
      if (!job.isFill) running--
      job.done(reply)
    }
    settle()
    flush()
  }

  function died(how: { code: number | null; signal: NodeJS.Signals | null }): void {
    child = undefined
    filled = false
    // The engine's work is lost, and none of it was answered: everything in hand can run again.
    const lost = [...inHand.values()]
    inHand.clear()
    running = 0
    const again = lost.filter((job) => ++job.deaths < DEATHS_MAX)
    waiting.unshift(...again)
    for (const job of lost) if (job.deaths >= DEATHS_MAX) job.done('engine-down')
    if (closed) return
    restarts++
    log.warn({ ...how, inHand: lost.length, delayMs }, 'engine process died; starting another')
    restartTimer = clock.setTimer(delayMs, startChild)
    delayMs = Math.min(delayMs * 2, options.restartDelayMsMax)
    settle()
  }

  function settle(): void {
    if (!onIdle || running > 0) return
    const run = onIdle
    onIdle = undefined
    run()
  }

  /** After a death the suspects go one at a time, so that only the one at fault dies twice. */
  function flush(): void {
    if (!filled || paused) return
    while (waiting.length > 0) {
      const suspect = (waiting[0] as Job).deaths > 0
      if (suspect ? running > 0 : running >= options.windowMax) return
      const end = waiting.findIndex((job) => job.deaths > 0)
      const count = suspect ? 1 : Math.min(options.windowMax - running, end < 0 ? waiting.length : end, BATCH_MAX)
      post(waiting.splice(0, count))
    }
  }

  function flushSoon(): void {
    if (flushing) return
    flushing = true
    setImmediate(() => {
      flushing = false
      flush()
    })
  }

  startChild()
  await first.promise

  return {
    send(request, done) {
      if (closed) return done('engine-down')
      waiting.push({ request, done, deaths: 0 })
      flushSoon()
    },
    pause(then) {
      assert(!paused, 'the engine is paused already')
      paused = true
      onIdle = then
      settle()
    },
    resume(requests) {
      paused = false
      if (filled) for (const request of requests) post([{ request, done: () => {}, deaths: DEATHS_MAX, isFill: true }])
      flush()
    },
    backlog: () => waiting.length + running,
    pid: () => child?.pid,
    restarts: () => restarts,
    async [Symbol.asyncDispose]() {
      closed = true
      restartTimer?.cancel()
      const ending = child
      if (ending) {
        await new Promise<void>((resolve) => {
          ending.once('exit', () => resolve())
          ending.kill('SIGKILL')
        })
      }
      for (const job of waiting.splice(0)) job.done('engine-down')
    },
  }
}

/** Requests that travel in one message; replies come when all of them are done. */
const BATCH_MAX = 64
