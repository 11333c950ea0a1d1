import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PUBLISHED } from '../../duckdb/run-query.ts'
import { QueryError, type QueryErrorName } from '../../query/error.ts'
import { QUERY_PACK } from '../../query/pack.ts'
import { CLICKHOUSE_ESCAPES } from '../../query/test-hostile.ts'
import { applyClickHousePolicy } from './policy.ts'
import { CLICKHOUSE_GOOD } from './test-good.ts'

const validate = (sql: string) => applyClickHousePolicy(sql, { tables: PUBLISHED, database: 'chain' })

/** Parameters, which old servers do not know. */
const GOOD = [
  ...CLICKHOUSE_GOOD,
  "SELECT {a:String}, {b:Array(UInt64)}, { c : DateTime64(3, 'UTC') } FROM ((SELECT 1)) LIMIT {n:UInt64}",
]

test('ordinary questions pass, and all of the query pack', () => {
  for (const sql of [...GOOD, ...QUERY_PACK.map((query) => query.sql)]) {
    assert.doesNotThrow(() => validate(sql), sql)
  }
})

test('what the server reads is what was judged: comments and odd spaces are gone, the end is taken off', () => {
  const { sql, format, settings } = validate(
    "SELECT/*x*/slot\u00a0FROM--y\nblocks WHERE x='it''s' SETTINGS max_execution_time = 5 FORMAT JSON;",
  )
  assert.equal(sql, "SELECT slot FROM blocks WHERE x = 'it''s'")
  assert.equal(format, 'JSON')
  assert.deepEqual([...settings], [['max_execution_time', '5']])
  // Written again it is the same.
  assert.equal(validate(sql).sql, sql)
})

test('T14: what reaches for anything else is refused before the server sees it', () => {
  for (const sql of CLICKHOUSE_ESCAPES) {
    assert.throws(
      () => validate(sql),
      (error: unknown) => error instanceof QueryError && error.type !== 'UNKNOWN_EXCEPTION',
      sql,
    )
  }
})

test('a refusal names what it is about, in words of ClickHouse', () => {
  const cases: readonly (readonly [sql: string, type: QueryErrorName, says: RegExp])[] = [
    ['KILL QUERY WHERE 1', 'READONLY', /only SELECT/],
    ["SELECT * FROM url('http://127.0.0.1/', CSV, 'x String')", 'UNKNOWN_FUNCTION', /url/],
    ["SELECT dictGet('d', 'a', 1)", 'UNKNOWN_FUNCTION', /dictGet/],
    ['SELECT * FROM system.processes', 'UNKNOWN_DATABASE', /system/],
    ['SELECT * FROM chain_base.blocks', 'UNKNOWN_DATABASE', /chain_base/],
    ['SELECT * FROM nosuch', 'UNKNOWN_TABLE', /nosuch/],
    ['SELECT 1; SELECT 2', 'SYNTAX_ERROR', /multi-statements/],
    ['', 'SYNTAX_ERROR', /Empty/],
  ]
  for (const [sql, type, message] of cases)
    assert.throws(
      () => validate(sql),
      (error: QueryError) => error.type === type && message.test(error.message),
      sql,
    )
})

test('T29: the steps of judging a statement grow with its tokens, and no faster', () => {
  const pumped: Readonly<Record<string, (count: number) => string>> = {
    'a list': (count) => `SELECT 1 IN (${'1, '.repeat(count)}1)`,
    'a sum': (count) => `SELECT ${'1 + '.repeat(count)}1`,
    prefixes: (count) => `SELECT ${'NOT - '.repeat(count)}1`,
    'sets of one': (count) => `SELECT ${'1 IN ((1)), '.repeat(count / 4)}1`,
    'parentheses as deep as may be': (count) =>
      `SELECT ${`${'('.repeat(90)}1${')'.repeat(90)}, `.repeat(count / 180)}1`,
    unions: (count) => `${'SELECT 1 UNION ALL '.repeat(count / 4)}SELECT 1`,
    'common tables': (count) =>
      `WITH ${Array.from({ length: count / 8 }, (_, at) => `a${at} AS (SELECT 1)`).join(', ')} SELECT 1`,
    joins: (count) => `SELECT 1 FROM blocks${' JOIN blocks ON 1'.repeat(count / 4)}`,
    calls: (count) => `SELECT ${'quantile(0.5)(slot), '.repeat(count / 8)}1 FROM blocks`,
  }
  for (const [name, make] of Object.entries(pumped)) {
    const [small, large] = [validate(make(2_000)).steps, validate(make(4_000)).steps]
    assert.ok(large <= 2.5 * small, `${name}: ${small} steps, then ${large}`)
    assert.ok(large <= 40 * 4_000, `${name}: ${large} steps`)
  }
})
