import { join } from 'node:path'
import { openClickHouseStore } from '../../src/indexer/clickhouse/store.ts'
import { prepareQueries } from '../../src/indexer/duckdb/customer-schema.ts'
import { BASE_SCHEMA } from '../../src/indexer/duckdb/ddl.ts'
import { openDuckStore } from '../../src/indexer/duckdb/store.ts'
import { runComplete } from '../../src/indexer/duckdb/test-queries.ts'
import { EXAMPLE_QUERIES } from '../../src/indexer/example-queries.ts'
import { type Row, rowsIn } from '../../src/indexer/ingest/batch-rows.ts'
import { batchOf } from '../../src/indexer/ingest/test-rows.ts'
import { type ColumnType, TABLES, type Table } from '../../src/indexer/schema.ts'
import type { WriteBatch } from '../../src/indexer/store/store.ts'
import { catalogueOf, openDuckDatabase } from '../../src/platform/db/duckdb.ts'
import { delay, systemClock } from '../../src/platform/process/clock.ts'
import type { ChainBlock } from '../../src/solana/chain-block.ts'
import { CLICKHOUSE_ADMIN, startClickHouse } from '../../test/support/indexer/clickhouse.ts'
import { packValues, withValues } from '../../test/support/indexer/pack.ts'
import { startPostgres } from '../../test/support/machine/postgres.ts'

const DATABASE = 'bench'
const RUNS = 5
const BATCH = 8
const INSERT_ROWS = 4000
const LIMITS = { secondsMax: 60, rowsMax: 100_000, bytesMax: 100_000_000 }

/** Queries of the pack in PostgreSQL's dialect; the others use functions that it does not have. */
const POSTGRES: Readonly<Record<string, string>> = {
  'transactions-per-minute': `SELECT date_trunc('minute', block_time) AS minute, count(*), count(*) FILTER (WHERE NOT success),
    count(*) FILTER (WHERE NOT success)::float / count(*) FROM transactions GROUP BY minute ORDER BY minute`,
  'fees-by-program': `SELECT i.program_id AS program, count(*) AS calls,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY t.fee + t.compute_units), percentile_cont(0.95) WITHIN GROUP (ORDER BY t.fee + t.compute_units)
    FROM (SELECT DISTINCT program_id, slot, tx_index FROM instructions) i JOIN transactions t ON i.slot = t.slot AND i.tx_index = t.tx_index
    GROUP BY program ORDER BY calls DESC, program LIMIT 20`,
  'account-history': EXAMPLE_QUERIES.find(({ name }) => name === 'account-history')?.sql ?? '',
  'largest-transfers': EXAMPLE_QUERIES.find(({ name }) => name === 'largest-transfers')?.sql ?? '',
  'busiest-programs': `SELECT program_id, count(*) AS calls, count(DISTINCT fee_payer), count(*) FILTER (WHERE inner_index >= 0)
    FROM instructions GROUP BY program_id ORDER BY calls DESC, program_id LIMIT 10`,
  'blocks-by-leader': `SELECT leader, count(*) AS blocks, sum(tx_count), max(tx_count) FROM blocks GROUP BY leader ORDER BY blocks DESC, leader`,
  'one-transaction': EXAMPLE_QUERIES.find(({ name }) => name === 'one-transaction')?.sql ?? '',
  errors: `SELECT err, count(*) AS times, count(DISTINCT fee_payer) FROM transactions WHERE NOT success GROUP BY err ORDER BY times DESC, err LIMIT 10`,
}

/** Measures the best of some runs of each query with its complete result, on three engines over the same rows and without indexes. */
export async function comparePack(
  chain: readonly ChainBlock[],
  folder: string,
  report: (path: string, figures: Readonly<Record<string, number | string>>) => void,
): Promise<void> {
  const batches: WriteBatch[] = []
  for (let from = 0; from < chain.length; from += BATCH) batches.push(batchOf(chain.slice(from, from + BATCH)))
  const values = packValues(batches[0] as WriteBatch)
  const engines = {
    duckdb: await timesOfDuck(batches, join(folder, 'pack.duckdb'), values),
    clickhouse: await timesOfClickHouse(batches, values),
    postgres: await timesOfPostgres(batches, values),
  }
  for (const { name } of EXAMPLE_QUERIES) {
    const [duckdb, clickhouse, postgres] = [engines.duckdb[name], engines.clickhouse[name], engines.postgres[name]]
    report('query pack', {
      query: name,
      duckdb_ms: duckdb ?? 0,
      clickhouse_ms: clickhouse ?? 0,
      ...(postgres === undefined ? {} : { postgres_ms: postgres, postgres_ratio: postgres / (duckdb ?? 1) }),
      clickhouse_ratio: (clickhouse ?? 0) / (duckdb ?? 1),
    })
  }
}

