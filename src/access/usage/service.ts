import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { createUlid } from '../../core/ulid.ts'
import { LOCK_WAIT_MS } from '../../platform/db/sql.ts'
import { delay } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { type Calendar, HOUR_MS, MINUTE_MS } from '../quota/calendar.ts'
import type { UsageCounts, UsageInterface } from '../store/model.ts'
import type { AccessStore } from '../store/store.ts'
import { OTHER_METHOD } from '../terms.ts'
import { UsageBooking, type UsageBookingState } from './booking.ts'
import { USAGE_INTERFACES, type UsageCounter, type UsageMeter } from './counter.ts'
import { EVENT, INTERFACE_INDEX, type UsageEvent } from './event-memory.ts'
import { UsageEventReader } from './event-reader.ts'
import type { UsageSpool } from './spool.ts'

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

/** Per interface: calls, units, refused, bytes. */
const FIELDS = 4
const BYTES_FIELD = 3

/** Counts of one caller since the last flush. Callers of one subscription may have one each; the store sums them. */
type CountingMeter = UsageMeter & {
  readonly counts: number[]
  /** By interface, and then by method, which is a name of `terms.ts`. */
  readonly methods: (Map<string, MethodCounts> | undefined)[]
  hour: number
  minute: number
  isDirty: boolean
}

type MethodCounts = { -readonly [Name in keyof UsageCounts]: UsageCounts[Name] }

