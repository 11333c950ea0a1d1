import type { SqlDatabase } from '../../platform/db/sql.ts'
import type { TipCounter } from './counter.ts'

export type ReopeningCounterDeps = {
  /** Opens the file that was opened before. */
  openLedger(): Promise<SqlDatabase>
  openCounter(database: SqlDatabase): Promise<TipCounter>
}

/** Opens the database anew for the first batch after one that failed: a connection that could not read or write its files does not recover. */
export async function openReopeningCounter(deps: ReopeningCounterDeps): Promise<TipCounter> {
  let counter: TipCounter | undefined = await deps.openCounter(await deps.openLedger())
  let { countedMs } = counter

  return {
    get countedMs() {
      return countedMs
    },
    async count(batch) {
      counter ??= await deps.openCounter(await deps.openLedger())
      try {
        await counter.count(batch)
        countedMs = counter.countedMs
      } catch (error) {
        const failed = counter
        counter = undefined
        await closeQuietly(failed)
        throw error
      }
    },
    [Symbol.asyncDispose]: async () => counter?.[Symbol.asyncDispose](),
  }
}

/** The error of the batch is the one to report. */
async function closeQuietly(counter: TipCounter): Promise<void> {
  try {
    await counter[Symbol.asyncDispose]()
  } catch {}
}
