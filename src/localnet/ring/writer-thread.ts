import { systemClock } from '../../platform/process/clock.ts'
import { openWorkerPort } from '../../platform/process/worker.ts'
import { createLogger } from '../../platform/telemetry/logger.ts'
import type { RingWriterOptions } from './options.ts'
import { type RingWriterStats, startRingWriter } from './writer-service.ts'

export type ToWriterThread = { kind: 'pause' | 'resume' }

export type FromWriterThread =
  | { kind: 'started'; labels: [address: `0x${string}`, label: string][] }
  | { kind: 'stats'; stats: RingWriterStats }
  | { kind: 'failed'; message: string }

const STATS_MS = 1000

/** Entry point of the simulated chain's worker thread, which keeps its load off the other event loops. */
const port = openWorkerPort<ToWriterThread, FromWriterThread>()
if (port !== undefined) {
  const options = port.data as RingWriterOptions
  try {
    const writer = await startRingWriter(options, { log: createLogger({ level: 'warn' }), clock: systemClock })
    port.post({ kind: 'started', labels: [...writer.labels] })
    const reporting = systemClock.setRepeating(STATS_MS, () => port.post({ kind: 'stats', stats: writer.stats() }))
    port.onMessage(({ kind }) => writer[kind]())
    port.onEnd(() => {
      reporting.cancel()
      void writer[Symbol.asyncDispose]()
    })
  } catch (error) {
    port.post({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
  }
}
