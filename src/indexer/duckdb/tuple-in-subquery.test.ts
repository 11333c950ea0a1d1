import { after, before, describe, test } from 'node:test'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const haveRows = (expected: ExpectedRows, given = {}) => assertRows(opened, expected, given)

describe('(a, b) IN (SELECT …)', () => {
  test('compares numbers of every type', () =>
    haveRows({
      'SELECT (number * 100, 1) IN (SELECT 5, 1), (number * 100, 1) IN (SELECT 200, 1) FROM numbers(4)': [
        [0, 0],
        [0, 0],
        [0, 1],
        [0, 0],
      ],
      'SELECT (toInt64(-1), 1) IN (SELECT toUInt64(18446744073709551615), 1), (toUInt64(18446744073709551615), 1) IN (SELECT toInt64(-1), 1), (1.5, 1) IN (SELECT 1, 1), (1, 1) IN (SELECT 1.5, 1), (1, 1) IN (SELECT 1., 1)':
        [[0, 0, 0, 0, 1]],
      'SELECT (toUInt64(18446744073709551615), 5) IN (SELECT CAST(1 AS Decimal(9, 2)), 5), (toDecimal64(1, 2), 1) IN (SELECT 1, 1), (true, 1) IN (SELECT 1, 1)':
        [[0, 1, 1]],
      'SELECT (300, (1, 2)) IN (SELECT 300, (1, 2)), ([1, 2], 300) IN (SELECT [1, 2], 1)': [[1, 0]],
      'SELECT (slot, tx_index) IN (SELECT max(slot), 0 FROM transactions) AS a, count() FROM transactions GROUP BY a ORDER BY a':
        [
          [0, 599],
          [1, 1],
        ],
    }))

  test('compares a number with a text as the type of the left side', () =>
    haveRows({
      "SELECT ('5', 1) IN (SELECT 5, 1), (5, 1) IN (SELECT '5', 1), (materialize('x'), 1) IN (SELECT 5, 1), (materialize(5), 1) IN (SELECT 'x', 1), (5, 1) NOT IN (SELECT 'x', 1)":
        [[1, 1, 0, 0, 1]],
      "SELECT (unhex('31'), 1) IN (SELECT 1, 1)": [[1]],
    }))

  test('never finds NULL', () =>
    haveRows({
      'SELECT (1, NULL) IN (SELECT 1, NULL), (toNullable(1), 2) IN (SELECT 3, NULL), (1, CAST(NULL AS Nullable(UInt8))) NOT IN (SELECT 1, 2), (1, 2) IN (SELECT 1, toNullable(2)), (1, 2) NOT IN (SELECT 1, NULL)':
        [[0, 0, 1, 1, 1]],
    }))
})

describe('x IN array', () => {
  test('compares numbers of every type', () =>
    haveRows(
      { 'SELECT number * 100 IN {l:Array(UInt8)} FROM numbers(4)': [[1], [1], [0], [0]] },
      { parameters: { l: '[0, 100]' } },
    ))
})
