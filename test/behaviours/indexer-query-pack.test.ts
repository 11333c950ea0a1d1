import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openClickHouseStore } from '../../src/indexer/clickhouse/store.ts'
import { prepareQueries } from '../../src/indexer/duckdb/customer-schema.ts'
import { openDuckStore } from '../../src/indexer/duckdb/store.ts'
import { runComplete } from '../../src/indexer/duckdb/test-queries.ts'
import { EXAMPLE_QUERIES } from '../../src/indexer/example-queries.ts'
import { makeTestChain } from '../../src/indexer/ingest/test-blocks.ts'
import { batchOf } from '../../src/indexer/ingest/test-rows.ts'
import type { Store } from '../../src/indexer/store/store.ts'
import { type DuckDatabase, openDuckDatabase } from '../../src/platform/db/duckdb.ts'
import { delay, systemClock } from '../../src/platform/process/clock.ts'
import { CLICKHOUSE_ADMIN, type ClickHouseServer, startClickHouse } from '../support/indexer/clickhouse.ts'
import { packRows, packValues, withoutRounding, withValues } from '../support/indexer/pack.ts'

const CHAIN = makeTestChain({ seed: 21, blocks: 60, transactionsPerBlock: 40 })
const DATABASE = 'pack'
const LIMITS = { secondsMax: 60, rowsMax: 10_000, bytesMax: 10_000_000 }

describe('the example queries, on the embedded engine and on ClickHouse over the same blocks', () => {
  let server: ClickHouseServer
  let database: DuckDatabase
  const batch = batchOf(CHAIN)
  const values = packValues(batch)
  before(async () => {
    server = await startClickHouse()
    database = await openDuckDatabase(':memory:', { threads: '3' })
    const duck = await openDuckStore(database, () => 0)
    await using clickhouse: Store = await openClickHouseStore(
      { url: server.url, ...CLICKHOUSE_ADMIN, database: DATABASE },
      { nowMs: () => systemClock.nowMs(), wait: (ms) => delay(systemClock, ms) },
    )
    for (const store of [duck, clickhouse]) await store.write(batch)
    await prepareQueries(database, 'memory.base')
  })
  after(async () => {
    database?.[Symbol.dispose]()
    await server?.[Symbol.asyncDispose]()
  })

  for (const query of EXAMPLE_QUERIES) {
    test(`${query.name}: ${query.question}`, async () => {
      const embedded = async (sql: string): Promise<string[][]> => {
        using connection = await database.connect()
        const job = { query: sql, parameters: values, defaultFormat: 'JSONCompact', settings: {}, limits: LIMITS }
        return packRows((await runComplete(connection, job)).body.toString())
      }
      const rows = await embedded(withoutRounding(query.sql))
      assert.ok(rows.length > 0, 'the result has rows')
      assert.equal((await embedded(query.sql)).length, rows.length)
      const onClickHouse = await server.run(
        `${withoutRounding(withValues(query, values)).replaceAll(/\b(FROM|JOIN) (?=[a-z])/g, `$1 ${DATABASE}.`)} FORMAT JSONCompact`,
      )
      assert.deepEqual(rows, packRows(onClickHouse))
    })
  }
})
