import assert from 'node:assert/strict'
import { type DuckConnection, type DuckDatabase, openDuckDatabase } from '../../platform/db/duckdb.ts'
import { makeTestChain } from '../ingest/test-blocks.ts'
import { batchOf } from '../ingest/test-rows.ts'
import type { QueryJob, QueryLimits } from '../query/request.ts'
import type { ResultEnd, ResultHead } from '../store/protocol.ts'
import { prepareQueries } from './customer-schema.ts'
import { createFormatSlices } from './format-slices.ts'
import { createResultBudget, HeldResult } from './held-result.ts'
import { runQuery } from './run-query.ts'
import { openDuckStore } from './store.ts'

export type CompleteResult = ResultEnd & Partial<ResultHead> & { readonly body: Buffer }

/** Runs one statement without a result budget and reads its complete result. */
export async function runComplete(connection: DuckConnection, job: QueryJob): Promise<CompleteResult> {
  const { bytesMax } = job.limits
  const budget = createResultBudget({ heldBytesMax: Infinity, heldBytesPerSubscription: Infinity })
  const result = new HeldResult({ owner: 'test', bytesMax, windowBytes: Infinity }, budget)
  let head: ResultHead | undefined
  const end = await runQuery(connection, job, {
    nowMs: () => performance.now(),
    slices: createFormatSlices().open(),
    result,
    onHead: (given) => (head = given),
  })
  const parts: Buffer[] = []
  while (result.bytes > 0) parts.push(result.read())
  return { ...head, ...end, body: Buffer.concat(parts) }
}

/** A locked database with a generated chain, for tests of customers' statements. `planted` are statements that run before the lock. */
export async function openQueryDatabase(planted: readonly string[] = []): Promise<
  Disposable & {
    readonly database: DuckDatabase
    ask(query: string, limits?: Partial<QueryLimits>, given?: Partial<QueryJob>): Promise<CompleteResult>
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
      return await runComplete(connection, { ...job, limits: all })
    },
    [Symbol.dispose]: () => database[Symbol.dispose](),
  }
}

/** By statement: the rows that ClickHouse 26.5 has. */
export type ExpectedRows = Readonly<Record<string, readonly unknown[]>>

export async function assertRows(
  on: Pick<Awaited<ReturnType<typeof openQueryDatabase>>, 'ask'>,
  expected: ExpectedRows,
  given: Partial<QueryJob> = {},
): Promise<void> {
  const settings = { output_format_json_quote_64bit_integers: '0' }
  for (const [statement, rows] of Object.entries(expected)) {
    const { body } = await on.ask(statement, {}, { defaultFormat: 'JSONCompact', settings, ...given })
    assert.deepEqual((JSON.parse(body.toString()) as { data: unknown }).data, rows, statement)
  }
}
