import type { LimitName } from '../../contract/limits.ts'
import type { CallTerms, Terms } from '../terms.ts'

/** The rate-limit headers of a response. All null when units are unlimited. */
export type RemainingQuota = {
  /** The size of the tighter limit: the units bucket or the units of the month. */
  readonly limit: number | null
  /** Units remaining, rounded down. */
  readonly remaining: number | null
  /** Until the bucket is full again or the month ends. */
  readonly resetMs: number
}

export type Charged = RemainingQuota & { readonly ok: true; readonly cost: number }

/** Refused; nothing was charged. */
export type OverLimit = RemainingQuota & {
  readonly ok: false
  readonly reason: 'over-limit'
  readonly limitName: LimitName
  /** The limit as the plan states it. */
  readonly limitSize: number
  readonly cost: number
  /** Until the same call would pass without other calls; Infinity when it never would. */
  readonly retryAfterMs: number
}

export type Charge = Charged | OverLimit

/** The remaining quota of a subscription. */
export type QuotaView = RemainingQuota & {
  readonly month: { readonly limit: number | null; readonly used: number; readonly resetMs: number }
  readonly buckets: readonly {
    readonly limit: LimitName
    /** Set when the limit applies to one method. */
    readonly method: string | undefined
    readonly perSecond: number
    readonly capacity: number
    readonly remaining: number
    readonly resetMs: number
  }[]
}

/**
 * Accounts of spent quota, one per subscription, so that all its tokens, connections and interfaces share one budget. Charging is synchronous and
 * atomic over all limits of a call; a refused call is not charged.
 */
export interface QuotaLedger {
  /** The account of the subscription. It may be kept: it is opened again when it is used after it was closed. */
  open(subscriptionId: string, terms: Terms, monotonicMs: number): QuotaAccount
  /** Closes accounts with full buckets, which carry no information, until `isSpent`. Returns whether it has come to the last account; if not, the next call goes on. */
  sweep(monotonicMs: number, isSpent?: () => boolean): boolean
}

export interface QuotaAccount {
  charge(terms: Terms, call: CallTerms, monotonicMs: number): Charge
  /** Reverts the charge of a call that was not forwarded. */
  refund(terms: Terms, call: CallTerms, monotonicMs: number): void
  view(terms: Terms, monotonicMs: number): QuotaView
}

export function wholeUnits(left: number): number {
  return Math.max(0, Math.floor(left))
}