type Times = Readonly<Record<string, number>>
type Values = ReturnType<typeof packValues>

async function timesOf(run: (name: string) => Promise<unknown>, names: readonly string[]): Promise<Times> {
  const times: Record<string, number> = {}
  for (const name of names) {
    for (let time = 0; time < RUNS; time++) {
      const startedMs = performance.now()
      await run(name)
      times[name] = Math.min(times[name] ?? Number.POSITIVE_INFINITY, performance.now() - startedMs)
    }
  }
  return times
}

const ALL = EXAMPLE_QUERIES.map(({ name }) => name)

function packQuery(name: string) {
  const query = EXAMPLE_QUERIES.find((each) => each.name === name)
  if (query === undefined) throw new RangeError(`no query ${name}`)
  return query
}

async function timesOfDuck(batches: readonly WriteBatch[], path: string, values: Values): Promise<Times> {
  using database = await openDuckDatabase(path, { threads: '3', memory_limit: '512MiB' })
  await using store = await openDuckStore(database, Date.now)
  for (const batch of batches) await store.write(batch)
  await prepareQueries(database, `${catalogueOf(path)}.${BASE_SCHEMA}`)
  return await timesOf(async (name) => {
    using connection = await database.connect()
    const { sql } = packQuery(name)
    const job = { query: sql, parameters: values, defaultFormat: 'JSONCompact', settings: {}, limits: LIMITS }
    await runComplete(connection, job)
  }, ALL)
}

async function timesOfClickHouse(batches: readonly WriteBatch[], values: Values): Promise<Times> {
  await using server = await startClickHouse()
  await using store = await openClickHouseStore(
    { url: server.url, ...CLICKHOUSE_ADMIN, database: DATABASE },
    { nowMs: () => systemClock.nowMs(), wait: (ms) => delay(systemClock, ms) },
  )
  for (const batch of batches) await store.write(batch)
  return await timesOf((name) => {
    const sql = withValues(packQuery(name), values).replaceAll(/\b(FROM|JOIN) (?=[a-z])/g, `$1 ${DATABASE}.`)
    return server.run(`${sql} FORMAT JSONCompact`)
  }, ALL)
}

const POSTGRES_TYPES: Readonly<Record<ColumnType, string>> = {
  u64: 'numeric',
  u32: 'bigint',
  u16: 'integer',
  u8: 'smallint',
  i64: 'bigint',
  i16: 'smallint',
  bool: 'boolean',
  time: 'timestamptz',
  text: 'text',
  word: 'text',
  texts: 'text[]',
  words: 'text[]',
}

async function timesOfPostgres(batches: readonly WriteBatch[], values: Values): Promise<Times> {
  await using server = await startPostgres()
  const database = 'postgres'
  const rows = batches.flatMap((batch) => batch.rows)
  for (const table of TABLES) {
    const columns = table.columns.map(({ name, type }) => `"${name}" ${POSTGRES_TYPES[type]}`)
    await server.query(database, `CREATE UNLOGGED TABLE ${table.name} (${columns.join(', ')})`)
    const all = [...rowsIn(rows, table.name)]
    for (let from = 0; from < all.length; from += INSERT_ROWS) {
      const piece = JSON.stringify(all.slice(from, from + INSERT_ROWS).map((row) => postgresRow(table, row)))
      const source = `json_populate_recordset(NULL::${table.name}, '${piece.replaceAll("'", "''")}')`
      await server.query(database, `INSERT INTO ${table.name} SELECT * FROM ${source}`)
    }
  }
  await server.query(database, 'ANALYZE')
  return await timesOf(
    (name) => server.query(database, withValues({ ...packQuery(name), sql: POSTGRES[name] ?? '' }, values)),
    Object.keys(POSTGRES),
  )
}

function postgresRow({ columns }: Table, row: Row): Record<string, unknown> {
  return Object.fromEntries(
    columns.map(({ name, type }, at) => {
      const value = row[at]
      if (type === 'time') return [name, new Date(Number(value) * 1000).toISOString()]
      return [name, typeof value === 'bigint' ? String(value) : value]
    }),
  )
}
