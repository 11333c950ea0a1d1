import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QueryError } from '../query/error.ts'
import { parseStatement } from '../query/statement.ts'
import { compileStatement } from './compile-statement.ts'

/** Constructs that are not offered, each with its message. */
const REFUSED: readonly (readonly [sql: string, message: RegExp])[] = [
  ['SELECT * FROM blocks SAMPLE 0.1', /^Clause SAMPLE is not offered, at position 21\./],
  ['SELECT * FROM blocks SAMPLE 1/10 OFFSET 1/2', /^Clause SAMPLE is not offered/],
  ['SELECT * FROM blocks TABLESAMPLE 10%', /^Clause TABLESAMPLE is not offered/],
  ["SELECT 1 INTO OUTFILE 'x'", /^Clause INTO is not offered, at position 9\./],
  ['SELECT * FROM blocks PASTE JOIN rewards', /^Clause PASTE JOIN is not offered/],
  ['SELECT * FROM blocks NATURAL JOIN rewards', /^Clause NATURAL JOIN is not offered/],
  ['SELECT * FROM blocks POSITIONAL JOIN rewards', /^Clause POSITIONAL JOIN is not offered/],
  ['SELECT * FROM blocks, LATERAL (SELECT 1)', /^Clause LATERAL is not offered/],
  ['WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r', /^Clause WITH RECURSIVE is not offered, at position 5\./],
  ['SELECT slot FROM blocks ORDER BY slot WITH FILL INTERPOLATE', /^Clause INTERPOLATE is not offered/],
  ['SELECT slot FROM blocks ORDER BY slot WITH FILL STALENESS 5', /^Clause STALENESS is not offered/],
  ["SELECT leader FROM blocks ORDER BY leader COLLATE 'en'", /^Clause COLLATE is not offered/],
  ['SELECT slot FROM blocks LIMIT 1 BY ALL', /^Clause LIMIT BY ALL is not offered/],
  ['SELECT slot, count() FROM blocks GROUP BY slot WITH HOLES', /^Clause WITH HOLES is not offered/],
  [
    'SELECT slot, count() FROM blocks GROUP BY slot WITH TOTALS HAVING slot > 1',
    /^Clause WITH TOTALS together with HAVING is not offered/,
  ],
  ["SELECT COLUMNS('(a|b)+') FROM blocks", /^Clause COLUMNS with this pattern is not offered, at position 7\./],
  ['SELECT COLUMNS(slot, leader) FROM blocks', /^Syntax error|^Clause COLUMNS/],
  ['SELECT * FROM blocks AS b (x, y)', /^Clause column names after a table alias is not offered/],
  ['SELECT sum(slot ORDER BY slot) FROM blocks', /^Clause ORDER BY inside of a function is not offered/],
  ['SELECT first_value(slot) IGNORE NULLS OVER () FROM blocks', /^Clause IGNORE NULLS is not offered/],
  ['SELECT sum(slot) OVER (ORDER BY slot GROUPS 1 PRECEDING) FROM blocks', /^Clause GROUPS in a window is not offered/],
  [
    'SELECT * FROM (SELECT 1 SETTINGS max_threads = 1) LIMIT 1',
    /^Clause SETTINGS inside of a statement is not offered/,
  ],
  ['SELECT * FROM (SELECT 1 FORMAT JSON)', /^Clause FORMAT inside of a statement is not offered/],
  ['SELECT b.slot FROM blocks b SEMI FULL JOIN rewards r ON b.slot = r.slot', /^Clause SEMI FULL JOIN is not offered/],
  ['SELECT b.slot FROM blocks b ANY JOIN rewards r ON b.slot > r.slot', /^ANY JOIN is offered with equal columns/],
  [
    'SELECT sumState(fee) FROM transactions',
    /^Function sumState is not offered, at position 7; offered: .*docs\/schema\.md/,
  ],
  ['SELECT uniqMerge(fee) FROM transactions', /^Function uniqMerge is not offered/],
  ['SELECT sumForEach(signers) FROM transactions', /^Function sumForEach is not offered/],
  [
    'SELECT argMaxArray(signers, signers) FROM transactions',
    /^Function argMaxArray is not offered.*-Array.*ARRAY JOIN/,
  ],
  [
    'SELECT toStartOfMinut(block_time) FROM blocks',
    /^Function toStartOfMinut is not offered.*offered: toStartOfMinute/,
  ],
  ['SELECT arrayMapp(x -> x, [1])', /^Function arrayMapp is not offered.*arrayMap/],
  ['SELECT sleep(1)', /^Function sleep is not offered/],
  ["SELECT file('/etc/passwd')", /^Function file is not offered/],
  ["SELECT dictGet('d', 'a', 1)", /^Function dictGet is not offered/],
  ["SELECT getSetting('max_threads')", /^Function getSetting is not offered/],
  ["SELECT repeat('x', 1000000000)", /^Function repeat is not offered/],
  ['SELECT randomString(1000000000)', /^Function randomString at position 7 takes .*\(random_length\)/],
  ["SELECT getenv('PATH')", /^Function getenv is not offered/],
  ["SELECT read_text('/etc/passwd')", /^Function read_text is not offered/],
  ['SELECT list_transform([1], x -> x)', /^Function list_transform is not offered/],
  ['SELECT windowFunnel(10)(block_time, success) FROM transactions', /^Function windowFunnel is not offered/],
  ["SELECT sequenceMatch('(?1)')(block_time, success) FROM transactions", /^Function sequenceMatch is not offered/],
  ['SELECT cityHash64(1)', /^Function cityHash64 is not offered/],
  ['SELECT runningDifference(slot) FROM blocks', /^Function runningDifference is not offered/],
  ['SELECT geoDistance(1, 2, 3, 4)', /^Function geoDistance is not offered/],
  ['SELECT main.abs(1)', /^Function main\.abs is not offered, at position 7/],
  ["SELECT ('PATH').getenv()", /^Function getenv is not offered/],
  [
    "SELECT * FROM url('http://x', CSV, 'a String')",
    /^Table function url is not offered, at position 14; offered: numbers/,
  ],
  ["SELECT * FROM file('x')", /^Table function file is not offered/],
  ["SELECT * FROM remote('h', system.one)", /^Table function remote is not offered/],
  ['SELECT * FROM range(10)', /^Table function range is not offered/],
  ["SELECT * FROM generateRandom('a UInt8')", /^Table function generateRandom is not offered/],
  ['SELECT * FROM system.main.duckdb_tables()', /^Function system\.main\.duckdb_tables is not offered/],
  ['SELECT * FROM nosuch', /^Table nosuch does not exist; SHOW TABLES/],
  ['SELECT * FROM other.blocks', /^Database other does not exist/],
  ['SELECT nosuch FROM blocks', /^Unknown expression identifier nosuch at position 7\./],
  ['SELECT slot FROM blocks a, blocks b, blocks c', /^Ambiguous identifier slot at position 7/],
  [
    'SELECT leader, count() FROM blocks',
    /^Column leader at position 7 is neither under an aggregate function nor in GROUP BY/,
  ],
  ['SELECT slot FROM blocks WHERE count() > 1', /^Aggregate function count at position 30 is not allowed here/],
  ['SELECT rank() FROM blocks', /^Function rank at position 7 needs OVER/],
  ['SELECT anyHeavy(leader) FROM blocks', /^Function anyHeavy is not offered, at position 7/],
  ['SELECT quantileDeterministic(0.5)(slot, 1) FROM blocks', /^Function quantileDeterministic is not offered/],
  ['SELECT quantileInterpolatedWeighted(slot, 1) FROM blocks', /^Function quantileInterpolatedWeighted is not offered/],
  ['SELECT quantile(0.5)(slot, 1) FROM blocks', /^Function quantile at position 7 takes 1 arguments, not 2/],
  ['SELECT deltaSum(slot) FROM blocks', /^Function deltaSum is not offered/],
  [
    'SELECT exponentialMovingAverage(2)(fee, slot) FROM transactions',
    /^Function exponentialMovingAverage is not offered/,
  ],
  ["SELECT mapConcat(map('a', 1), map('b', 2))", /^Function mapConcat is not offered/],
  ["SELECT sipHash64('a'), xxHash64('b')", /^Function sipHash64 is not offered/],
  [
    "SELECT JSONExtract('{}', 'a', 'Tuple(b String)') AS t",
    /^Column t is Tuple\(b String\): tuples with names are not offered as results/,
  ],
  ["SELECT * FROM values('a', 1)", /^Table function values at position 14 takes names and types first/],
  ["SELECT * FROM values('a UInt8, b UInt8', (1, 2, 3))", /has 2 columns and a row of 3/],
  ['SELECT * FROM generate_series(1, 10, 2)', /^Table function generate_series is not offered/],
  [
    'SELECT lagInFrame(slot, 2) OVER (ORDER BY slot ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM blocks',
    /^Function lagInFrame with this frame is not offered, at position 7; offered: ROWS BETWEEN UNBOUNDED/,
  ],
  [
    'SELECT leadInFrame(slot) OVER (ORDER BY slot) FROM blocks',
    /^Function leadInFrame with this frame is not offered, at position 7/,
  ],
  [
    'SELECT lead(slot) OVER (ORDER BY slot ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM blocks',
    /^Function lead with this frame is not offered/,
  ],
  [
    'SELECT lag(slot, -1) OVER (ORDER BY slot) FROM blocks',
    /^Function lag at position 7 takes a constant whole number/,
  ],
  [
    'SELECT r.lamports FROM blocks b SEMI JOIN rewards r ON b.slot = r.slot',
    /^Column lamports of the other side of a SEMI JOIN is not offered, at position 7/,
  ],
  ['SELECT * FROM blocks b SEMI JOIN rewards r ON b.slot = r.slot', /of the other side of a SEMI JOIN is not offered/],
  ['SELECT CAST(leader AS FixedString(4)) FROM blocks', /^Unknown type FixedString\(4\)/],
  ["SELECT 'a'::FixedString(4)", /^Unknown type FixedString/],
  ['SELECT CAST(1 AS IPv4)', /^Unknown type IPv4/],
  ['SELECT INTERVAL 1 FORTNIGHT', /FORTNIGHT is not a unit of an interval; offered: SECOND/],
  ['SELECT 1 UNION SELECT 2', /write UNION ALL or UNION DISTINCT/],
  ['SELECT upper(1, 2)', /^Function upper at position 7 takes 1 arguments, not 2\./],
  ["SELECT leftPad('x', 100000)", /^Function leftPad at position 7 takes a constant length up to 1000 \(pad_length\)/],
  ['SELECT slot FROM blocks LIMIT slot', /^LIMIT and OFFSET take a whole number|^Unknown|^Column/],
  [
    "SELECT formatDateTime(block_time, '%Q') FROM blocks",
    /^Function formatDateTime at position 7 does not take the pattern %Q/,
  ],
  ['SELECT * FROM numbers(slot)', /^Unknown expression identifier slot|takes one or two constant numbers/],
  ['SELECT [1, [2]]', /^Function array at position 7 takes elements of one type/],
  ['SELECT if(1, 1, [2])', /^Function if at position 7 has branches of different types/],
  ['SELECT (SELECT 1, 2) IN (SELECT 1)', /^IN at position 21 compares 2 columns with 1/],
]

