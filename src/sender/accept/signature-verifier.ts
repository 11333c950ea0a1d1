import { BoundedQueue } from '../../core/bounded-queue.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { type InstanceEvents, type Supervised, supervise } from '../../platform/process/supervise.ts'
import { startWorker, type WorkerThread } from '../../platform/process/worker.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { verifyOnThreadPool } from './verify-on-thread-pool.ts'
import { createVerifySignatures } from './verify-signatures.ts'
import type { FromVerifier, ToVerifier } from './verify-thread.ts'

export type SignatureVerifierOptions = {
  readonly threads: number
  /** Transactions that wait or are being verified; more are refused. */
  readonly checkingMax: number
  /** A transaction that has waited longer than this is not verified any more. */
  readonly delayMsMax: number
  /** Signatures that one turn of the event loop verifies itself; more go to the threads. */
  readonly inLoopPerTurn?: number | undefined
}

/** `late`: the transaction waited longer than `delayMsMax` and was not verified. */
export type Verdict = 'good' | 'bad' | 'late'

/**
 * Verifies signatures. A transaction that arrives while nothing else waits is verified at once, in the event loop: a thread would be woken for it, and
 * the loop for the verdict, which takes longer and costs half as much again. All others go to worker threads, so that the loop that
 * receives and sends is held for a fraction of a millisecond at most.
 */
export type SignatureVerifier = AsyncDisposable & {
  /** The verdict where it is made at once; `pending` where `done` is called with it, after this call; `full` when `checkingMax` is reached. */
  verify(
    wire: Uint8Array,
    transaction: ParsedTransaction,
    done: (verdict: Verdict) => void,
  ): 'good' | 'bad' | 'pending' | 'full'
  /**
   * How long a transaction that arrives now would wait for its verdict, estimated from recent verifications, and at least as long as the oldest has
   * waited. Verdicts that the event loop has not processed yet count as waiting, so a loop that falls behind shows here too.
   */
  readonly delayMs: number
  /** Threads that are ready. */
  readonly threads: number
}

export type SignatureVerifierDeps = BaseDeps & {
  /** The file of the threads; tests pass one that can die. */
  readonly entry?: URL
}

type Job = {
  readonly wire: Uint8Array
  readonly transaction: ParsedTransaction
  readonly done: (verdict: Verdict) => void
  readonly sinceMs: number
}

type Thread = WorkerThread<ToVerifier> & {
  /** Posted to the thread and without a verdict, in order. */
  readonly batches: Job[][]
}

/** Two take about as long as the way to a thread and back for the second of them. */
const IN_LOOP_PER_TURN = 2
/** The verdicts of a batch come together: a larger one costs fewer messages but delays the verdict of its first transaction. */
const BATCH = 4
/** The next batch is queued at the thread while it verifies one. */
const BATCHES_PER_THREAD = 2
/** The estimate before the first measurement. */
const SIGNATURE_MS_FIRST = 0.25
/** Weight of the newest measurement in the estimate. */
const NEWEST = 0.2
const RESTART = { firstMs: 1000, maxMs: 30_000 }
const RESET_AFTER_MS = 30_000
const THREAD = new URL('./verify-thread.ts', import.meta.url)

