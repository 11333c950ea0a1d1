import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXAMPLE_QUERIES } from '../../example-queries.ts'
import { QueryError, type QueryErrorName } from '../../query/error.ts'
import { parseStatement } from '../../query/statement.ts'
import { CLICKHOUSE_ESCAPES } from '../../query/test-hostile.ts'
import { PUBLISHED_NAMES } from '../../schema.ts'
import { applyClickHousePolicy } from './policy.ts'
import { CLICKHOUSE_GOOD } from './test-good.ts'

const validate = (sql: string) =>
  applyClickHousePolicy(parseStatement(sql), { tables: PUBLISHED_NAMES, database: 'chain' })

/** With query parameters, which old servers do not support. */
const GOOD = [
  ...CLICKHOUSE_GOOD,
  "SELECT {a:String}, {b:Array(UInt64)}, { c : DateTime64(3, 'UTC') } FROM ((SELECT 1)) LIMIT {n:UInt64}",
]

test('ordinary queries pass, and all example queries', () => {
  for (const sql of [...GOOD, ...EXAMPLE_QUERIES.map((query) => query.sql)]) {
    assert.doesNotThrow(() => validate(sql), sql)
  }
})

test('the statement for the server is written from the checked tokens, without comments, FORMAT and SETTINGS', () => {
  const query = "SELECT/*x*/slot\u00a0FROM--y\nblocks WHERE x='it''s' SETTINGS max_execution_time = 5 FORMAT JSON;"
  const { format, settings } = parseStatement(query)
  const { sql } = validate(query)
  assert.equal(sql, "SELECT slot FROM blocks WHERE x = 'it''s'")
  assert.equal(format, 'JSON')
  assert.deepEqual([...settings], [['max_execution_time', '5']])
  assert.equal(validate(sql).sql, sql)
})

test('T14: statements that reach for anything but the published tables are refused', () => {
  for (const sql of CLICKHOUSE_ESCAPES) {
    assert.throws(
      () => validate(sql),
      (error: unknown) => error instanceof QueryError && error.type !== 'UNKNOWN_EXCEPTION',
      sql,
    )
  }
})

test('a refusal has an error type of ClickHouse and names the refused construct', () => {
  const cases: readonly (readonly [sql: string, type: QueryErrorName, message: RegExp])[] = [
    ['KILL QUERY WHERE 1', 'READONLY', /only SELECT/],
    ["SELECT * FROM url('http://127.0.0.1/', CSV, 'x String')", 'UNKNOWN_FUNCTION', /url/],
    ["SELECT dictGet('d', 'a', 1)", 'UNKNOWN_FUNCTION', /dictGet/],
    ['SELECT * FROM system.processes', 'UNKNOWN_DATABASE', /system/],
    ['SELECT * FROM chain_base.blocks', 'UNKNOWN_DATABASE', /chain_base/],
    ['SELECT * FROM chain_base._account_updates', 'UNKNOWN_DATABASE', /chain_base/],
    ['SELECT * FROM _account_updates', 'UNKNOWN_TABLE', /_account_updates/],
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

test('T29: the steps of checking a statement grow in proportion to its tokens', () => {
  const pumped: Readonly<Record<string, (count: number) => string>> = {
    'a list': (count) => `SELECT 1 IN (${'1, '.repeat(count)}1)`,
    'a sum': (count) => `SELECT ${'1 + '.repeat(count)}1`,
    prefixes: (count) => `SELECT ${'NOT - '.repeat(count)}1`,
    'sets of one': (count) => `SELECT ${'1 IN ((1)), '.repeat(count / 4)}1`,
    'parentheses as deep as may be': (count) =>
      `SELECT ${`${'('.repeat(90)}1${')'.repeat(90)}, `.repeat(count / 180)}1`,
    unions: (count) => `${'SELECT 1 UNION ALL '.repeat(count / 4)}SELECT 1`,
    'common table expressions': (count) =>
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
