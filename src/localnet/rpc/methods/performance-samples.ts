import type { Chain } from '../../chain/model.ts'
import type { Json } from '../json.ts'

/** PERFORMANCE_SAMPLES_LIMIT: twelve hours of minutes. */
export const SAMPLES_MAX = 720
const SAMPLE_SECONDS = 60

type Sample = { slot: number; transactions: number; slots: number }

/** One sample a whole minute, newest first. The minute that is still running is not shown. */
export function readPerformanceSamples(chain: Chain, limit: number): Json {
  const samples = new Map<number, Sample>()
  const newest = chain.slot('processed')
  const runningMinute = minuteOf(chain.block(newest)?.time ?? 0)
  const firstAvailable = chain.firstAvailableSlot()
  for (let slot = newest; slot >= firstAvailable; slot--) {
    const block = chain.block(slot)
    if (!block) continue
    const minute = minuteOf(block.time)
    if (minute >= runningMinute) continue
    const sample = samples.get(minute) ?? { slot, transactions: 0, slots: 0 }
    if (!samples.has(minute)) {
      if (samples.size >= limit) break
      samples.set(minute, sample)
    }
    sample.transactions += block.transactions.length
    sample.slots += 1
  }
  return Array.from(samples.values(), ({ slot, transactions, slots }) => ({
    slot,
    numTransactions: transactions,
    // No votes are cast here.
    numNonVoteTransactions: transactions,
    numSlots: slots,
    samplePeriodSecs: SAMPLE_SECONDS,
  }))
}

function minuteOf(unixSeconds: number): number {
  return Math.floor(unixSeconds / SAMPLE_SECONDS)
}
