import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passClickHouseGate } from './clickhouse-gate.ts'
import { QueryError, type QueryErrorName } from './query-error.ts'
import { QUERY_PACK } from './query-pack.ts'
import { PUBLISHED } from './query-run.ts'
import { CLICKHOUSE_ESCAPES } from './test-hostile.ts'

const judge = (sql: string) => passClickHouseGate(sql, { tables: PUBLISHED, database: 'chain' })

const GOOD = [
  'SELECT 1',
  "SELECT 'from system.tables; url(''x'')', `join`, \"in\" FROM blocks",
  'SELECT count() FROM chain.blocks FINAL PREWHERE slot > 5 WHERE slot IN (1, 2, 3)',
  'WITH t AS (SELECT slot FROM blocks), u AS (SELECT max(slot) AS m FROM t) SELECT t.slot FROM t, u WHERE t.slot = u.m',
  'SELECT a.slot, b.leader FROM transactions AS a ANY LEFT JOIN blocks AS b USING (slot) WHERE b.slot IN (SELECT b.slot FROM blocks b)',
  'SELECT signer, count() FROM transactions ARRAY JOIN signers AS signer, program_ids AS p GROUP BY signer, p ORDER BY 2 DESC, 1 LIMIT 5',
  'SELECT arrayMap(x -> x + 1, [1, 2]), quantile(0.5)(fee), sumIf(fee, success), uniqExactIf(fee_payer, fee > 0) FROM transactions',
  'SELECT CAST(fee AS Nullable(Decimal(18, 4))), toDecimal64(fee, 2), fee::Float64 FROM transactions LIMIT 1 BY fee_payer',
  'SELECT number FROM numbers(10) WHERE number NOT IN (SELECT slot FROM blocks) UNION ALL SELECT slot FROM blocks',
  'SELECT sum(fee) OVER (PARTITION BY leader ORDER BY slot) FROM blocks WINDOW w AS (ORDER BY slot), v AS (ORDER BY slot)',
  '(SELECT 1) UNION ALL (SELECT 2)',
  'SELECT {a:String}, {b:Array(UInt64)} FROM ((SELECT 1))',
  'SELECT CASE WHEN slot IN (1) THEN 1 ELSE 2 END IN (1) FROM blocks -- FROM system.tables',
  'SELECT slot FROM blocks WHERE slot IN (SELECT t.slot FROM transactions t WHERE t.fee IN (5000))',
]

test('ordinary questions pass, and all of the query pack', () => {
  for (const sql of [...GOOD, ...QUERY_PACK.map((query) => query.sql)]) {
    assert.doesNotThrow(() => judge(sql), sql)
  }
})

test('what the server reads is what was judged: comments and odd spaces are gone, the end is taken off', () => {
  const { sql, format, settings } = judge(
    "SELECT/*x*/slot\u00a0FROM--y\nblocks WHERE x='it''s' SETTINGS max_execution_time = 5 FORMAT JSON;",
  )
  assert.equal(sql, "SELECT slot FROM blocks WHERE x = 'it''s'")
  assert.equal(format, 'JSON')
  assert.deepEqual([...settings], [['max_execution_time', '5']])
  // Written again it is the same.
  assert.equal(judge(sql).sql, sql)
})

test('T14: what reaches for anything else is refused before the server sees it', () => {
  for (const sql of CLICKHOUSE_ESCAPES) {
    assert.throws(
      () => judge(sql),
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
  for (const [sql, type, says] of cases)
    assert.throws(
      () => judge(sql),
      (error: QueryError) => error.type === type && says.test(error.message),
      sql,
    )
})
