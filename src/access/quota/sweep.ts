import type { Clock } from '../../core/clock.ts'
import { createTimeSlices, type TimeSlices } from '../../platform/process/time-slices.ts'
import type { QuotaLedger } from './charge.ts'

export type Sweep = {
  /** Closes the accounts that are idle, unless an earlier run is still under way. */
  run(): Promise<void>
}

/** Runs the sweep of a ledger, which may have hundreds of thousands of accounts, in slices of time. */
export function createSweep(
  ledger: Pick<QuotaLedger, 'sweep'>,
  clock: Clock,
  createSlices: () => TimeSlices = createTimeSlices,
): Sweep {
  let isRunning = false

  return {
    async run() {
      if (isRunning) return
      isRunning = true
      const slices = createSlices()
      try {
        while (!ledger.sweep(clock.monotonicMs(), slices.isSpent)) await slices.yield()
      } finally {
        isRunning = false
      }
    },
  }
}
