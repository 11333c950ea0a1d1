import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedFor } from '../../src/core/test-seed.ts'
import { openDuckDatabase } from '../../src/host/duckdb.ts'
import { makeTestFolder } from '../../src/host/test-folder.ts'
import { CLICKHOUSE_ADMIN, startClickHouse } from '../support/clickhouse.ts'
import { holdsTruth } from '../support/indexer-truth.ts'

const KILLS = process.env['SLUICE_FULL'] === '1' ? 100 : 6
const DATABASE = 'truth'

test(`after ${KILLS} kills of the database and of the stream, every table says what getBlock says`, async () => {
  using folder = makeTestFolder()
  const path = folder.file('chain.duckdb')
  await holdsTruth({
    seed: seedFor('indexer truth').seed,
    kills: KILLS,
    store: { path, memoryBytes: 512 * 1024 * 1024, threads: 2 },
    async find() {
      const database = await openDuckDatabase(path)
      const connection = await database.connect()
      const rowsOf = async (sql: string): Promise<unknown[][]> => {
        const pieces = [...(await connection.run(sql)).pieces()]
        return pieces.flatMap((columns) => (columns[0] ?? []).map((_, at) => columns.map((column) => column[at])))
      }
      const ranges = await rowsOf('SELECT from_slot, to_slot FROM base._ranges')
      assert.equal(ranges.length, 1)
      const range = (ranges[0] as unknown[]).map(Number) as [number, number]
      const coverage = await rowsOf('SELECT DISTINCT from_slot, to_slot FROM base.coverage')
      assert.deepEqual(coverage, ranges)
      return {
        range,
        // Nothing is beyond what is called complete: rows and ranges are one transaction.
        rowsOf: (table, columns) => rowsOf(`SELECT ${columns.join(', ')} FROM base.${table}`),
        async [Symbol.asyncDispose]() {
          connection[Symbol.dispose]()
          database[Symbol.dispose]()
        },
      }
    },
  })
})

test(`after ${KILLS} kills of the writer, the stream and the server, ClickHouse says what getBlock says`, async () => {
  await using server = await startClickHouse()
  await holdsTruth({
    seed: seedFor('indexer clickhouse truth').seed,
    kills: KILLS,
    store: {
      clickhouse: { url: server.url, ...CLICKHOUSE_ADMIN, database: DATABASE },
      path: '',
      memoryBytes: 0,
      threads: 0,
    },
    breakMore: {
      at: 3,
      async run() {
        await server.kill()
        await server.start()
      },
    },
    async find() {
      const coverage = await server.run(`SELECT DISTINCT from_slot, to_slot, open_gaps FROM ${DATABASE}.coverage`)
      const [from, to, gaps] = coverage.trim().split('\t').map(Number) as [number, number, number]
      assert.equal(gaps, 0, coverage)
      return {
        range: [from, to],
        // Rows beyond what is called complete are those of a batch that was cut off.
        async rowsOf(table, columns, last) {
          const query = `SELECT ${columns.join(', ')} FROM ${DATABASE}.${table} WHERE slot <= ${last} FORMAT JSONCompact`
          return (JSON.parse(await server.run(query)) as { data: unknown[][] }).data
        },
      }
    },
  })
})
