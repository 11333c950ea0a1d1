import type { Clock } from '../core/clock.ts'
import { isServiceError, messageOf } from '../core/error.ts'
import { CommitInDoubt, LOCK_WAIT_MS } from '../platform/db/sql.ts'
import { delay } from '../platform/process/clock.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import { type Calendar, HOUR_MS, MINUTE_MS } from './quota/calendar.ts'
import type { UsageInterface, UsageRow } from './store/model.ts'
import type { AccessStore } from './store/store.ts'

/** How often usage is written to the store: at most this much is lost when the process is killed. */
const FLUSH_MS = 1000
/** Rows per write, so that a synchronous store does not block the event loop for long. */
const BATCH_ROWS = 500
/** Between two attempts at shutdown while another process writes. */
const LOCK_RETRY_MS = 5
/** 64 MiB at about 256 bytes a row in memory. */
const WAITING_ROWS_MAX = 262_144

const INTERFACES = ['rpc', 'ws', 'grpc', 'indexer', 'shreds'] as const satisfies UsageInterface[]
const INDEX = Object.fromEntries(INTERFACES.map((name, at) => [name, at])) as Record<UsageInterface, number>
/** Per interface: calls, units, refused. */
const FIELDS = 3

/** Counts of one caller since the last flush. Callers of one subscription may have one each; the store sums them. */
export type UsageMeter = {
  readonly subscriptionId: string
  readonly tokenId: string
  readonly counts: number[]
  hour: number
  minute: number
  isDirty: boolean
}

export type UsageState = {
  readonly waitingRows: number
  /** Rows dropped because the store could not be written and `waitingRowsMax` was reached. */
  readonly lostRows: number
  readonly flushes: number
  /** Set while writes fail: the error code and since when. */
  readonly failing: { readonly code: string; readonly sinceMs: number } | undefined
}

export type Usage = AsyncDisposable & {
  createMeter(subscriptionId: string, tokenId: string): UsageMeter
  countAdmitted(meter: UsageMeter, at: UsageInterface, units: number): void
  countRefused(meter: UsageMeter, at: UsageInterface): void
  /** Reverts an admitted call. */
  countRefunded(meter: UsageMeter, at: UsageInterface, units: number): void
  /** Writes the waiting rows. Never throws: rows that could not be written stay. */
  flush(): Promise<void>
  state(): UsageState
}

export type UsageDeps = {
  readonly store: Pick<AccessStore, 'addUsage'>
  readonly calendar: Calendar
  readonly clock: Clock
  readonly log: Logger
  readonly waitingRowsMax?: number
}

type Waiting = { -readonly [Name in keyof UsageRow]: UsageRow[Name] }
type Used = readonly (readonly [string, number])[]

/**
 * Counts usage in memory and adds it to the store every second. While the store is locked or its disk is full, rows of the same hour, subscription
 * and interface are merged, so memory grows only with the number of active customers; at the limit the oldest rows are dropped and counted as lost.
 * Closing flushes, and waits for another writer as a change does.
 */
