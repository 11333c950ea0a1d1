/** How many retries may be outstanding at the start and at most: enough for the calls a dying node takes with it. */
const FIRST = 10
const MAX = 200

/** Every call earns a part of a retry; a retry costs a whole one. So retries stay a share of the calls whatever fails. */
export type RetryBudget = {
  earn(): void
  /** Takes one and answers true, or answers false. */
  take(): boolean
  readonly left: number
}

export function createRetryBudget(share: number): RetryBudget {
  // Whole millionths: a sum of tenths would drift.
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
