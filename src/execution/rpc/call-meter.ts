import type { WorkBudget, WorkOwner } from '../api/work-budget.ts'
import { workLimitReached } from './failure.ts'
import type { ResponseText } from './response-text.ts'

/** Charges the work of one request to the budget of its owner. */
export type CallMeter = {
  /** Charges work before it begins, or throws a LimitFailure and charges nothing. */
  take(units: number): void
  /** Charges work after it was done. */
  charge(units: number): void
}

/** What a method writes to and is charged by. */
export type CallContext = { readonly out: ResponseText; readonly meter: CallMeter }

export function createCallMeter(budget: WorkBudget, owner: WorkOwner): CallMeter {
  return {
    take(cost) {
      const taken = budget.take(owner, cost)
      if (!taken.ok) throw workLimitReached(budget.unitsPerSecond, cost, taken.retryAfterMs)
    },
    charge: (units) => budget.charge(owner, units),
  }
}
