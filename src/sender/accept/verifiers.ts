import { BoundedQueue } from '../../core/bounded-queue.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import { startWorker, type WorkerThread } from '../../platform/process/worker.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { verifyAsync } from './verify.ts'
import type { FromVerifier, ToVerifier } from './verify-thread.ts'

export type VerifiersOptions = {
  readonly threads: number
  /** Transactions that wait or are being checked; more are not taken. */
  readonly checkingMax: number
  /** One that has waited for so long when its turn comes is not checked any more. */
  readonly delayMsMax: number
}

/** `late`: it had waited for too long, and was not looked at. */
export type Verdict = 'good' | 'bad' | 'late'

/** Checks signatures on threads of its own, so that the loop which reads and sends is never held up by one. */
export type Verifiers = AsyncDisposable & {
  /** False when too many wait; `done` is then not called. */
  check(wire: Uint8Array, transaction: ParsedTransaction, done: (verdict: Verdict) => void): boolean
  /**
   * How long one that comes now would wait for its result, by what a check took lately, and never less than the oldest has waited already.
   * Results that the loop has not come to count as waiting, so that a loop which falls behind shows here too.
   */
  readonly delayMs: number
  /** Threads that are up. */
  readonly threads: number
}

export type VerifiersDeps = {
  readonly clock: Clock
  readonly log: Logger
  /** What the threads run. */
  readonly entry?: URL
}

type Job = {
  readonly wire: Uint8Array
  readonly transaction: ParsedTransaction
  readonly done: (verdict: Verdict) => void
  readonly sinceMs: number
}

type Thread = {
  worker: WorkerThread<ToVerifier>
  isReady: boolean
  /** Given to the thread and not answered, in order. */
  batches: Job[][]
}

/** A batch is answered as a whole: a larger one costs fewer messages and keeps its first transaction waiting for longer. */
const BATCH = 4
/** While one is being checked the next lies ready. */
const BATCHES_PER_THREAD = 2
/** A first guess, until something was measured. */
const SIGNATURE_MS_FIRST = 0.25
const RESTART_MS = 1000
/** Weight of the newest measurement. */
const NEWEST = 0.2

export function startVerifiers(
  { threads: count, checkingMax, delayMsMax }: VerifiersOptions,
  { clock, log, entry = threadFile() }: VerifiersDeps,
): Verifiers {
  const waiting = new BoundedQueue<Job>({ itemsMax: checkingMax })
  const threads = new Set<Thread>()
  const restarts = new Set<Timer>()
  let isClosed = false
  /** Of all jobs that are not done. */
  let signaturesLeft = 0
  let jobsLeft = 0
  let signatureMs = SIGNATURE_MS_FIRST

  function start(): void {
    const thread: Thread = {
      isReady: false,
      batches: [],
      worker: startWorker<ToVerifier, FromVerifier>(entry, undefined, {
        onMessage(message) {
          if (message.kind === 'ready') thread.isReady = true
          else onChecked(thread, message)
          pump()
        },
        onDeath(error) {
          log.error({ err: error }, 'a thread that checks signatures is gone and is started again')
          threads.delete(thread)
          for (const job of thread.batches.splice(0).flat()) checkHere(job)
          const timer = clock.setTimer(RESTART_MS, () => {
            restarts.delete(timer)
            if (!isClosed) start()
          })
          timer.unref?.()
          restarts.add(timer)
          pump()
        },
      }),
    }
    threads.add(thread)
  }

  function onChecked(thread: Thread, { good, signatures, tookMs }: Extract<FromVerifier, { kind: 'checked' }>) {
    if (signatures > 0) signatureMs += NEWEST * (tookMs / signatures - signatureMs)
    const batch = thread.batches.shift() ?? []
    // The thread is given more before these results are worked on: it should not wait for that.
    pump()
    for (const [at, job] of batch.entries()) finish(job, good[at] === true ? 'good' : 'bad')
  }

  function finish(job: Job, verdict: Verdict): void {
    signaturesLeft -= job.transaction.signatures.length
    jobsLeft -= 1
    job.done(verdict)
  }

  /** On the runtime's own threads: dearer, and always there. */
  function checkHere(job: Job): void {
    void verifyAsync(job.transaction).then((isGood) => finish(job, isGood ? 'good' : 'bad'))
  }

  /** The wait was foretold when it was taken; where the cores were needed elsewhere meanwhile, it is told to come back after all. */
  function dropLate(nowMs: number): void {
    const lateMs = nowMs - delayMsMax
    for (let job = waiting.peek(); job !== undefined && job.sinceMs < lateMs; job = waiting.peek()) {
      waiting.shift()
      finish(job, 'late')
    }
  }

  function pump(nowMs = clock.monotonicMs()): void {
    dropLate(nowMs)
    while (waiting.size > 0) {
      const thread = leastBusy()
      if (thread === undefined) return
      if (thread === 'none') checkHere(waiting.shift() as Job)
      else post(thread)
    }
  }

  /** Undefined when all are busy. */
  function leastBusy(): Thread | 'none' | undefined {
    let best: Thread | 'none' | undefined = 'none'
    for (const thread of threads) {
      if (!thread.isReady) continue
      if (best === 'none') best = undefined
      if (thread.batches.length >= BATCHES_PER_THREAD) continue
      if (best === undefined || thread.batches.length < best.batches.length) best = thread
    }
    return best
  }

  function post(thread: Thread): void {
    const batch: Job[] = []
    while (batch.length < BATCH && waiting.size > 0) batch.push(waiting.shift() as Job)
    thread.batches.push(batch)
    thread.worker.post({ bytes: joined(batch), lengths: batch.map(({ wire }) => wire.length) })
  }

  for (let n = 0; n < count; n++) start()

  return {
    check(wire, transaction, done) {
      if (jobsLeft >= checkingMax) return false
      jobsLeft += 1
      signaturesLeft += transaction.signatures.length
      // The clock is read once: where the loop is held up between two looks at it, one that came just now would be late already.
      const nowMs = clock.monotonicMs()
      waiting.offer({ wire, transaction, done, sinceMs: nowMs })
      pump(nowMs)
      return true
    },
    get delayMs() {
      const oldest = waiting.peek()
      const waitedMs = oldest === undefined ? 0 : clock.monotonicMs() - oldest.sinceMs
      return Math.max(waitedMs, (signaturesLeft * signatureMs) / Math.max(1, threads.size))
    },
    get threads() {
      return [...threads].filter(({ isReady }) => isReady).length
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      for (const timer of restarts) timer.cancel()
      await Promise.all([...threads].map(({ worker }) => worker[Symbol.asyncDispose]()))
    },
  }
}

/** In memory of its own: a message takes along all of what a buffer is a part of, and small buffers are parts of 64 KB that many share. */
function joined(batch: readonly Job[]): Uint8Array {
  const bytes = new Uint8Array(batch.reduce((sum, { wire }) => sum + wire.length, 0))
  let at = 0
  for (const { wire } of batch) {
    bytes.set(wire, at)
    at += wire.length
  }
  return bytes
}

function threadFile(): URL {
  return import.meta.url.endsWith('.ts')
    ? new URL('./verify-thread.ts', import.meta.url)
    : new URL('./verify-thread.js', import.meta.url)
}
