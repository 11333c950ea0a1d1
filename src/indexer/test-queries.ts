import { type DuckDatabase, openDuckDatabase } from '../host/duckdb.ts'
import { openDuckStore } from './duck-store.ts'
import { prepareQueries, type QueryDone, type QueryJob, type QueryLimits, runQuery } from './query-run.ts'
import { makeTestChain } from './test-blocks.ts'
import { batchOf } from './test-rows.ts'

/** A locked database with a made-up chain in it, for tests of what customers may ask. `planted` are statements run before the lock. */
export async function openQueryDatabase(planted: readonly string[] = []): Promise<
  Disposable & {
    readonly database: DuckDatabase
    ask(query: string, limits?: Partial<QueryLimits>, given?: Partial<QueryJob>): Promise<QueryDone>
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
      return await runQuery(connection, { ...job, limits: all }, () => performance.now())
    },
    [Symbol.dispose]: () => database[Symbol.dispose](),
  }
}
