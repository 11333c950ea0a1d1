import { createBackoff } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'

/** Delays connection attempts: each failure closes it for a longer time, a success opens it. */
export type AddressBackoff = {
  readonly isShut: boolean
  failed(): void
  worked(): void
}

export function createAddressBackoff(
  options: { readonly firstMs: number; readonly maxMs: number },
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): AddressBackoff {
  const backoff = createBackoff(options, random)
  let shutUntilMs = Number.NEGATIVE_INFINITY
  return {
    get isShut() {
      return clock.monotonicMs() < shutUntilMs
    },
    failed() {
      shutUntilMs = clock.monotonicMs() + backoff.nextMs()
    },
    worked() {
      shutUntilMs = Number.NEGATIVE_INFINITY
      backoff.reset()
    },
  }
}
