import { createBackoff } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'

/** Delays connection attempts: each failure for a longer time, until a success. */
export type AddressBackoff = {
  /** No attempt should be made now. */
  readonly isActive: boolean
  recordFailure(): void
  recordSuccess(): void
}

export function createAddressBackoff(
  options: { readonly firstMs: number; readonly maxMs: number },
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): AddressBackoff {
  const backoff = createBackoff(options, random)
  let activeUntilMs = Number.NEGATIVE_INFINITY
  return {
    get isActive() {
      return clock.monotonicMs() < activeUntilMs
    },
    recordFailure() {
      activeUntilMs = clock.monotonicMs() + backoff.nextMs()
    },
    recordSuccess() {
      activeUntilMs = Number.NEGATIVE_INFINITY
      backoff.reset()
    },
  }
}
