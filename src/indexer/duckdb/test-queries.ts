import { type DuckConnection, type DuckDatabase, openDuckDatabase } from '../../platform/db/duckdb.ts'
import { makeTestChain } from '../ingest/test-blocks.ts'
import { batchOf } from '../ingest/test-rows.ts'
import { createFormatSlices } from './format-slices.ts'
import { createResultBudget } from './result-budget.ts'
import { prepareQueries, type QueryDone, type QueryJob, type QueryLimits, runQuery } from './run-query.ts'
import { openDuckStore } from './store.ts'

export type AskedResult = QueryDone & { readonly body: Buffer }

/** Runs one statement without limits on what is held, and reads all of its result. */
export async function runWhole(connection: DuckConnection, job: QueryJob): Promise<AskedResult> {
  const done = await runQuery(connection, job, {
    nowMs: () => performance.now(),
    slices: createFormatSlices().open(),
    budget: createResultBudget({ heldBytesMax: Infinity, heldBytesPerSubscription: Infinity }),
    owner: 'test',
  })
  const parts: Buffer[] = []
  while (done.result.bytes > 0) parts.push(done.result.read())
  return { ...done, body: Buffer.concat(parts) }
}

/** A locked database with a made-up chain in it, for tests of what customers may ask. `planted` are statements run before the lock. */
export async function openQueryDatabase(planted: readonly string[] = []): Promise<
  Disposable & {
    readonly database: DuckDatabase
    ask(query: string, limits?: Partial<QueryLimits>, given?: Partial<QueryJob>): Promise<AskedResult>
  }
> {
  const database = await openDuckDatabase(':memory:', { threads: '3' })
  const store = await openDuckStore(database, () => 0)
  const blocks = makeTestChain({ seed: 3, blocks: 20, transactionsPerBlock: 30 })
  await store.write(batchOf(blocks, { includeLogs: false }))
  using connection = await database.connect()
  for (const statement of planted) await connection.run(statement)
  await prepareQueries(database, 'memory.base')
  return {
    database,
    async ask(query, limits = {}, given = {}) {
      using connection = await database.connect()
      const job = { query, parameters: {}, defaultFormat: 'JSONCompactEachRow', settings: {}, ...given }
      const all = { secondsMax: 30, rowsMax: 10_000, bytesMax: 10_000_000, ...limits }
      return await runWhole(connection, { ...job, limits: all })
    },
    [Symbol.dispose]: () => database[Symbol.dispose](),
  }
}