export function startUsage(deps: UsageDeps): Usage {
  const { store, calendar, clock, log, waitingRowsMax = WAITING_ROWS_MAX } = deps
  let dirty: UsageMeter[] = []
  let waiting = new Map<string, Waiting>()
  let lastUsed = new Map<string, number>()
  let lostRows = 0
  let flushes = 0
  let failing: UsageState['failing']
  let flushing: Promise<void> | undefined
  /** Rows whose commit was not confirmed. Nothing else is written until it is known whether they were committed. */
  let doubtful: { readonly rows: readonly Waiting[]; readonly used: Used; readonly by: CommitInDoubt } | undefined

  function touch(meter: UsageMeter, at: UsageInterface): number {
    if (meter.hour !== calendar.hour) {
      if (meter.isDirty) collect(meter)
      meter.hour = calendar.hour
    }
    if (meter.minute !== calendar.minute) {
      meter.minute = calendar.minute
      lastUsed.set(meter.tokenId, calendar.minute * MINUTE_MS)
    }
    if (!meter.isDirty) {
      meter.isDirty = true
      dirty.push(meter)
    }
    return INDEX[at] * FIELDS
  }

  /** Moves a meter's counts to the waiting rows. */
  function collect(meter: UsageMeter): void {
    for (let at = 0; at < INTERFACES.length; at++) {
      const [calls = 0, units = 0, refused = 0] = meter.counts.slice(at * FIELDS, (at + 1) * FIELDS)
      if (calls === 0 && units === 0 && refused === 0) continue
      const { subscriptionId } = meter
      const hour = meter.hour * HOUR_MS
      enqueue({ subscriptionId, hour, interface: INTERFACES[at] as UsageInterface, calls, units, refused })
    }
    meter.counts.fill(0)
  }

  function enqueue(row: Waiting): void {
    const key = `${row.hour}/${row.interface}/${row.subscriptionId}`
    const same = waiting.get(key)
    if (same === undefined) {
      waiting.set(key, row)
      return
    }
    same.calls += row.calls
    same.units += row.units
    same.refused += row.refused
  }

  function dropBeyondMax(): void {
    for (const key of waiting.keys()) {
      if (waiting.size <= waitingRowsMax) break
      waiting.delete(key)
      lostRows += 1
    }
    for (const key of lastUsed.keys()) {
      if (lastUsed.size <= waitingRowsMax) break
      lastUsed.delete(key)
    }
  }

  async function write(): Promise<void> {
    const meters = dirty
    dirty = []
    for (const meter of meters) {
      meter.isDirty = false
      collect(meter)
    }
    if (!(await settleDoubt())) return
    const rows = [...waiting.values()]
    const used = [...lastUsed]
    waiting = new Map()
    lastUsed = new Map()
    let written = 0
    try {
      for (let at = 0; at < Math.max(rows.length, used.length); at += BATCH_ROWS) {
        await store.addUsage(rows.slice(at, at + BATCH_ROWS), new Map(used.slice(at, at + BATCH_ROWS)))
        written = at + BATCH_ROWS
      }
      flushes += 1
      if (failing !== undefined)
        log.info({ forMs: clock.monotonicMs() - failing.sinceMs, lostRows }, 'usage is written again')
      failing = undefined
    } catch (error) {
      const next = error instanceof CommitInDoubt ? written + BATCH_ROWS : written
      if (error instanceof CommitInDoubt)
        doubtful = { rows: rows.slice(written, next), used: used.slice(written, next), by: error }
      requeue(rows.slice(next), used.slice(next))
      recordFailure(error)
    }
  }

  /** Resolves an unconfirmed commit: its rows are in the store or queued again. False when that is still unknown. */
  async function settleDoubt(): Promise<boolean> {
    if (doubtful === undefined) return true
    const { rows, used, by } = doubtful
    try {
      const isCommitted = await by.wasCommitted()
      doubtful = undefined
      if (!isCommitted) requeue(rows, used)
      return true
    } catch (error) {
      dropBeyondMax()
      recordFailure(error)
      return false
    }
  }

  /** Puts rows that were not written before those counted since, so that the oldest stay first. */
  function requeue(rows: readonly Waiting[], used: Used): void {
    const newer = waiting
    waiting = new Map()
    for (const row of rows) enqueue(row)
    for (const row of newer.values()) enqueue(row)
    lastUsed = new Map([...used, ...lastUsed])
    dropBeyondMax()
  }

  function recordFailure(error: unknown): void {
    const code = isServiceError(error) ? error.code : 'internal'
    if (failing?.code === code) return
    failing = { code, sinceMs: failing?.sinceMs ?? clock.monotonicMs() }
    // A locked store is transient: another process writes, and the next flush retries.
    if (code === 'store-locked') log.debug({ code }, 'usage waits for the store')
    else
      log.warn(
        { code, err: messageOf(error), waitingRows: waiting.size },
        'usage cannot be written and is held in memory',
      )
  }

  function isStoreLocked(): boolean {
    return failing?.code === 'store-locked'
  }

  function flush(): Promise<void> {
    flushing ??= write().finally(() => {
      flushing = undefined
    })
    return flushing
  }

  const timer = clock.setRepeating(FLUSH_MS, () => {
    calendar.update(clock.monotonicMs())
    void flush()
  })
  timer.unref?.()

  return {
    createMeter: (subscriptionId, tokenId) => ({
      subscriptionId,
      tokenId,
      counts: new Array<number>(INTERFACES.length * FIELDS).fill(0),
      hour: calendar.hour,
      minute: 0,
      isDirty: false,
    }),
    countAdmitted(meter, at, units) {
      const field = touch(meter, at)
      meter.counts[field] = (meter.counts[field] as number) + 1
      meter.counts[field + 1] = (meter.counts[field + 1] as number) + units
    },
    countRefused(meter, at) {
      const field = touch(meter, at)
      meter.counts[field + 2] = (meter.counts[field + 2] as number) + 1
    },
    countRefunded(meter, at, units) {
      const field = touch(meter, at)
      meter.counts[field] = (meter.counts[field] as number) - 1
      meter.counts[field + 1] = (meter.counts[field + 1] as number) - units
    },
    flush,
    state: () => ({ waitingRows: waiting.size + (doubtful?.rows.length ?? 0), lostRows, flushes, failing }),
    async [Symbol.asyncDispose]() {
      timer.cancel()
      await flushing
      await flush()
      // This is the last attempt, so it waits for another writer to finish.
      const untilMs = clock.monotonicMs() + LOCK_WAIT_MS
      while (isStoreLocked() && clock.monotonicMs() < untilMs) {
        await delay(clock, LOCK_RETRY_MS)
        await flush()
      }
      if (waiting.size > 0)
        log.error({ rows: waiting.size, code: failing?.code }, 'usage could not be written at shutdown and is lost')
      if (doubtful !== undefined)
        log.error({ rows: doubtful.rows.length }, 'it is unknown whether the last usage was written')
    },
  }
}
