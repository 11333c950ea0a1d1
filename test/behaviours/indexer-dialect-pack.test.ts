import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { AsyncChdb } from 'chdb-wasm'
import { tableDdl, viewDdl } from '../../src/indexer/clickhouse/ddl.ts'
import { DIALECT_DIFFERENCES } from '../../src/indexer/dialect/differences.ts'
import { prepareQueries } from '../../src/indexer/duckdb/customer-schema.ts'
import { openDuckStore } from '../../src/indexer/duckdb/store.ts'
import { runComplete } from '../../src/indexer/duckdb/test-queries.ts'
import { EXAMPLE_QUERIES } from '../../src/indexer/example-queries.ts'
import { makeTestChain } from '../../src/indexer/ingest/test-blocks.ts'
import { batchOf, listRows } from '../../src/indexer/ingest/test-rows.ts'
import { tokenize } from '../../src/indexer/query/sql-tokens.ts'
import { TABLES } from '../../src/indexer/schema.ts'
import { type DuckDatabase, openDuckDatabase } from '../../src/platform/db/duckdb.ts'
import { MISTAKES } from '../support/indexer/dialect/mistakes.ts'
import { packValues, withValues } from '../support/indexer/pack.ts'
import { createRandom, isFull, seedOf } from '../support/process/property.ts'

const PACK = ['pack.sql', 'dashboards.sql'].flatMap((file) =>
  readFileSync(new URL(`../support/indexer/dialect/${file}`, import.meta.url), 'utf8')
    .trim()
    .split('\n'),
)
const DIFFERENT: ReadonlySet<string> = new Set(DIALECT_DIFFERENCES.flatMap(({ examples = [] }) => examples))
const BATCH = batchOf(makeTestChain({ seed: 3, blocks: 20, transactionsPerBlock: 30 }), { includeLogs: true })
/** Statements that the short form compares, of those that the seed puts first. */
const SHORT = 240
const LIMITS = { secondsMax: 60, rowsMax: 100_000, bytesMax: 100_000_000 }
/** What the profile of a provisioned server sets, and the quoting that this service has. */
const SETTINGS = 'SETTINGS join_use_nulls = 1, output_format_json_quote_64bit_integers = 1'

type Result = { readonly types: readonly string[]; readonly rows: unknown; readonly totals: unknown }

