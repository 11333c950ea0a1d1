import { messageOf } from '../../core/error.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { AccessStore } from '../store/store.ts'
import { type Calendar, monthStartMs } from './calendar.ts'
import type { QuotaMemory } from './memory.ts'
import { ACCOUNT } from './memory-layout.ts'
import { rollMonth, setCeiling } from './rules.ts'

export type MonthReaderDeps = {
  readonly store: Pick<AccessStore, 'unitsSince'>
  readonly memory: QuotaMemory
  readonly calendar: Calendar
  readonly log: Logger
  /** The month whose units the accounts have. */
  readonly monthRead: number
}

/**
 * Reads the units of the month from the store when the calendar has another month than before. A month that has just begun has hardly any; after the
 * correction of a clock that was wrong at the start of the process it may have many. Run regularly by the caller.
 */
export function createMonthReader(deps: MonthReaderDeps): { run(): void } {
  const { store, memory, calendar, log } = deps
  let { monthRead } = deps
  let isReading = false

  async function read(month: number): Promise<void> {
    isReading = true
    try {
      await raiseUnits(memory, calendar, { month, spent: await store.unitsSince(monthStartMs(month)) })
      monthRead = month
    } catch (error) {
      log.debug({ reason: messageOf(error) }, 'the units of the month cannot be read yet')
    } finally {
      isReading = false
    }
  }

  return {
    run() {
      if (!isReading && calendar.month !== monthRead) void read(calendar.month)
    },
  }
}

/** Units of the last seconds may be in the store or not, so the larger value counts. Nothing is raised in a month that follows meanwhile. */
async function raiseUnits(
  memory: QuotaMemory,
  calendar: Calendar,
  { month, spent }: { readonly month: number; readonly spent: ReadonlyMap<string, number> },
): Promise<void> {
  const slices = createTimeSlices()
  for (const [subscriptionId, units] of spent) {
    if (slices.isSpent()) await slices.yield()
    if (calendar.month !== month) return
    const cell = memory.attach(subscriptionId, false)
    memory.lock(cell)
    // Where the table is full, another thread may have taken the cell for another account meanwhile.
    if (memory.isAccount(cell) && memory.isNamed(cell, subscriptionId)) {
      rollMonth(memory, cell, calendar)
      const isOfMonth = memory.float(cell, ACCOUNT.month) === month
      if (isOfMonth && memory.float(cell, ACCOUNT.used) < units) {
        memory.setFloat(cell, ACCOUNT.used, units)
        setCeiling(memory, cell)
      }
    }
    memory.unlock(cell)
  }
}
