import type { WorkBudget, WorkOwner } from '../api/work-budget.ts'
import { workLimitReached } from './failure.ts'

/** Counts the work of one request against the budget of its owner. */
export type CallMeter = {
  /** Takes the price of work before it begins, or throws the refusal: then nothing was charged. */
  take(units: number): void
  /** Charges work that is done. */
  charge(units: number): void
}

export function createCallMeter(budget: WorkBudget, owner: WorkOwner): CallMeter {
  return {
    take(cost) {
      const taken = budget.take(owner, cost)
      if (!taken.ok) throw workLimitReached(budget.unitsPerSecond, cost, taken.retryAfterMs)
    },
    charge: (units) => budget.charge(owner, units),
  }
}
