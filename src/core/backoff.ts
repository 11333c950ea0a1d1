import assert from 'node:assert/strict'
import type { Random } from './random.ts'

export type BackoffOptions = { firstMs: number; maxMs: number; factor?: number }

/** Growing delays between attempts. Half of each delay is random, so that clients which failed together do not retry together. */
export type Backoff = {
  /** The delay before the next attempt. */
  nextMs(): number
  /** Delays returned since the last success. */
  attempts(): number
  /** An attempt succeeded: the next delay is the first one. */
  reset(): void
}

export function createBackoff(options: BackoffOptions, random: Random): Backoff {
  const { firstMs, maxMs, factor = 2 } = options
  assert(firstMs > 0 && maxMs >= firstMs && factor >= 1, 'a backoff grows from a positive first delay to its maximum')
  let ceilingMs = firstMs
  let attempts = 0
  return {
    nextMs() {
      const delayMs = ceilingMs / 2 + random.float() * (ceilingMs / 2)
      ceilingMs = Math.min(maxMs, ceilingMs * factor)
      attempts += 1
      return delayMs
    },
    attempts: () => attempts,
    reset() {
      ceilingMs = firstMs
      attempts = 0
    },
  }
}
