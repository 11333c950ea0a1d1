import type { LimitName } from '../../contract/limits.ts'
import type { CallTerms, Terms } from '../terms.ts'

/** What a caller is told about its units, on every answer. All null when nothing limits them. */
export type Budget = {
  /** The size of whichever is tighter now: the bucket of units, or the month's units. */
  readonly limit: number | null
  /** Whole units left of it. */
  readonly remaining: number | null
  /** Until it is full again, or the month ends. */
  readonly resetMs: number
}

export type Charged = Budget & { readonly ok: true; readonly cost: number }

/** Nothing was taken. */
export type OverLimit = Budget & {
  readonly ok: false
  readonly reason: 'over-limit'
  readonly limitName: LimitName
  /** The limit as the plan states it. */
  readonly limitSize: number
  readonly cost: number
  /** Until the same call would pass if nothing else is called meanwhile; Infinity when waiting does not help. */
  readonly retryAfterMs: number
}

export type Charge = Charged | OverLimit

/** Everything a subscription has left, for people. */
export type QuotaView = Budget & {
  readonly month: { readonly limit: number | null; readonly used: number; readonly resetMs: number }
  readonly buckets: readonly {
    readonly limit: LimitName
    /** Set where the limit is of one method. */
    readonly method: string | undefined
    readonly perSecond: number
    readonly capacity: number
    readonly remaining: number
    readonly resetMs: number
  }[]
}

/**
 * The books of what was spent. Charging is synchronous and all or nothing over every limit the call touches; what is refused takes nothing.
 * Books are kept by subscription, so that tokens, connections and interfaces of one subscription share one budget.
 */
export interface QuotaLedger {
  /** The subscription's books. Good as long as `isOpen`; then they are opened again. */
  open(subscriptionId: string, terms: Terms, monotonicMs: number): QuotaAccount
  /** Closes books that say nothing: full buckets of idle subscriptions. */
  sweep(monotonicMs: number): void
}

export interface QuotaAccount {
  readonly isOpen: boolean
  charge(terms: Terms, call: CallTerms, monotonicMs: number): Charge
  /** Takes a charge back because the call was then not forwarded. */
  refund(terms: Terms, call: CallTerms, monotonicMs: number): void
  view(terms: Terms, monotonicMs: number): QuotaView
}

export function wholeUnits(left: number): number {
  return Math.max(0, Math.floor(left))
}
