import { type Backoff, createBackoff } from '../../core/backoff.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import { startWorker, type WorkerThread } from '../../platform/process/worker.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { RingWriterOptions } from './options.ts'
import type { RingWriterService, RingWriterStats } from './writer-service.ts'
import type { FromWriterThread, ToWriterThread } from './writer-thread.ts'

export type RingWriterWorkerDeps = { readonly log: Logger; readonly clock: Clock; readonly random: Random }

const RESTART = { firstMs: 500, maxMs: 30_000 }
const NO_STATS: RingWriterStats = {
  blocks: 0,
  txns: 0,
  repeatedRuns: 0,
  abandoned: 0,
  invalid: 0,
  skippedVotes: 0,
  events: 0,
  nextNumber: 0,
  failedBlocks: 0,
}

/** The ring writer in a thread of its own, on the system's clock. A thread that dies is started again, with a new ring. */
export async function startRingWriterWorker(
  options: RingWriterOptions,
  { log, clock, random }: RingWriterWorkerDeps,
): Promise<RingWriterService> {
  const backoff: Backoff = createBackoff(RESTART, random)
  const started = Promise.withResolvers<void>()
  let thread: WorkerThread<ToWriterThread> | undefined
  let restart: Timer | undefined
  let labels: RingWriterService['labels'] = new Map()
  let stats = NO_STATS
  let isPaused = false

  function take(message: FromWriterThread): void {
    switch (message.kind) {
      case 'started':
        labels = new Map(message.labels)
        if (isPaused) thread?.post({ kind: 'pause' })
        return started.resolve()
      case 'stats':
        stats = message.stats
        backoff.reset()
        return
      default:
        started.reject(new ServiceError('ring-unwritable', message.message))
        again(message.message)
    }
  }

  function again(reason: string): void {
    const delayMs = Math.round(backoff.nextMs())
    log.error({ reason, delayMs }, 'the simulated chain stopped; it is started again')
    restart = clock.setTimer(delayMs, start)
  }

  function start(): void {
    thread = startWorker<ToWriterThread, FromWriterThread>(threadEntry(), options, {
      onMessage: take,
      onDeath(error) {
        started.reject(error)
        again(error.message)
      },
    })
  }

  async function close(): Promise<void> {
    restart?.cancel()
    await thread?.[Symbol.asyncDispose]()
  }

  start()
  try {
    await started.promise
  } catch (error) {
    await close()
    throw error
  }
  log.info({ path: options.path, tps: options.tps }, 'a simulated chain writes the event ring')
  return {
    path: options.path,
    labels,
    stats: () => stats,
    pause() {
      isPaused = true
      thread?.post({ kind: 'pause' })
    },
    resume() {
      isPaused = false
      thread?.post({ kind: 'resume' })
    },
    [Symbol.asyncDispose]: close,
  }
}

function threadEntry(): URL {
  return import.meta.url.endsWith('.ts')
    ? new URL('./writer-thread.ts', import.meta.url)
    : new URL('./writer-thread.js', import.meta.url)
}