/** Statements of analysts, on the embedded engine and on ClickHouse 26.5 from npm over the same blocks. */
describe('the dialect pack', () => {
  let clickhouse: AsyncChdb
  let database: DuckDatabase
  before(async () => {
    const moduleUrl = new URL('./chdb.mjs', import.meta.resolve('chdb-wasm')).href
    clickhouse = await AsyncChdb.create({ moduleUrl: new URL(moduleUrl).pathname })
    const run = (statement: string) => clickhouse.query(statement, 'TabSeparated')
    for (const statement of [...tableDdl('solana', 'current'), ...viewDdl('solana', 'solana', 'current')])
      await run(statement)
    const rows = listRows(BATCH.rows)
    for (const { name, columns } of TABLES) {
      const lines = rows[name].map((row) => {
        const values = columns.map((column, at) => [
          column.name,
          typeof row[at] === 'bigint' ? String(row[at]) : row[at],
        ])
        return JSON.stringify(Object.fromEntries([...values, ['_version', 1]]))
      })
      if (lines.length > 0) await run(`INSERT INTO solana_base.${name} FORMAT JSONEachRow ${lines.join('\n')}`)
    }
    await run('USE solana')
    database = await openDuckDatabase(':memory:', { threads: '3' })
    const store = await openDuckStore(database, () => 0)
    await store.write(BATCH)
    await prepareQueries(database, 'memory.base')
  })
  after(async () => {
    await clickhouse?.terminate()
    database?.[Symbol.dispose]()
  })

  async function embedded(query: string): Promise<Result> {
    using connection = await database.connect()
    const job = { query, parameters: {}, defaultFormat: 'JSONCompact', settings: {}, limits: LIMITS }
    return resultOf((await runComplete(connection, job)).body.toString())
  }

  test('has 600 statements, and no shape more than five times', () => {
    assert.ok(PACK.length >= 600, `${PACK.length} statements`)
    const shapes = new Map<string, number>()
    for (const statement of PACK) {
      const shape = shapeOf(statement)
      shapes.set(shape, (shapes.get(shape) ?? 0) + 1)
    }
    const frequent = [...shapes].filter(([, count]) => count > 5)
    assert.deepEqual(frequent, [])
    const unknown = [...DIFFERENT].filter((statement) => !PACK.includes(statement))
    assert.deepEqual(unknown, [], 'examples of differences that are not in the pack')
  })

  test('gives the same rows and types on both engines, but for the listed differences', async (t) => {
    const different: string[] = []
    const compared = shuffled(PACK, createRandom(seedOf(t))).slice(0, isFull ? PACK.length : SHORT)
    for (const statement of compared) {
      const expected = resultOf((await clickhouse.query(`${statement} ${SETTINGS}`, 'JSONCompact')).text())
      const actual = await embedded(statement).catch((error: Error) => error.message)
      if (JSON.stringify(expected) !== JSON.stringify(actual)) different.push(statement)
    }
    t.diagnostic(`${compared.length - different.length} of ${compared.length} are the same`)
    assert.deepEqual(different.toSorted(), compared.filter((statement) => DIFFERENT.has(statement)).toSorted())
    assert.ok(DIFFERENT.size <= PACK.length * 0.05)
  })

  test('typical mistakes have these errors on ClickHouse', async () => {
    for (const [error, , statement] of MISTAKES)
      await assert.rejects(
        clickhouse.query(statement, 'JSONCompact'),
        (cause: Error) => cause.message.includes(`(${error})`),
        statement,
      )
  })

  test('the example queries of the documentation give the same rows, rounding included', async () => {
    const values = packValues(BATCH)
    // The ranges that coverage shows are written by the ingest, which does not run here.
    for (const query of EXAMPLE_QUERIES.filter(({ name }) => name !== 'coverage')) {
      const sql = withValues(query, values)
      const expected = resultOf((await clickhouse.query(`${sql} ${SETTINGS}`, 'JSONCompact')).text())
      assert.deepEqual((await embedded(sql)).rows, expected.rows, query.name)
    }
  })

  test('join_use_nulls = 0 gives the defaults of the types, on both engines', async () => {
    for (const statement of [
      'SELECT b.slot, r.lamports, r.pubkey FROM blocks b LEFT JOIN rewards r ON b.slot = r.slot + 1 ORDER BY ALL LIMIT 5',
      'SELECT r.pubkey, b.slot FROM rewards AS r RIGHT JOIN blocks AS b ON r.slot = b.slot + 3 ORDER BY b.slot, r.pubkey LIMIT 5',
      'SELECT b.slot AS a, r.slot AS c FROM blocks b FULL JOIN (SELECT slot + 5 AS slot FROM blocks) r ON b.slot = r.slot ORDER BY a, c',
      'SELECT slot, x FROM blocks FULL JOIN (SELECT slot + 5 AS slot, 7 AS x FROM blocks) r USING (slot) ORDER BY slot',
      'SELECT b.slot, r.pubkey FROM blocks b LEFT ANTI JOIN rewards r ON b.slot = r.slot + 3 ORDER BY b.slot',
      'SELECT count(r.slot) AS n, countIf(r.block_time = 0) AS z FROM blocks b LEFT JOIN rewards r ON b.slot = r.slot + 3',
    ]) {
      const zero = `${statement} SETTINGS join_use_nulls = 0`
      const settings = `${zero}, output_format_json_quote_64bit_integers = 1`
      const expected = resultOf((await clickhouse.query(settings, 'JSONCompact')).text())
      assert.deepEqual(await embedded(zero), expected, statement)
      assert.notDeepEqual(await embedded(statement), expected, statement)
    }
  })
})

function shuffled<T>(items: readonly T[], random: (below: number) => number): readonly T[] {
  const list = [...items]
  for (let at = list.length - 1; at > 0; at--) {
    const other = random(at + 1)
    ;[list[at], list[other]] = [list[other] as T, list[at] as T]
  }
  return list
}

function resultOf(body: string): Result {
  const { meta, data, totals } = JSON.parse(body) as { meta: { type: string }[]; data: unknown; totals?: unknown }
  return { types: meta.map(({ type }) => type), rows: rounded(data), totals: rounded(totals) }
}

/** Sums of doubles depend on their order: twelve digits are compared. */
function rounded(value: unknown): unknown {
  if (typeof value === 'number') return Number(value.toPrecision(12))
  if (Array.isArray(value)) return value.map(rounded)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, rounded(each)]))
}

/** The statement with every name that is not a function, every number and every text replaced. */
function shapeOf(statement: string): string {
  const tokens = tokenize(statement)
  return tokens
    .map(({ kind, text, upper }, at) => {
      if (kind === 'number' || kind === 'string') return kind
      const isCall = tokens[at + 1]?.text === '('
      return kind === 'word' && !isCall && upper !== text ? 'name' : text
    })
    .join(' ')
}
