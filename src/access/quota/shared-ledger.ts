import type { Clock } from '../../core/clock.ts'
import type { RedisLink, RedisOutcome } from '../../platform/db/redis.ts'
import { settledWithin } from '../../platform/process/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { AccessMetrics } from '../metrics.ts'
import { applyBooked, goLocal, takeBooking } from './booking.ts'
import type { Calendar } from './calendar.ts'
import { ACCOUNTS_MAX, createLedger, type Ledger } from './ledger.ts'
import { QuotaMemory } from './memory.ts'
import { createQuotaMemory, MARK } from './memory-layout.ts'
import { createPermitExchange } from './permit-exchange.ts'
import { BOOK_SCRIPT, bookingArgs, LIVE_SCRIPT, parseBooked, parseHeartbeat } from './redis-script.ts'

/** Interval of heartbeats, and the longest time without one. */
const HEARTBEAT_MS = 1000
const SILENCE_MS_MAX = 5000
/** The longest time until spending is booked. */
const BOOK_EVERY_MS = 250
/** Bookings in flight; further ones wait. */
const BOOKINGS_MAX = 128
/** How long closing waits for the last bookings. */
const CLOSE_MS = 2000
/** Attempts to book everything at closing, BOOKINGS_MAX at a time. */
const LAST_ATTEMPTS_MAX = 64

export type SharedLedgerOptions = {
  readonly keyPrefix: string
  /** Identifies this process among those that share the ledger. */
  readonly processId: string
  /** Number of processes to assume before the server was reached for the first time. */
  readonly processesAssumed: number
  /** The longest time without a heartbeat; for tests. */
  readonly silenceMsMax?: number
}

export type SharedLedgerDeps = {
  readonly redis: Pick<RedisLink, 'run' | 'tried'>
  readonly calendar: Calendar
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<AccessMetrics, 'sharedSyncs'>
  /** Units spent this month before the process started, from the store. */
  readonly spentBefore?: ReadonlyMap<string, number>
  /** The accounts of the process; a memory of its own where it is missing. */
  readonly memory?: QuotaMemory | undefined
  readonly limitsVersion?: (() => number) | undefined
  /** Called when the shared ledger becomes unreachable or reachable. */
  onState?(isUp: boolean): void
  readonly accountsMax?: number
}

export type SharedLedger = Ledger &
  AsyncDisposable & {
    state(): { readonly isUp: boolean; readonly processes: number }
    /** Sends the bookings that the accounts of any thread have requested, and the permits they have opened. */
    sendRequested(): void
    /** Only the permits; the accounts are not searched for bookings. */
    sendRequestedPermits(): void
  }

/**
 * One quota for several processes, in Redis or Valkey. Admission cannot wait for a server, so each process has a permanent lease on every
 * subscription: it may spend one chunk before booking it. It decides on its estimate of the level, books its spending in the background with one
 * atomic script, and takes the true level from the reply. All spending is booked, so spending ahead is paid back.
 *
 * With P processes, and chunk = min(capacity, max(one second of the rate, the most expensive call, the items of a batch)), over any W seconds
 *
 *     admitted ≤ capacity + rate × W + P × chunk
 *
 * and the long-run average is the rate. The units of a month are exceeded by at most P × chunk. While the server is unreachable each process uses
 * rate ÷ P and capacity ÷ P, with the last known P; afterwards it books the spending that its local bucket has not refilled, and all units of the
 * month. See docs/decisions/0004-quota-leases.md.
 *
 * Permits are shared through the same server: see `permit-exchange.ts`.
 */
