import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { startWriterInWorker } from '../../platform/ring-file/writer-in-worker.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { RingWriterOptions } from './options.ts'
import type { RingWriterService, RingWriterStats } from './writer-service.ts'
import type { FromWriterThread, ToWriterThread } from './writer-thread.ts'

export type RingWriterWorkerDeps = { readonly log: Logger; readonly clock: Clock; readonly random: Random }

const RESET_AFTER_MS = 1000
/** What a block takes is garbage with the next one; the simulated chain has no use for larger portions. */
const YOUNG_MIB = 3
const THREAD = new URL('./writer-thread.ts', import.meta.url)
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

/** Runs the ring writer in a worker thread, on the system's clock. A restarted thread begins a new ring. */
export async function startRingWriterWorker(
  options: RingWriterOptions,
  { log, clock, random }: RingWriterWorkerDeps,
): Promise<RingWriterService> {
  let labels: RingWriterService['labels'] = new Map()
  let stats = NO_STATS
  let isPaused = false

  const supervised = await startWriterInWorker<ToWriterThread, FromWriterThread>(
    { entry: THREAD, data: options, resetAfterMs: RESET_AFTER_MS, youngMib: YOUNG_MIB },
    {
      clock,
      random,
      onMessage(message, thread, ready) {
        if (message.kind === 'stats') {
          stats = message.stats
          return
        }
        labels = new Map(message.labels)
        if (isPaused) thread.post({ kind: 'pause' })
        ready()
      },
      onRestart: ({ error, delayMs }) =>
        log.error({ reason: error.message, delayMs }, 'the simulated chain stopped and is restarted'),
    },
  )
  log.info({ path: options.path, tps: options.tps }, 'a simulated chain writes the event ring')
  return {
    path: options.path,
    labels,
    stats: () => stats,
    pause() {
      isPaused = true
      supervised.instance?.post({ kind: 'pause' })
    },
    resume() {
      isPaused = false
      supervised.instance?.post({ kind: 'resume' })
    },
    [Symbol.asyncDispose]: () => supervised[Symbol.asyncDispose](),
  }
}
