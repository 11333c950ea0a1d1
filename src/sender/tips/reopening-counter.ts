import type { SqlDatabase } from '../../platform/db/sql.ts'
import type { TipCounter } from './counter.ts'

export type ReopeningCounterDeps = {
  /** Opens the file that was opened before. */
  openLedger(): Promise<SqlDatabase>
  openCounter(database: SqlDatabase): Promise<TipCounter>
}

/** Opens the database anew for the first batch after one that failed: a connection that could not read or write its files does not recover. */
export async function openReopeningCounter(deps: ReopeningCounterDeps): Promise<TipCounter> {
  let counter: TipCounter | undefined = await open(deps)
  let { countedMs } = counter

  return {
    get countedMs() {
      return countedMs
    },
    async count(batch) {
      counter ??= await open(deps)
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

async function open({ openLedger, openCounter }: ReopeningCounterDeps): Promise<TipCounter> {
  const database = await openLedger()
  try {
    return await openCounter(database)
  } catch (error) {
    await closeQuietly(database)
    throw error
  }
}

/** The error that came first is the one to report. */
async function closeQuietly(opened: AsyncDisposable): Promise<void> {
  try {
    await opened[Symbol.asyncDispose]()
  } catch {}
}