export async function startSharedLedger(options: SharedLedgerOptions, deps: SharedLedgerDeps): Promise<SharedLedger> {
  const { redis, calendar, clock, log, metrics, accountsMax = ACCOUNTS_MAX } = deps
  const memory = deps.memory ?? new QuotaMemory(createQuotaMemory({ accountsMax, threads: 1 }), 0)
  const context = { memory, calendar }
  const { keyPrefix, processId, silenceMsMax = SILENCE_MS_MAX } = options
  /** Cells of accounts that wait for their booking, and of those whose booking is in flight. */
  const waiting = new Set<number>()
  const sending = new Map<number, Promise<void>>()
  let isUp: boolean | undefined
  let isClosed = false
  let processes = options.processesAssumed
  const ledger = createLedger({
    memory,
    calendar,
    limitsVersion: deps.limitsVersion,
    requestBookings: sendRequested,
    spentBefore: deps.spentBefore,
  })
  const permits = createPermitExchange(
    { keyPrefix, processId, silenceMsMax, processesAssumed: processes },
    { redis, memory, clock, onFailed },
  )

  function sendRequested(): void {
    permits.sendRequested()
    for (const cell of memory.takeMarked(MARK.requested)) if (!sending.has(cell)) waiting.add(cell)
    sendWaiting()
  }

  function sendUnbooked(): void {
    permits.send()
    for (const cell of memory.takeMarked(MARK.unbooked)) waiting.add(cell)
    sendWaiting()
  }

  function sendWaiting(): void {
    if (isUp !== true) return
    for (const cell of waiting) {
      if (sending.size >= BOOKINGS_MAX) return
      if (sending.has(cell)) continue
      waiting.delete(cell)
      sending.set(
        cell,
        book(cell).finally(() => {
          sending.delete(cell)
          sendWaiting()
        }),
      )
    }
  }

  async function book(cell: number): Promise<void> {
    const sent = takeBooking(context, cell, clock.monotonicMs())
    if (sent === undefined) return
    const subscriptionId = memory.nameOf(cell)
    const keys = [`${keyPrefix}:quota:${subscriptionId}`, `${keyPrefix}:quota-booked:${subscriptionId}:${processId}`]
    const outcome = await redis.run(BOOK_SCRIPT, keys, bookingArgs(sent.booking))
    const booked = outcome.ok ? parseBooked(outcome.reply, sent.booking.buckets.length) : undefined
    if (booked === undefined) {
      memory.mark(MARK.unbooked, cell)
      onFailed(outcome)
      return
    }
    metrics.sharedSyncs.booked.inc()
    applyBooked(context, cell, sent, booked, clock.monotonicMs())
  }

  function onFailed(outcome: RedisOutcome): void {
    metrics.sharedSyncs.failed.inc()
    // `busy` means too many commands in flight, not an unreachable server.
    if (outcome.ok || outcome.reason !== 'busy') setState(false, outcome.ok ? 'unexpected reply' : outcome.message)
  }

  function setState(up: boolean, message = ''): void {
    if (isClosed || isUp === up) return
    const isFirst = isUp === undefined
    isUp = up
    memory.setLocalShare(up ? undefined : 1 / processes)
    if (up) {
      log.info({ processes }, isFirst ? 'quota is shared' : 'quota is shared again')
      for (const cell of openAccounts()) waiting.add(cell)
      sendWaiting()
    } else {
      log.warn({ processes, err: message }, 'shared quota is unreachable: this process uses its local share')
      waiting.clear()
      permits.lost()
      for (const cell of openAccounts()) goLocal(context, cell, 1 / processes, clock.monotonicMs())
    }
    deps.onState?.(up)
  }

  function* openAccounts(): Generator<number> {
    for (let cell = 1; cell < memory.cellsEnd; cell++) if (memory.isOpen(cell)) yield cell
  }

  const report = (what: 'stay' | 'leave') =>
    redis.run(
      LIVE_SCRIPT,
      [`${keyPrefix}:quota-processes`, permits.key, `${keyPrefix}:quota-since`],
      [processId, String(silenceMsMax), what],
    )

  async function sendHeartbeat(): Promise<void> {
    const outcome = await report('stay')
    const heartbeat = outcome.ok ? parseHeartbeat(outcome.reply) : undefined
    // Nothing is booked while the server is away, so this is the only sign that it still is.
    if (heartbeat === undefined) return onFailed(outcome)
    processes = heartbeat.processes
    setState(true)
    permits.joined(heartbeat)
  }

  await redis.tried
  // The first reply decides whether the process starts with the shared ledger or with its local share.
  await sendHeartbeat()
  const heartbeats = clock.setRepeating(HEARTBEAT_MS, () => void sendHeartbeat())
  const bookings = clock.setRepeating(BOOK_EVERY_MS, sendUnbooked)
  heartbeats.unref?.()
  bookings.unref?.()

  return {
    ...ledger,
    sendRequested,
    sendRequestedPermits: permits.sendRequested,
    state: () => ({ isUp: isUp === true, processes }),
    async [Symbol.asyncDispose]() {
      heartbeats.cancel()
      bookings.cancel()
      if (isUp === true) {
        const last = (async () => {
          // Units spent during a booking are in the next one.
          for (let attempt = 0; attempt < LAST_ATTEMPTS_MAX && isUp === true; attempt++) {
            sendUnbooked()
            if (sending.size === 0) break
            await Promise.all(sending.values())
          }
          await report('leave')
        })()
        await settledWithin(last, CLOSE_MS, clock)
      }
      isClosed = true
    },
  }
}
