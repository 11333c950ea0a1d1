import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { createUlid } from '../../core/ulid.ts'
import { LOCK_WAIT_MS } from '../../platform/db/sql.ts'
import { delay, settledWithin } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import type { TimeSlices } from '../../platform/process/time-slices.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { Calendar } from '../quota/calendar.ts'
import type { AccessStore } from '../store/store.ts'
import type { UsageCounter } from './counter.ts'
import { UsageEventReader } from './event-reader.ts'
import { createUsageMeters } from './meters.ts'
import type { UsageSpool } from './spool.ts'
import { type UsageState, UsageWriter } from './writer.ts'

/** How often usage is written to the store, or to the disk while the store is away: at most this much is lost when the process is killed. */
const FLUSH_MS = 1000
/** Between two attempts at shutdown while another process writes. */
const LOCK_RETRY_MS = 5
/** How long the shutdown waits for a store that does not respond, before it saves usage on the disk. */
const CLOSE_WRITE_MS = 3000
/** Between two attempts at shutdown while neither the store nor the disk can be written. */
const CLOSE_RETRY_MS = 1000
/** 64 MiB at about 256 bytes a row in memory. */
const WAITING_ROWS_MAX = 262_144

/** How often the events of other threads are read. */
const DRAIN_MS = 100

export type Usage = AsyncDisposable &
  UsageCounter & {
    /** Writes the waiting rows. Never throws: rows that could not be written stay. */
    flush(): Promise<void>
    /** Reads the last events of a thread that has ended, and makes its memory ready for the next instance. */
    threadEnded(thread: number): void
    /** For a process that ends without closing: saves on the disk what is not in the store, and logs what is lost. Never throws. */
    saveNow(): Promise<void>
    state(): UsageState
  }

export type UsageDeps = {
  readonly store: Pick<AccessStore, 'addUsage'>
  readonly calendar: Calendar
  readonly clock: Clock
  readonly log: Logger
  /** Where usage is kept while the store cannot be written; without it, in memory. Closed by the caller. */
  readonly spool?: UsageSpool | undefined
  readonly random?: Random
  readonly waitingRowsMax?: number
  readonly slices?: TimeSlices
  /** The events of other threads, from `createUsageMemory`. */
  readonly threads?: readonly SharedArrayBuffer[]
}

/**
 * Counts usage in memory and adds it to the store every second. While the store cannot be written, usage is saved on the disk every second instead,
 * and added to the store when it is back, by this process or the next one. Rows of the same hour, subscription and interface are merged, so that
 * memory and disk grow only with the number of active customers; at the limit the oldest rows are dropped and counted as lost.
 */
export function startUsage(deps: UsageDeps): Usage {
  const { store, calendar, clock, log, spool, random = secureRandom, waitingRowsMax = WAITING_ROWS_MAX } = deps
  const spoolId = createUlid(clock.nowMs(), random)
  const writer = new UsageWriter({ store, clock, log, spool, spoolId, waitingRowsMax, slices: deps.slices })
  const meters = createUsageMeters(calendar, writer.queue)
  const readers = (deps.threads ?? []).map((memory) => new UsageEventReader(memory, meters))
  let flushing: Promise<void> | undefined

  /** Adds what other threads have counted. */
  function drain(): void {
    if (readers.length === 0) return
    calendar.update(clock.monotonicMs())
    for (const reader of readers) reader.drain(calendar.hour)
  }

  function collect(): void {
    drain()
    meters.collect()
  }

  function flush(): Promise<void> {
    if (flushing === undefined) {
      collect()
      flushing = writer.flush().finally(() => {
        flushing = undefined
      })
    }
    return flushing
  }

  /** Waits for the store, but not for one that does not respond. */
  function flushWithin(timeoutMs: number): Promise<void> {
    return settledWithin((flushing ?? Promise.resolve()).then(flush), timeoutMs, clock)
  }

  const isStoreLocked = () => writer.state().failing?.code === 'store-locked'

  const timer = clock.setRepeating(FLUSH_MS, () => {
    calendar.update(clock.monotonicMs())
    if (flushing === undefined) return void flush()
    collect()
    void writer.saveWhileWriting()
  })
  timer.unref?.()
  const draining = readers.length === 0 ? undefined : clock.setRepeating(DRAIN_MS, drain)
  draining?.unref?.()

  async function saveNow(): Promise<void> {
    collect()
    writer.close()
    if (writer.isSafe || (await saved())) return
    const { waitingRows: rows, failing } = writer.state()
    log.error({ rows, units: writer.waitingUnits(), code: failing?.code }, 'usage is lost: it could not be written')
  }

  async function saved(): Promise<boolean> {
    if (spool === undefined) return false
    return writer.save().then(
      () => true,
      () => false,
    )
  }

  async function close(): Promise<void> {
    timer.cancel()
    draining?.cancel()
    await flushWithin(CLOSE_WRITE_MS)
    // This is the last attempt, so it waits for another writer to finish.
    const untilMs = clock.monotonicMs() + LOCK_WAIT_MS
    while (isStoreLocked() && clock.monotonicMs() < untilMs) {
      await delay(clock, LOCK_RETRY_MS)
      await flushWithin(CLOSE_WRITE_MS)
    }
    collect()
    if (spool === undefined) return saveNow()
    let isReported = false
    while (!writer.isSafe && !(await saved())) {
      const { waitingRows: rows, spoolFailing } = writer.state()
      if (!isReported)
        log.error(
          { rows, units: writer.waitingUnits(), file: spool.name, reason: spoolFailing },
          'usage would be lost: neither the store nor the disk can be written; trying again until the drain ends',
        )
      isReported = true
      await delay(clock, CLOSE_RETRY_MS)
      await flushWithin(CLOSE_WRITE_MS)
      collect()
    }
    writer.close()
    const { waitingRows: rows, failing } = writer.state()
    if (rows > 0)
      log.warn(
        { rows, units: writer.waitingUnits(), code: failing?.code, file: spool.name },
        'usage is kept on the disk and is written to the store at the next start',
      )
  }

  const { createMeter, countAdmitted, countRefused, countRefunded, countBytes } = meters
  return {
    createMeter,
    countAdmitted,
    countRefused,
    countRefunded,
    countBytes,
    threadEnded(thread) {
      drain()
      readers[thread - 1]?.reset()
    },
    flush,
    saveNow,
    state() {
      drain()
      return writer.state()
    },
    [Symbol.asyncDispose]: close,
  }
}