export type UsageState = UsageBookingState

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
  const booking = new UsageBooking({ store, clock, log, spool, spoolId, waitingRowsMax })
  const readers = (deps.threads ?? []).map((memory) => new UsageEventReader(memory, { createMeter, add: addEvent }))
  let dirty: CountingMeter[] = []
  let flushing: Promise<void> | undefined

  function createMeter(subscriptionId: string, tokenId: string): CountingMeter {
    return {
      subscriptionId,
      tokenId,
      counts: new Array<number>(USAGE_INTERFACES.length * FIELDS).fill(0),
      methods: new Array<undefined>(USAGE_INTERFACES.length).fill(undefined),
      hour: calendar.hour,
      minute: 0,
      isDirty: false,
    }
  }

  /** A call is a use of the token; bytes are not, since a stream may have been opened days ago. */
  function touch(meter: CountingMeter, hour: number): void {
    if (meter.minute !== calendar.minute) {
      meter.minute = calendar.minute
      booking.queue.addUse(meter.tokenId, calendar.minute * MINUTE_MS)
    }
    enterHour(meter, hour)
  }

  function enterHour(meter: CountingMeter, hour: number): void {
    if (meter.hour !== hour) {
      if (meter.isDirty) collect(meter)
      meter.hour = hour
    }
    if (!meter.isDirty) {
      meter.isDirty = true
      dirty.push(meter)
    }
  }

  function addEvent(
    meter: CountingMeter,
    at: UsageInterface,
    kind: UsageEvent,
    hour: number,
    amount: number,
    method: string,
  ): void {
    if (kind === EVENT.bytes) return addBytes(meter, at, hour, amount)
    touch(meter, hour)
    if (kind === EVENT.admitted) add(meter, at, method, 1, amount, 0)
    else if (kind === EVENT.refused) add(meter, at, method, 0, 0, 1)
    else if (kind === EVENT.refunded) add(meter, at, method, -1, -amount, 0)
    else if (kind === EVENT.calls) add(meter, at, method, amount, 0, 0)
    else if (kind === EVENT.units) add(meter, at, method, 0, amount, 0)
    else add(meter, at, method, 0, 0, amount)
  }

  function addBytes(meter: CountingMeter, at: UsageInterface, hour: number, bytes: number): void {
    enterHour(meter, hour)
    const field = INTERFACE_INDEX[at] * FIELDS + BYTES_FIELD
    meter.counts[field] = (meter.counts[field] as number) + bytes
  }

  /** Adds what other threads have counted. */
  function drain(): void {
    if (readers.length === 0) return
    calendar.update(clock.monotonicMs())
    for (const reader of readers) reader.drain(calendar.hour)
  }

  /** Moves a meter's counts to the waiting rows. */
  function collect(meter: CountingMeter): void {
    for (let at = 0; at < USAGE_INTERFACES.length; at++) {
      const [calls = 0, units = 0, refused = 0, bytes = 0] = meter.counts.slice(at * FIELDS, (at + 1) * FIELDS)
      // The sum may be zero where the methods are not: one call charged, another one refunded.
      const methods = Object.fromEntries([...(meter.methods[at] ?? [])].filter(([, counts]) => !isZero(counts)))
      if (isZero({ calls, units, refused }) && bytes === 0 && Object.keys(methods).length === 0) continue
      const { subscriptionId } = meter
      const hour = meter.hour * HOUR_MS
      const row = {
        subscriptionId,
        hour,
        interface: USAGE_INTERFACES[at] as UsageInterface,
        calls,
        units,
        refused,
        bytes,
        methods,
      }
      booking.queue.add(row)
    }
    meter.counts.fill(0)
    meter.methods.fill(undefined)
  }

  function collectAll(): void {
    drain()
    const meters = dirty
    dirty = []
    for (const meter of meters) {
      meter.isDirty = false
      collect(meter)
    }
  }

  function flush(): Promise<void> {
    if (flushing === undefined) {
      collectAll()
      flushing = booking.flush().finally(() => {
        flushing = undefined
      })
    }
    return flushing
  }

  /** Waits for the store, but not for one that does not respond. */
  async function flushWithin(timeoutMs: number): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    using _timer = clock.setTimer(timeoutMs, resolve)
    await Promise.race([(flushing ?? Promise.resolve()).then(flush), late])
  }

  const isStoreLocked = () => booking.state().failing?.code === 'store-locked'

  const timer = clock.setRepeating(FLUSH_MS, () => {
    calendar.update(clock.monotonicMs())
    if (flushing === undefined) return void flush()
    collectAll()
    void booking.saveWhileWriting()
  })
  timer.unref?.()
  const draining = readers.length === 0 ? undefined : clock.setRepeating(DRAIN_MS, drain)
  draining?.unref?.()

  async function saveNow(): Promise<void> {
    collectAll()
    booking.close()
    if (booking.isSafe || (await saved())) return
    const { waitingRows: rows, failing } = booking.state()
    log.error({ rows, units: booking.waitingUnits(), code: failing?.code }, 'usage is lost: it could not be written')
  }

  async function saved(): Promise<boolean> {
    if (spool === undefined) return false
    return booking.save().then(
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
    collectAll()
    if (spool === undefined) return saveNow()
    let isReported = false
    while (!booking.isSafe && !(await saved())) {
      const { waitingRows: rows, spoolFailing } = booking.state()
      if (!isReported)
        log.error(
          { rows, units: booking.waitingUnits(), file: spool.name, reason: spoolFailing },
          'usage would be lost: neither the store nor the disk can be written; trying again until the drain ends',
        )
      isReported = true
      await delay(clock, CLOSE_RETRY_MS)
      await flushWithin(CLOSE_WRITE_MS)
      collectAll()
    }
    booking.close()
    const { waitingRows: rows, failing } = booking.state()
    if (rows > 0)
      log.warn(
        { rows, units: booking.waitingUnits(), code: failing?.code, file: spool.name },
        'usage is kept on the disk and is written to the store at the next start',
      )
  }

  return {
    createMeter,
    countAdmitted(meter: CountingMeter, at, units, method = OTHER_METHOD) {
      touch(meter, calendar.hour)
      add(meter, at, method, 1, units, 0)
    },
    countRefused(meter: CountingMeter, at, method = OTHER_METHOD) {
      touch(meter, calendar.hour)
      add(meter, at, method, 0, 0, 1)
    },
    countRefunded(meter: CountingMeter, at, units, method = OTHER_METHOD) {
      touch(meter, calendar.hour)
      add(meter, at, method, -1, -units, 0)
    },
    countBytes: (meter: CountingMeter, at, bytes) => addBytes(meter, at, calendar.hour, bytes),
    threadEnded(thread) {
      drain()
      readers[thread - 1]?.reset()
    },
    flush,
    saveNow,
    state() {
      drain()
      return booking.state()
    },
    [Symbol.asyncDispose]: close,
  }
}

function add(
  { counts, methods }: CountingMeter,
  at: UsageInterface,
  method: string,
  calls: number,
  units: number,
  refused: number,
): void {
  const index = INTERFACE_INDEX[at]
  const field = index * FIELDS
  counts[field] = (counts[field] as number) + calls
  counts[field + 1] = (counts[field + 1] as number) + units
  counts[field + 2] = (counts[field + 2] as number) + refused
  // A caller uses few methods, so their counts are created when they are first used.
  const byMethod = (methods[index] ??= new Map())
  let own = byMethod.get(method)
  if (own === undefined) {
    own = { calls: 0, units: 0, refused: 0 }
    byMethod.set(method, own)
  }
  own.calls += calls
  own.units += units
  own.refused += refused
}

function isZero({ calls, units, refused }: UsageCounts): boolean {
  return calls === 0 && units === 0 && refused === 0
}
