import type { Terms } from '../terms.ts'
import type { Calendar } from './calendar.ts'
import type { QuotaLedger } from './charge.ts'
import type { QuotaContext } from './context.ts'
import { QuotaMemory } from './memory.ts'
import { ACCOUNT, createQuotaMemory } from './memory-layout.ts'
import { hasUnbooked, isIdle } from './rules.ts'
import { SubscriptionQuota } from './subscription-quota.ts'

/** Open accounts; beyond it one is closed as if it were idle. */
export const ACCOUNTS_MAX = 65_536
/** Accounts that a thread holds on to; beyond it the oldest are found again in the memory when they are used. */
const HELD_MAX = 250_000
const FIRST_CELL = 1

export type LedgerOptions = {
  readonly calendar: Calendar
  /** The accounts of the process; a memory of its own where it is missing. */
  readonly memory?: QuotaMemory | undefined
  readonly limitsVersion?: (() => number) | undefined
  /** Given where the quota is shared: see `QuotaContext`. */
  readonly requestBookings?: (() => void) | undefined
  /** Units spent this month before the process started, from the store. Given to one thread only. */
  readonly spentBefore?: ReadonlyMap<string, number> | undefined
  readonly accountsMax?: number | undefined
}

export type MonthUnits = {
  readonly subscriptionId: string
  readonly units: number
  /** That of the calendar, which the wall clock may be ahead of: months since January 1970. */
  readonly month: number
}

export type Ledger = QuotaLedger & { accounts(): number }

/** The ledger of a process, as one of its threads uses it. Exact: units charged equal units admitted, by all threads together. */
export function createLedger(options: LedgerOptions): Ledger {
  const { calendar, accountsMax = ACCOUNTS_MAX, limitsVersion = () => 0, requestBookings = () => {} } = options
  const isShared = options.requestBookings !== undefined
  const memory = options.memory ?? new QuotaMemory(createQuotaMemory({ accountsMax, threads: 1 }), 0)
  const context: QuotaContext = { memory, calendar, limitsVersion, isShared, requestBookings }
  const held = new Map<string, SubscriptionQuota>()
  let nextSwept = FIRST_CELL
  for (const [subscriptionId, units] of options.spentBefore ?? []) {
    const cell = memory.attach(subscriptionId, false)
    memory.setFloat(cell, ACCOUNT.month, calendar.month)
    memory.setFloat(cell, ACCOUNT.used, units)
  }

  function closeIdle(cell: number, nowMs: number): void {
    const mayClose = () => (!isShared || !hasUnbooked(memory, cell)) && isIdle(memory, cell, nowMs)
    const mayForget = () => memory.float(cell, ACCOUNT.used) === 0 || memory.float(cell, ACCOUNT.month) < calendar.month
    memory.closeIf(cell, mayClose, mayForget)
  }

  return {
    open(subscriptionId: string, terms: Terms, monotonicMs: number) {
      const known = held.get(subscriptionId)
      if (known !== undefined) return known
      calendar.update(monotonicMs)
      if (held.size >= HELD_MAX) held.clear()
      const account = new SubscriptionQuota(context, subscriptionId, terms, monotonicMs)
      held.set(subscriptionId, account)
      return account
    },
    sweep(monotonicMs, isSpent = () => false) {
      calendar.update(monotonicMs)
      const nowMs = Math.floor(monotonicMs)
      while (nextSwept < memory.cellsEnd) {
        const cell = nextSwept
        nextSwept += 1
        if (memory.isAccount(cell)) closeIdle(cell, nowMs)
        if (isSpent()) return false
      }
      nextSwept = FIRST_CELL
      return true
    },
    accounts: () => memory.openAccounts,
  }
}

/** Units of this month by subscription, of those that have used some. */
export function* monthUnits(memory: QuotaMemory, { month }: Calendar): Generator<MonthUnits> {
  for (let cell = 1; cell < memory.cellsEnd; cell++) {
    if (!memory.isAccount(cell) || memory.float(cell, ACCOUNT.month) !== month) continue
    const units = memory.float(cell, ACCOUNT.used)
    if (units > 0) yield { subscriptionId: memory.nameOf(cell), units, month }
  }
}
