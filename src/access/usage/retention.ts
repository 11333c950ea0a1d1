import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import { DAY_MS, HOUR_MS } from '../../core/human-units.ts'
import { settledWithin } from '../../platform/process/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { AccessOptions } from '../options.ts'
import type { Calendar } from '../quota/calendar.ts'
import type { AccessStore } from '../store/store.ts'

/** Few at a time, so that a store with many old rows is not busy with it for long. */
const HOURS_MAX = 48
/** How long closing waits for a store that does not respond. */
const CLOSE_MS = 1000

export type UsageRetentionDeps = {
  readonly store: Pick<AccessStore, 'pruneUsage'>
  readonly calendar: Calendar
  readonly clock: Clock
  readonly log: Logger
}

/** Deletes the usage of hours that are older than it is kept. Run regularly by the caller. */
export function createUsageRetention(
  { keepDays }: AccessOptions['usage'],
  { store, calendar, clock, log }: UsageRetentionDeps,
): AsyncDisposable & { run(): void } {
  const stop = new AbortController()
  let pruning: Promise<void> | undefined
  let isFailing = false

  async function prune(beforeMs: number): Promise<void> {
    try {
      const hours = await store.pruneUsage(beforeMs, HOURS_MAX, stop.signal)
      isFailing = false
      if (hours > 0) log.info({ hours, keepDays }, 'old usage deleted')
    } catch (error) {
      log[isFailing ? 'debug' : 'warn']({ reason: messageOf(error) }, 'old usage could not be deleted')
      isFailing = true
    }
  }

  return {
    run() {
      // Not by the wall clock: one that is wrong for a moment, or at the start, would delete what is still to be billed.
      const monotonicMs = clock.monotonicMs()
      calendar.update(monotonicMs)
      if (!calendar.isSettled(monotonicMs)) return
      pruning ??= prune(calendar.hour * HOUR_MS - keepDays * DAY_MS).finally(() => {
        pruning = undefined
      })
    },
    [Symbol.asyncDispose]() {
      stop.abort()
      return settledWithin(pruning, CLOSE_MS, clock)
    },
  }
}