export function startSignatureVerifier(
  { threads: count, checkingMax, delayMsMax, inLoopPerTurn = IN_LOOP_PER_TURN }: SignatureVerifierOptions,
  { clock, random, log, entry = THREAD }: SignatureVerifierDeps,
): SignatureVerifier {
  const waiting = new BoundedQueue<Job>({ itemsMax: checkingMax })
  /** Signatures of all jobs without a verdict. */
  let signaturesPending = 0
  let jobsPending = 0
  let signatureMs = SIGNATURE_MS_FIRST
  const verifySignatures = createVerifySignatures()
  /** Signatures verified in the current turn of the event loop. */
  let inLoop = 0

  /** Only while no thread has work: under load the loop is needed for everything else. */
  function takesInLoop(signatures: number): boolean {
    if (jobsPending > 0 || inLoop + signatures > inLoopPerTurn) return false
    if (inLoop === 0)
      setImmediate(() => {
        inLoop = 0
      })
    inLoop += signatures
    return true
  }

  const threads: readonly Supervised<Thread>[] = Array.from({ length: count }, () =>
    supervise(
      { backoff: RESTART, resetAfterMs: RESET_AFTER_MS },
      {
        clock,
        random,
        start,
        onRestart: ({ error, delayMs }) =>
          log.error({ err: error, delayMs }, 'a signature verification thread died and is restarted'),
      },
    ),
  )

  function start(events: InstanceEvents): Thread {
    const batches: Job[][] = []
    const worker = startWorker<ToVerifier, FromVerifier>(entry, undefined, {
      onMessage(message) {
        if (message.kind === 'ready') events.ready()
        else onVerified(batches, message)
        pump()
      },
      onDeath(error) {
        events.failed(error)
        for (const job of batches.splice(0).flat()) verifyOnPool(job)
        pump()
      },
    })
    return { ...worker, batches }
  }

  function onVerified(batches: Job[][], { good, signatures, tookMs }: Extract<FromVerifier, { kind: 'verified' }>) {
    if (signatures > 0) signatureMs += NEWEST * (tookMs / signatures - signatureMs)
    const batch = batches.shift() ?? []
    // The thread gets its next batch before these verdicts are processed, so that it does not idle meanwhile.
    pump()
    for (const [index, job] of batch.entries()) finish(job, good[index] === true ? 'good' : 'bad')
  }

  function finish(job: Job, verdict: Verdict): void {
    signaturesPending -= job.transaction.signatures.length
    jobsPending -= 1
    job.done(verdict)
  }

  /** On libuv's thread pool: more expensive, and always available. */
  function verifyOnPool(job: Job): void {
    void verifyOnThreadPool(job.transaction).then((isGood) => finish(job, isGood ? 'good' : 'bad'))
  }

  /** The wait was estimated at arrival; where other work took the cores since then, it can still become too long. */
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
      if (thread === 'all-busy') return
      if (thread === 'none-ready') verifyOnPool(waiting.shift() as Job)
      else post(thread)
    }
  }

  function leastBusy(): Thread | 'none-ready' | 'all-busy' {
    let best: Thread | 'none-ready' | 'all-busy' = 'none-ready'
    for (const { state, instance } of threads) {
      if (state !== 'running' || instance === undefined) continue
      if (best === 'none-ready') best = 'all-busy'
      if (instance.batches.length >= BATCHES_PER_THREAD) continue
      if (best === 'all-busy' || instance.batches.length < best.batches.length) best = instance
    }
    return best
  }

  function post(thread: Thread): void {
    const batch: Job[] = []
    while (batch.length < BATCH && waiting.size > 0) batch.push(waiting.shift() as Job)
    thread.batches.push(batch)
    thread.post({ bytes: joined(batch), lengths: batch.map(({ wire }) => wire.length) })
  }

  return {
    verify(wire, transaction, done) {
      if (jobsPending >= checkingMax) return 'full'
      if (takesInLoop(transaction.signatures.length)) return verifySignatures(transaction) ? 'good' : 'bad'
      jobsPending += 1
      signaturesPending += transaction.signatures.length
      // The clock is read once: with two reads, a loop that stalls between them would make a new transaction late.
      const nowMs = clock.monotonicMs()
      waiting.offer({ wire, transaction, done, sinceMs: nowMs })
      pump(nowMs)
      return 'pending'
    },
    get delayMs() {
      const oldest = waiting.peek()
      const waitedMs = oldest === undefined ? 0 : clock.monotonicMs() - oldest.sinceMs
      const alive = threads.filter(({ instance }) => instance !== undefined).length
      return Math.max(waitedMs, (signaturesPending * signatureMs) / Math.max(1, alive))
    },
    get threads() {
      return threads.filter(({ state }) => state === 'running').length
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(threads.map((thread) => thread[Symbol.asyncDispose]()))
    },
  }
}

/** In a buffer of its own: a message clones the whole memory behind a view, and small buffers share pools of 64 KB. */
function joined(batch: readonly Job[]): Uint8Array {
  const bytes = new Uint8Array(batch.reduce((sum, { wire }) => sum + wire.length, 0))
  let offset = 0
  for (const { wire } of batch) {
    bytes.set(wire, offset)
    offset += wire.length
  }
  return bytes
}
