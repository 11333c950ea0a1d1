import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { compileStatement } from '../dialect/compile-statement.ts'
import { parseStatement } from '../query/statement.ts'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const haveRows = (expected: ExpectedRows, given = {}) => assertRows(opened, expected, given)

/** The rows of one column `x`, not a number among them. */
const SOME = '(SELECT arrayJoin([1., 0/0, NULL, 2.]) AS x)'
const PRESENT = '(SELECT arrayJoin([1., 0/0, 2.]) AS x)'

describe('not a number', () => {
  test('is neither equal to nor above or below anything', () =>
    haveRows({
      'SELECT 0/0 > 1, 0/0 = 0/0, 0/0 >= 5, 0/0 != 0/0, 0/0 < 1, 0/0 <= 1, 1 != 0/0, 0/0 = 1, 1 < 0/0, 1 <= 0/0': [
        [0, 0, 0, 1, 0, 0, 1, 0, 0, 0],
      ],
      'SELECT 0/0 <=> 0/0, isNotDistinctFrom(0/0, 0/0), isDistinctFrom(0/0, 0/0), isNotDistinctFrom(1., 1.), isDistinctFrom(1., NULL)':
        [[0, 0, 1, 1, 1]],
      'SELECT toFloat32(0/0) > 1, toNullable(0/0) > 1, x > y, x >= y, x < y, y < x FROM (SELECT 0/0 AS x, 1. AS y)': [
        [0, 0, 0, 0, 0, 0],
      ],
      'SELECT CASE materialize(0/0) WHEN materialize(0/0) THEN 1 ELSE 2 END, isNaN(assumeNotNull(nullIf(0/0, 0/0)))': [
        [2, 1],
      ],
      'SELECT 0/0 > NULL, x = y, x != y, x < y, y > x, NOT (x > y) FROM (SELECT 0/0 AS x, CAST(NULL AS Nullable(Float64)) AS y)':
        [[null, null, null, null, null, null]],
      'SELECT count() FROM (SELECT 0/0 AS x) a JOIN (SELECT 0/0 AS x) b ON a.x = b.x': [[0]],
      'SELECT count() FROM (SELECT 0/0 AS x) a JOIN (SELECT 0/0 AS x) b USING (x)': [[0]],
    }))

  test('has no match in a join', () => {
    const pair = `FROM ${SOME} a LEFT JOIN ${SOME} b`
    const kept = [
      [1, 1],
      [2, 2],
      [null, null],
      [null, null],
    ]
    return haveRows({
      [`SELECT a.x, b.x ${pair} ON a.x = b.x ORDER BY a.x`]: kept,
      [`SELECT a.x, b.x ${pair} ON b.x = a.x AND a.x < 9 ORDER BY a.x`]: kept,
      [`SELECT count(), countIf(b.x IS NULL) ${pair} USING (x)`]: [[4, 2]],
      [`SELECT count() FROM ${SOME} a FULL JOIN ${SOME} b ON a.x = b.x`]: [[6]],
      [`SELECT count() FROM ${SOME} a FULL JOIN ${SOME} b USING (x)`]: [[6]],
      [`SELECT count(), countIf(isNaN(x)) FROM ${SOME} a ANTI JOIN ${SOME} b ON a.x = b.x`]: [[2, 1]],
      [`SELECT count() FROM ${SOME} a SEMI JOIN ${SOME} b USING (x)`]: [[2]],
      [`SELECT a.x, b.x FROM ${SOME} a ANY LEFT JOIN ${SOME} b ON a.x = b.x ORDER BY a.x`]: kept,
      [`SELECT a.x, b.x FROM ${SOME} a JOIN ${SOME} b ON a.x > b.x`]: [[2, 1]],
      [`SELECT a.x, b.x FROM ${SOME} a JOIN ${SOME} b ON a.x < b.x`]: [[1, 2]],
      [`SELECT a.x, b.x FROM ${PRESENT} a ASOF JOIN (SELECT x, 1 AS n FROM ${PRESENT}) b ON b.n = 1 AND a.x >= b.x ORDER BY a.x`]:
        [
          [1, 1],
          [2, 2],
        ],
      [`SELECT count() FROM ${SOME} a JOIN ${SOME} b ON a.x <=> b.x`]: [[3]],
      [`SELECT count() FROM ${PRESENT} a JOIN ${PRESENT} b ON NOT (a.x = b.x)`]: [[7]],
    })
  })

  test('is no reason for the engine to compare all rows of a join with each other', async () => {
    const [left, right] = ['a', 'b'].map((name) => `(SELECT number / 2 AS x FROM numbers(20)) ${name}`)
    using connection = await opened.database.connect()
    for (const join of ['LEFT JOIN', 'FULL JOIN', 'ANTI JOIN', 'ANY LEFT JOIN'])
      for (const on of ['ON a.x = b.x', 'USING (x)', ...(join === 'ANY LEFT JOIN' ? [] : ['ON a.x <=> b.x'])]) {
        const { sql } = compileStatement(parseStatement(`SELECT count() FROM ${left} ${join} ${right} ${on}`))
        const plan = await connection.run(`EXPLAIN ${sql}`)
        assert.match(JSON.stringify([...plan.pieces()]), /HASH_JOIN/, `${join} ${on}`)
      }
  })

  test('is left out by conditions', () =>
    haveRows({
      [`SELECT x FROM ${PRESENT} WHERE x > 0.3 ORDER BY x`]: [[1], [2]],
      [`SELECT x FROM ${PRESENT} WHERE NOT (x > 1.5) ORDER BY x`]: [[1], [null]],
      'SELECT countIf(x > 0.5), countIf(x != 1), min(x), max(x) FROM (SELECT arrayJoin([0/0, 1.]) AS x)': [
        [1, 1, 1, 1],
      ],
      'SELECT arrayFilter(x -> x > 1, [0/0, 2., 1.]), arrayCount(x -> x >= 1, [0/0, 2.])': [[[2], 1]],
    }))

  test('comes after the values, in both directions', () =>
    haveRows({
      [`SELECT x, isNull(x) FROM ${SOME} ORDER BY x`]: [
        [1, 0],
        [2, 0],
        [null, 0],
        [null, 1],
      ],
      [`SELECT x, isNull(x) FROM ${SOME} ORDER BY x DESC`]: [
        [2, 0],
        [1, 0],
        [null, 0],
        [null, 1],
      ],
      [`SELECT x, isNull(x) FROM ${SOME} ORDER BY x NULLS FIRST`]: [
        [null, 1],
        [null, 0],
        [1, 0],
        [2, 0],
      ],
      [`SELECT x, isNull(x) FROM ${SOME} ORDER BY x DESC NULLS FIRST`]: [
        [null, 1],
        [null, 0],
        [2, 0],
        [1, 0],
      ],
      [`SELECT x FROM ${PRESENT} ORDER BY -x DESC LIMIT 2`]: [[1], [2]],
      [`SELECT x FROM ${PRESENT} ORDER BY x DESC LIMIT 1 WITH TIES`]: [[2]],
      [`SELECT DISTINCT x FROM ${PRESENT} ORDER BY x DESC`]: [[2], [1], [null]],
    }))

  test('comes after the values in a window', () =>
    haveRows({
      [`SELECT x, rank() OVER (ORDER BY x DESC) AS r FROM ${PRESENT} ORDER BY r`]: [
        [2, 1],
        [1, 2],
        [null, 3],
      ],
      [`SELECT x, row_number() OVER (ORDER BY x NULLS FIRST) AS r FROM ${SOME} ORDER BY r`]: [
        [null, 1],
        [null, 2],
        [1, 3],
        [2, 4],
      ],
    }))

  test('is the largest value only where there is no other', () =>
    haveRows({
      "SELECT max(x), min(x), argMax(y, x), argMin(y, x) FROM (SELECT arrayJoin([(1., 'a'), (0/0, 'b'), (3., 'c')]) AS p, p.1 AS x, p.2 AS y)":
        [[3, 1, 'c', 'a']],
      "SELECT isNaN(max(x)), isNaN(min(x)), argMax(y, x) FROM (SELECT 0/0 AS x, 'a' AS y)": [[1, 1, 'a']],
      [`SELECT maxIf(x, x > 5), max(toNullable(x)), toString(maxOrNull(x)) FROM ${PRESENT}`]: [[0, 2, '2']],
      'SELECT max(x) OVER (ORDER BY n) FROM (SELECT arrayJoin([(1, 0/0), (2, 1.), (3, 3.)]) AS p, p.1 AS n, p.2 AS x) ORDER BY n':
        [[null], [1], [3]],
    }))

  test('is printed without a sign', () =>
    haveRows({
      "SELECT toString(0/0), concat('x', 0/0), arrayStringConcat([0/0, 1.], ','), toString([0/0]), toString(-1/0), toString(toFloat32(0/0))":
        [['nan', 'xnan', 'nan,1', '[nan]', '-inf', 'nan']],
    }))
})
