import type { Clock } from '../../core/clock.ts'
import type { RedisLink } from '../../platform/db/redis.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { AccessMetrics } from '../metrics.ts'
import type { Terms } from '../terms.ts'
import type { Calendar } from './calendar.ts'
import type { QuotaLedger } from './charge.ts'
import { BOOK_SCRIPT, bookingArgs, LIVE_SCRIPT, parseBooked } from './redis-script.ts'
import { type LedgerSide, SharedAccount } from './shared-account.ts'

/** How often a process says that it lives, and how long it may be silent. */
const HEARTBEAT_MS = 1000
const SILENCE_MS_MAX = 5000
/** What was spent is booked at the latest after this. */
const BOOK_EVERY_MS = 250
/** Bookings on their way at once; further ones wait for these. */
const BOOKINGS_MAX = 128
/** More subscriptions than this are not kept at once: the one opened first is closed, as if it had been idle. */
const ACCOUNTS_MAX = 250_000
/** How long closing waits for the last bookings. */
const CLOSE_MS = 2000
/** More bookings on their way than there is room for take several. */
const LAST_ROUNDS_MAX = 64

export type SharedLedgerOptions = {
  readonly keyPrefix: string
  /** Names this process among those that share the books. */
  readonly processId: string
  /** How many processes to assume before the server could ever be asked. */
  readonly processesAssumed: number
}

export type SharedLedgerDeps = {
  readonly redis: Pick<RedisLink, 'run' | 'tried'>
  readonly calendar: Calendar
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<AccessMetrics, 'sharedSyncs'>
  /** Units spent this month before this process began, from the store. */
  readonly spentBefore?: ReadonlyMap<string, number>
  /** Told when the books are no longer shared, and when they are again. */
  onState?(isUp: boolean): void
  readonly accountsMax?: number
}

export type SharedLedger = QuotaLedger &
  AsyncDisposable & {
    state(): { readonly isUp: boolean; readonly processes: number }
    accounts(): number
  }

/**
 * One budget for several processes, kept in Redis or Valkey. Admission cannot wait for a server, so each process has a standing lease on every
 * subscription: it may spend one chunk before the shared books know. It decides on the level it believes in, books what it spent in the background with
 * one atomic script, and takes the true level from the answer. Whatever is spent gets booked, so spending ahead is paid back.
 *
 * With P processes, and chunk = min(capacity, max(one second of the rate, the dearest call, the items of a batch)), over any window of W seconds
 *
 *     admitted ≤ capacity + rate × W + P × chunk
 *
 * and the long-run average is the rate. The units of a month are exceeded by P × chunk at most. While the server is away each process
 * goes on alone with rate ÷ P and capacity ÷ P, P being the number last heard of; when it is back, what a process's own bucket has not earned
 * back is booked, and the month's units all are. See docs/decisions/0004-quota-leases.md.
 */
export async function startSharedLedger(options: SharedLedgerOptions, deps: SharedLedgerDeps): Promise<SharedLedger> {
  const { redis, calendar, clock, log, metrics, accountsMax = ACCOUNTS_MAX } = deps
  const accounts = new Map<string, SharedAccount>()
  /** The month's units of subscriptions whose books are closed. */
  const spent = new Map<string, number>(deps.spentBefore)
  let spentMonth = calendar.month
  const unbooked = new Set<SharedAccount>()
  const wanted = new Set<SharedAccount>()
  const sending = new Map<SharedAccount, Promise<void>>()
  let opened = 0
  let isUp: boolean | undefined
  let isClosed = false
  let processes = options.processesAssumed

  const side: LedgerSide = {
    calendar,
    noteUnbooked: (account) => void unbooked.add(account),
    wantBooking(account) {
      if (isUp !== true || sending.has(account)) return
      wanted.add(account)
      sendWanted()
    },
  }

  function sendWanted(): void {
    for (const account of wanted) {
      if (sending.size >= BOOKINGS_MAX) return
      wanted.delete(account)
      if (sending.has(account)) continue
      sending.set(
        account,
        book(account).finally(() => {
          sending.delete(account)
          sendWanted()
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
      // Too much on its way says nothing about the server; anything else does.
      if (outcome.ok || outcome.reason !== 'busy') turn(false, outcome.ok ? 'unexpected answer' : outcome.message)
      return
    }
    metrics.sharedSyncs.booked.inc()
    account.learn(sent, booked, clock.monotonicMs())
    if (account.hasUnbooked) unbooked.add(account)
  }

  function turn(up: boolean, message = ''): void {
    if (isClosed || isUp === up) return
    const isFirst = isUp === undefined
    isUp = up
    if (up) {
      log.info({ processes }, isFirst ? 'quota is shared' : 'quota is shared again')
      for (const account of accounts.values()) wanted.add(account)
      sendWanted()
    } else {
      log.warn({ processes, err: message }, 'shared quota is away: this process goes on with its share')
      wanted.clear()
      for (const account of accounts.values()) account.goLocal(1 / processes, clock.monotonicMs())
    }
    deps.onState?.(up)
  }

  async function reportAlive(): Promise<void> {
    const args = [options.processId, String(SILENCE_MS_MAX), 'stay']
    const outcome = await redis.run(LIVE_SCRIPT, [`${options.keyPrefix}:quota-processes`], args)
    if (!outcome.ok) return turn(false, outcome.message)
    processes = Math.max(1, Number(outcome.reply) || 1)
    turn(true)
  }

  function open(subscriptionId: string, terms: Terms, monotonicMs: number): SharedAccount {
    const known = accounts.get(subscriptionId)
    if (known !== undefined) return known
    if (accounts.size >= accountsMax) closeOldest()
    turnMonth(monotonicMs)
    const used = spent.get(subscriptionId) ?? 0
    const localShare = isUp === true ? undefined : 1 / processes
    const spenderId = `${options.processId}:${++opened}`
    const account = new SharedAccount(side, { subscriptionId, spenderId, terms, monotonicMs, used, localShare })
    accounts.set(subscriptionId, account)
    return account
  }

  function turnMonth(monotonicMs: number): void {
    calendar.look(monotonicMs)
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
  // The first answer decides how the process begins; without one it begins alone and says so.
  await reportAlive()
  const beating = clock.setRepeating(HEARTBEAT_MS, () => void reportAlive())
  const booking = clock.setRepeating(BOOK_EVERY_MS, () => {
    if (isUp !== true) return
    for (const account of unbooked) wanted.add(account)
    sendWanted()
  })
  beating.unref?.()
  booking.unref?.()

  return {
    open,
    state: () => ({ isUp: isUp === true, processes }),
    accounts: () => accounts.size,
    sweep(monotonicMs) {
      turnMonth(monotonicMs)
      for (const account of accounts.values()) {
        if (!sending.has(account) && account.isIdle(monotonicMs)) close(account)
      }
    },
    async [Symbol.asyncDispose]() {
      beating.cancel()
      booking.cancel()
      if (isUp === true) {
        const last = (async () => {
          // What was spent while a booking was under way is in the one after it.
          for (let round = 0; round < LAST_ROUNDS_MAX && isUp === true && unbooked.size + sending.size > 0; round++) {
            for (const account of unbooked) wanted.add(account)
            sendWanted()
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