/** `count` aliases, each of which uses the one before. */
const aliases = (count: number, of: (before: string) => string): string =>
  ['1 AS a0', ...Array.from({ length: count }, (_, at) => `${of(`a${at}`)} AS a${at + 1}`)].join(', ')

test('aliases that stand for each other are bounded in work and depth, after GROUP BY too', () => {
  const cases = [
    [`WITH ${aliases(40, (before) => `${before} + ${before}`)} SELECT a40`, 'TOO_BIG_AST', /\(translation_steps\)/],
    [`SELECT ${aliases(40, (before) => `${before} + ${before}`)}`, 'TOO_BIG_AST', /\(translation_steps\)/],
    [
      `WITH ${aliases(40, (before) => `${before} + ${before}`)} SELECT a40, count() FROM blocks GROUP BY a39`,
      'TOO_BIG_AST',
      /\(translation_steps\)/,
    ],
    [`WITH ${aliases(3000, (before) => `${before} + 1`)} SELECT a3000`, 'TOO_DEEP_AST', /\(translation_nesting\)/],
  ] as const
  for (const [sql, type, message] of cases)
    assert.throws(() => compileStatement(parseStatement(sql)), { name: 'QueryError', type, message }, sql.slice(0, 60))
})

test('with session_timezone a time without a zone of its own is refused, and every other one is not', () => {
  const compiled = (sql: string) => compileStatement(parseStatement(sql), { timezone: 'Asia/Tokyo' })
  for (const sql of [
    'SELECT now()',
    "SELECT slot FROM blocks WHERE block_time > toDateTime('2026-01-01 00:00:00')",
    "SELECT toHour(parseDateTimeBestEffort('2026-01-01'))",
    "SELECT [toDateTime64('2026-01-01 00:00:00', 3)]",
  ])
    assert.throws(() => compiled(sql), {
      type: 'NOT_IMPLEMENTED',
      message: /^With session_timezone 'Asia\/Tokyo' a time/,
    })
  for (const sql of [
    "SELECT now('Asia/Tokyo'), toStartOfHour(block_time), toDate(block_time) FROM blocks",
    "SELECT slot FROM blocks WHERE block_time > '2026-01-01 00:00:00'",
  ])
    assert.ok(compiled(sql))
})

test('60 and more constructs that are not offered are refused by name', () => {
  assert.ok(REFUSED.length >= 60)
  for (const [sql, message] of REFUSED)
    assert.throws(
      () => compileStatement(parseStatement(sql)),
      (error: unknown) => {
        assert.ok(error instanceof QueryError, `${sql}: ${String(error)}`)
        assert.match(error.message, message, sql)
        return true
      },
      sql,
    )
})
