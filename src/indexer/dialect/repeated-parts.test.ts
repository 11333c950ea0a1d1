import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseStatement } from '../query/statement.ts'
import { compileStatement } from './compile-statement.ts'

const compiled = (sql: string, given: Record<string, string> = {}) => compileStatement(parseStatement(sql), { given })
const times = (count: number, of: (at: number) => string, by = ',') =>
  Array.from({ length: count }, (_, at) => of(at)).join(by)
const columns = (count: number) => `(SELECT ${times(count, (at) => `1 AS c${at}`)})`
const LONG = 'x'.repeat(100_000)
const tooLong = { name: 'QueryError', type: 'TOO_BIG_AST', message: /\(translation_length\)/ }
const tooManySteps = { name: 'QueryError', type: 'TOO_BIG_AST', message: /\(translation_steps\)/ }

/** CPU time of the statement, in milliseconds, whether it is refused or not. */
function cpuMs(sql: string, given: Record<string, string> = {}): number {
  const statement = parseStatement(sql)
  const before = process.threadCpuUsage()
  try {
    compileStatement(statement, { given })
  } catch {}
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

describe('a long part of a statement that is used often', () => {
  test('is refused before all of its uses are translated', () => {
    for (const sql of [
      `WITH '${LONG}' AS a SELECT ${times(2_600, () => 'a')}`,
      `WITH '${"''".repeat(100_000)}' AS a SELECT ${times(2_600, () => 'a')}`,
      `WITH '${LONG}' AS a SELECT ${times(2_600, () => 'a')} FROM blocks GROUP BY slot`,
      `WITH '${LONG}' AS a SELECT ${times(2_500, (at) => `a AS b${at}`)} FROM blocks GROUP BY slot`,
      `WITH [${times(900, () => `'${'x'.repeat(200)}'`)}] AS a SELECT ${times(2_600, () => 'a')}`,
      `WITH toString(slot) IN (${times(2_000, () => `'${'x'.repeat(100)}'`)}) AS a SELECT ${times(2_600, () => 'a')} FROM blocks`,
      `WITH (SELECT '${LONG}') AS a SELECT ${times(2_600, () => 'a')}`,
      `WITH x -> concat(x, '${LONG}') AS f SELECT ${times(2_600, () => "f('a')")}`,
      `WITH arrayMap(x -> concat(x, '${LONG}'), ['a']) AS f SELECT ${times(2_600, () => 'f')}`,
      `WITH ${'A'.repeat(100_000)} AS a SELECT ${times(2_600, () => 'a')} FROM (SELECT 1 AS ${'a'.repeat(100_000)})`,
      `WITH x -> x AS ${'A'.repeat(100_000)}, ${'A'.repeat(100_000)}(1) AS a SELECT ${times(2_600, () => 'a')}`,
      `SELECT ${times(2_600, () => '*')} FROM (SELECT '${LONG}')`,
      `SELECT grouping(${times(9_000, () => 'a')}), '${LONG}' AS a FROM blocks GROUP BY ROLLUP(a)`,
      `SELECT CASE '${LONG}' ${times(490, () => "WHEN 'a' THEN 2", ' ')} END`,
      `SELECT '${'9'.repeat(100_000)}' IN (${times(9_000, () => '1')})`,
      `SELECT 1 FROM blocks ARRAY JOIN ['${LONG}'] AS a, ${times(3_000, (at) => `[1] AS b${at}`)}`,
      `SELECT (SELECT ${times(4_000, () => '1')}) = (SELECT ${times(4_000, () => '1')})`,
      `SELECT 1, ${times(2_000, () => "COLUMNS('a|b|c|d|e|f|g')")} FROM (SELECT 1 AS ${'a'.repeat(100_000)})`,
    ])
      assert.throws(() => compiled(sql), tooLong, sql.replaceAll(/(.)\1{20,}/g, '$1…').slice(0, 80))
    for (const type of ['String', 'Array(String)'])
      assert.throws(() => compiled(`SELECT ${times(2_600, () => `{a:${type}}`)}`, { a: `['${LONG}']` }), tooLong, type)
  })

  test('is translated where it is used a few times', () => {
    assert.ok(compiled(`WITH '${LONG}' AS a SELECT a, a, a`))
    assert.ok(compiled('SELECT {a:String}, {a:String}', { a: LONG }))
    assert.ok(compiled(`SELECT slot FROM blocks WHERE blockhash IN (${times(2_600, () => `'${'x'.repeat(90)}'`)})`))
    assert.ok(compiled(`SELECT slot FROM blocks WHERE (slot, slot) IN (${times(3_200, (at) => `(${at}, 1)`)})`))
  })

  test('numbers of many digits are read as Float64, without their last digits', () => {
    const typeOf = (sql: string) => compiled(sql).columns[0]?.type
    assert.equal(typeOf(`SELECT ${'9'.repeat(200)}`), 'Float64')
    assert.equal(typeOf(`SELECT -0x${'f'.repeat(100)}`), 'Float64')
    assert.equal(typeOf('SELECT 18446744073709551615'), 'UInt64')
    assert.ok(compiled(`SELECT ${'9'.repeat(200)}`).sql.includes("CAST('1e+200' AS DOUBLE)"))
    for (const number of ['9'.repeat(250_000), `0x${'f'.repeat(250_000)}`]) {
      assert.throws(() => compiled(`SELECT ${number}`), { type: 'SYNTAX_ERROR', message: /out of range/ })
      assert.ok(cpuMs(`SELECT ${number}`) < 250)
    }
    assert.ok(compiled(`SELECT '${'9'.repeat(250_000)}' = 1`))
    assert.ok(cpuMs(`SELECT '${'9'.repeat(250_000)}' = 1`) < 250)
  })

  test('an expression before BETWEEN, which stands in two places, is not doubled many times', () => {
    const tooBig = { name: 'QueryError', type: 'TOO_BIG_AST', message: /\(between_parts\)/ }
    assert.ok(compiled(`SELECT ${times(700, () => 'slot + 1 BETWEEN 1 AND 2')} FROM blocks`))
    for (const sql of [
      `SELECT 1${' BETWEEN 1 AND 1'.repeat(40)}`,
      `SELECT ${'sum(1) FILTER (WHERE '.repeat(20)}1${' BETWEEN 1 AND 1) BETWEEN 1 AND 1'.repeat(20)}`,
    ])
      assert.throws(() => compiled(sql), tooBig)
  })

  test('patterns of times are short', () => {
    const tooLongPattern = { type: 'BAD_ARGUMENTS', message: /\(pattern_length\)/ }
    assert.ok(compiled(`SELECT formatDateTime(now(), '${'%Y'.repeat(50)}')`))
    assert.throws(() => compiled(`SELECT formatDateTime(now(), '${'%Y'.repeat(51)}')`), tooLongPattern)
    assert.throws(() => compiled(`SELECT parseDateTime('a', '${'%Y'.repeat(51)}')`), tooLongPattern)
  })
})

describe('two parts of a statement that are multiplied', () => {
  /** What was broken took seconds; a busy machine and code that runs for the first time take several times the usual 10 to 40 ms. */
  const CPU_MS_MAX = 250

  test('names and columns are looked up', () => {
    for (const sql of [
      `SELECT ${times(3_000, () => 'C1')} FROM ${columns(2_000)}`,
      `SELECT ${times(2_000, () => 'Q.c1')} FROM ${columns(2_000)} q`,
      `SELECT ${times(3_000, () => 'C1')} FROM ${columns(2_000)} GROUP BY C1`,
      `SELECT concat(${times(5_000, (at) => `u${at}`)}) FROM ${columns(1_500)} GROUP BY c1`,
      `SELECT 1 FROM ${columns(1_500)} q FULL JOIN ${columns(1_500)} w USING (${times(1_500, (at) => `c${at}`)})`,
      `SELECT * EXCEPT (${times(2_000, (at) => `c${at}`)}) FROM ${columns(2_001)}`,
      `SELECT * REPLACE (${times(2_000, (at) => `1 AS c${at}`)}) FROM ${columns(2_000)}`,
      `SELECT ${times(2_400, (at) => `1 AS c${at}`)} ORDER BY ${times(4_000, () => 'c2399')}`,
      `SELECT cast(1 AS Tuple(${times(9_900, () => 'abcdefghijklmnopqrstuv')}))`,
    ])
      assert.ok(cpuMs(sql) < CPU_MS_MAX, `${cpuMs(sql)} ms: ${sql.slice(0, 60)}`)
  })

  test('what an earlier part has made counts as steps where it is read again', () => {
    for (const sql of [
      `SELECT 1 FROM ${columns(500)} q ANY JOIN (SELECT ${times(500, (at) => `1 AS d${at}`)}) w ON ${times(1_000, (at) => `q.c${at % 500} = w.d${at % 500}`, ' AND ')}`,
      `WITH ${times(2_400, (at) => `1 AS a${at}`)} SELECT 1 UNION ALL (${times(49, () => `(${times(49, () => 'SELECT 1', ' UNION ALL ')})`, ' UNION ALL ')})`,
      `SELECT ${times(5_000, () => '*')} FROM ${columns(2_000)}`,
      `SELECT * ${times(3_900, () => 'APPLY(abs)', ' ')} FROM ${columns(900)}`,
      `WITH w AS ${columns(2_000)}, (SELECT 1 FROM w) AS a SELECT ${times(5_000, () => 'a')}`,
      `WITH w AS ${columns(1_500)}, ${times(250, (at) => `x${at} AS (SELECT 1 FROM ${times(19, () => 'w')})`)} SELECT 1`,
      `SELECT ${times(4_000, () => 't')} FROM (SELECT (SELECT ${times(5_000, () => '1')}) AS t)`,
      `SELECT ${times(1_000, () => 'untuple(t)')} FROM (SELECT (SELECT ${times(5_000, () => '1')}) AS t)`,
      `SELECT t FROM (SELECT tuple(${times(100, () => 't')}) AS t FROM (SELECT tuple(${times(100, () => 't')}) AS t FROM (SELECT tuple(${times(100, () => '1')}) AS t)))`,
      `WITH (${times(2_000, (at) => `a${at}`)}) -> [${times(900, () => 'arrayMap(x -> x, [1])')}] AS f SELECT f(${times(2_000, () => '1')})`,
    ]) {
      assert.throws(() => compiled(sql), tooManySteps, sql.slice(0, 60))
      assert.ok(cpuMs(sql) < CPU_MS_MAX, `${cpuMs(sql)} ms: ${sql.slice(0, 60)}`)
    }
  })

  test('wide tables are joined and read as before', () => {
    assert.ok(compiled(`SELECT * FROM ${columns(2_000)}`))
    assert.ok(compiled(`WITH w AS ${columns(200)} SELECT * FROM w a JOIN w b ON a.c1 = b.c1 JOIN w d ON b.c1 = d.c1`))
    assert.ok(compiled(`WITH ${times(50, (at) => `1 AS a${at}`)} ${times(200, () => 'SELECT a1', ' UNION ALL ')}`))
  })
})

test('time zones are checked once', () => {
  const zones = times(2_400, (at) => `toDateTime(1, '${at % 2 === 0 ? 'Europe/Berlin' : 'europe/BERLIN'}')`)
  assert.ok(compiled(`SELECT ${zones}`))
  assert.ok(cpuMs(`SELECT ${zones}`) < 250)
  assert.ok(compiled("SELECT toDateTime(1, 'US/Pacific')"))
  assert.throws(() => compiled("SELECT toDateTime(1, 'Europe/Nowhere')"), { type: 'BAD_ARGUMENTS' })
})
