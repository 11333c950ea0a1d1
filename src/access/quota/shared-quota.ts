import type { Clock } from '../../core/clock.ts'
import type { RedisLink } from '../../platform/db/redis.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { AccessMetrics } from '../metrics.ts'
import type { Terms } from '../terms.ts'
import type { Calendar } from './calendar.ts'
import type { QuotaLedger } from './charge.ts'
import { BOOK_SCRIPT, bookingArgs, LIVE_SCRIPT, parseBooked } from './redis-script.ts'
import { type AccountLedger, SharedAccount } from './shared-account.ts'

/** Interval of heartbeats, and the longest time without one. */
const HEARTBEAT_MS = 1000
const SILENCE_MS_MAX = 5000
/** The longest time until spending is booked. */
const BOOK_EVERY_MS = 250
/** Bookings in flight; further ones wait. */
const BOOKINGS_MAX = 128
/** Open accounts; beyond it the oldest is closed as if it were idle. */
const ACCOUNTS_MAX = 250_000
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
}

export type SharedLedgerDeps = {
  readonly redis: Pick<RedisLink, 'run' | 'tried'>
  readonly calendar: Calendar
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<AccessMetrics, 'sharedSyncs'>
  /** Units spent this month before the process started, from the store. */
  readonly spentBefore?: ReadonlyMap<string, number>
  /** Called when the shared ledger becomes unreachable or reachable. */
  onState?(isUp: boolean): void
  readonly accountsMax?: number
}

