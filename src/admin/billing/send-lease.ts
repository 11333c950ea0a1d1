import type { BillingStore } from '../../access/store/billing/store.ts'
import type { BillingState } from '../../access/store/billing/tables.ts'
import type { Clock } from '../../core/clock.ts'

/** Another process may send after this time without a sign of this one. */
const LEASE_MS = 60_000
/** It is renewed when less is left: more than a group of requests takes, of which the last begins after 20 s and ends within 15. */
const RENEW_MS = 45_000

export type SendLease = {
  /** The state of the sink while this process has the right to send; undefined while another one has it. */
  take(): Promise<BillingState | undefined>
}

/** The right of one process to send the events of a sink. */
export function createSendLease(
  { sink, owner }: { readonly sink: string; readonly owner: string },
  { billing, clock }: { readonly billing: BillingStore; readonly clock: Clock },
): SendLease {
  let leasedUntilMs = 0
  let other: { owner: string | null; leaseUntil: number; sinceMs: number } | undefined

  /**
   * Takes a lease that was not renewed for its whole length, whatever time it has: the clock of its process may have been far ahead, and no other
   * process would send until then.
   */
  async function takeUnrenewed(times: { nowMs: number; untilMs: number }): Promise<BillingState | undefined> {
    const found = await billing.state(sink)
    if (found === undefined) return undefined
    const { leaseUntil } = found
    const monotonicMs = clock.monotonicMs()
    if (other === undefined || other.owner !== found.owner || other.leaseUntil !== leaseUntil)
      other = { owner: found.owner, leaseUntil, sinceMs: monotonicMs }
    if (monotonicMs - other.sinceMs < LEASE_MS) return undefined
    // Only if it is still the same: a third process may have taken it since it was read.
    return billing.lease(sink, { owner, ...times, seen: other })
  }

  return {
    async take() {
      const nowMs = Math.floor(clock.nowMs())
      if (leasedUntilMs - nowMs > RENEW_MS && leasedUntilMs - nowMs <= LEASE_MS) {
        const state = await billing.state(sink)
        if (state?.owner === owner) return state
      }
      const untilMs = nowMs + LEASE_MS
      const times = { nowMs, untilMs }
      const state = (await billing.lease(sink, { owner, ...times })) ?? (await takeUnrenewed(times))
      leasedUntilMs = state === undefined ? 0 : untilMs
      return state
    },
  }
}
