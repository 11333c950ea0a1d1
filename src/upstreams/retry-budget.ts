/** The budget at the start and at most: enough to retry the calls in flight at a node that dies. */
const FIRST = 10
const MAX = 200

/** Every call earns a fraction of a retry, so that retries stay a share of the calls whatever fails. */
export type RetryBudget = {
  earn(): void
  /** False where the budget is used up. */
  take(): boolean
  readonly left: number
}

export function createRetryBudget(share: number): RetryBudget {
  // Integer millionths: a sum of fractions would drift.
  const earned = Math.round(share * 1_000_000)
  let left = share === 0 ? 0 : FIRST * 1_000_000
  return {
    earn() {
      left = Math.min(MAX * 1_000_000, left + earned)
    },
    take() {
      if (left < 1_000_000) return false
      left -= 1_000_000
      return true
    },
    get left() {
      return left / 1_000_000
    },
  }
}