export type SharedLedger = QuotaLedger &
  AsyncDisposable & {
    state(): { readonly isUp: boolean; readonly processes: number }
    accounts(): number
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
 */
export async function startSharedLedger(options: SharedLedgerOptions, deps: SharedLedgerDeps): Promise<SharedLedger> {
  const { redis, calendar, clock, log, metrics, accountsMax = ACCOUNTS_MAX } = deps
  const accounts = new Map<string, SharedAccount>()
  /** Units of the month of subscriptions whose account is closed. */
  const spent = new Map<string, number>(deps.spentBefore)
  let spentMonth = calendar.month
  const unbooked = new Set<SharedAccount>()
  const requested = new Set<SharedAccount>()
  const sending = new Map<SharedAccount, Promise<void>>()
  let opened = 0
  let isUp: boolean | undefined
  let isClosed = false
  let processes = options.processesAssumed

  const accountLedger: AccountLedger = {
    calendar,
    markUnbooked: (account) => void unbooked.add(account),
    requestBooking(account) {
      if (isUp !== true || sending.has(account)) return
      requested.add(account)
      sendRequested()
    },
  }

  function sendRequested(): void {
    for (const account of requested) {
      if (sending.size >= BOOKINGS_MAX) return
      requested.delete(account)
      if (sending.has(account)) continue
      sending.set(
        account,
        book(account).finally(() => {
          sending.delete(account)
          sendRequested()
        }),
      )
    }
  }

  async function book(account: SharedAccount): Promise<void> {
    const sent = account.book(clock.monotonicMs())
    unbooked.delete(account)
    const { subscriptionId, spenderId } = account
    const keys = [
      `${options.keyPrefix}:quota:${subscriptionId}`,
      `${options.keyPrefix}:quota-booked:${subscriptionId}:${spenderId}`,
    ]
    const outcome = await redis.run(BOOK_SCRIPT, keys, bookingArgs(sent.booking))
    const booked = outcome.ok ? parseBooked(outcome.reply, sent.booking.buckets.length) : undefined
    if (booked === undefined) {
      metrics.sharedSyncs.failed.inc()
      unbooked.add(account)
      // `busy` means too many commands in flight, not an unreachable server.
      if (outcome.ok || outcome.reason !== 'busy') setState(false, outcome.ok ? 'unexpected reply' : outcome.message)
      return
    }
    metrics.sharedSyncs.booked.inc()
    account.applyBooked(sent, booked, clock.monotonicMs())
    if (account.hasUnbooked) unbooked.add(account)
  }

  function setState(up: boolean, message = ''): void {
    if (isClosed || isUp === up) return
    const isFirst = isUp === undefined
    isUp = up
    if (up) {
      log.info({ processes }, isFirst ? 'quota is shared' : 'quota is shared again')
      for (const account of accounts.values()) requested.add(account)
      sendRequested()
    } else {
      log.warn({ processes, err: message }, 'shared quota is unreachable: this process uses its local share')
      requested.clear()
      for (const account of accounts.values()) account.goLocal(1 / processes, clock.monotonicMs())
    }
    deps.onState?.(up)
  }

  async function sendHeartbeat(): Promise<void> {
    const args = [options.processId, String(SILENCE_MS_MAX), 'stay']
    const outcome = await redis.run(LIVE_SCRIPT, [`${options.keyPrefix}:quota-processes`], args)
    if (!outcome.ok) {
      // Nothing is booked while the server is away, so this is the only sign that it still is.
      metrics.sharedSyncs.failed.inc()
      return setState(false, outcome.message)
    }
    processes = Math.max(1, Number(outcome.reply) || 1)
    setState(true)
  }

  function open(subscriptionId: string, terms: Terms, monotonicMs: number): SharedAccount {
    const known = accounts.get(subscriptionId)
    if (known !== undefined) return known
    if (accounts.size >= accountsMax) closeOldest()
    rollMonth(monotonicMs)
    const used = spent.get(subscriptionId) ?? 0
    const localShare = isUp === true ? undefined : 1 / processes
    const spenderId = `${options.processId}:${++opened}`
    const account = new SharedAccount(accountLedger, {
      subscriptionId,
      spenderId,
      terms,
      monotonicMs,
      used,
      localShare,
    })
    accounts.set(subscriptionId, account)
    return account
  }

  function rollMonth(monotonicMs: number): void {
    calendar.update(monotonicMs)
    if (calendar.month > spentMonth) spent.clear()
    spentMonth = calendar.month
  }

  function close(account: SharedAccount): void {
    accounts.delete(account.subscriptionId)
    spent.set(account.subscriptionId, account.close())
  }

  function closeOldest(): void {
    for (const account of accounts.values()) {
      if (!sending.has(account)) return close(account)
    }
  }

  await redis.tried
  // The first reply decides whether the process starts with the shared ledger or with its local share.
  await sendHeartbeat()
  const heartbeats = clock.setRepeating(HEARTBEAT_MS, () => void sendHeartbeat())
  const bookings = clock.setRepeating(BOOK_EVERY_MS, () => {
    if (isUp !== true) return
    for (const account of unbooked) requested.add(account)
    sendRequested()
  })
  heartbeats.unref?.()
  bookings.unref?.()

  return {
    open,
    state: () => ({ isUp: isUp === true, processes }),
    accounts: () => accounts.size,
    sweep(monotonicMs) {
      rollMonth(monotonicMs)
      for (const account of accounts.values()) {
        if (!sending.has(account) && account.isIdle(monotonicMs)) close(account)
      }
    },
    async [Symbol.asyncDispose]() {
      heartbeats.cancel()
      bookings.cancel()
      if (isUp === true) {
        const last = (async () => {
          // Units spent during a booking are in the next one.
          for (let attempt = 0; attempt < LAST_ATTEMPTS_MAX && isUp === true; attempt++) {
            if (unbooked.size + sending.size === 0) break
            for (const account of unbooked) requested.add(account)
            sendRequested()
            await Promise.all(sending.values())
          }
          const args = [options.processId, String(SILENCE_MS_MAX), 'leave']
          await redis.run(LIVE_SCRIPT, [`${options.keyPrefix}:quota-processes`], args)
        })()
        const { promise: late, resolve } = Promise.withResolvers<void>()
        using _timer = clock.setTimer(CLOSE_MS, resolve)
        await Promise.race([last, late])
      }
      isClosed = true
    },
  }
}
