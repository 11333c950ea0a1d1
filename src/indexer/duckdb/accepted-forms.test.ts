import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const haveRows = (expected: ExpectedRows) => assertRows(opened, expected)

describe('position from a start', () => {
  test('counts bytes, or characters with the ending UTF8, from the begin of the text', async () => {
    await haveRows({
      "SELECT arrayMap(i -> position('abcabc', 'b', i), range(0, 9))": [[[2, 2, 2, 5, 5, 5, 0, 0, 0]]],
      "SELECT arrayMap(i -> position('äbcäbc', 'b', i), range(0, 11))": [[[3, 3, 3, 3, 7, 7, 7, 7, 0, 0, 0]]],
      "SELECT arrayMap(i -> positionUTF8('äbcäbc', 'b', i), range(0, 9))": [[[2, 2, 2, 5, 5, 5, 0, 0, 0]]],
      "SELECT arrayMap(i -> locate('b', 'abcabc', i), range(0, 9))": [[[2, 2, 2, 5, 5, 5, 0, 0, 0]]],
      "SELECT arrayMap(i -> positionCaseInsensitive('aBcabc', 'b', i), range(0, 9))": [[[2, 2, 2, 5, 5, 5, 0, 0, 0]]],
      "SELECT position('aäb', 'b', 3), position('aäb', 'b', 5), position('äa', 'ä', 2), position('aäb', '', 3)": [
        [4, 0, 0, 3],
      ],
    })
  })

  test('finds an empty text at the start itself, up to the end', async () => {
    await haveRows({
      "SELECT arrayMap(i -> position('abc', '', i), range(0, 7))": [[[1, 1, 2, 3, 4, 0, 0]]],
      "SELECT arrayMap(i -> positionUTF8('äbc', '', i), range(0, 7))": [[[1, 1, 2, 3, 4, 0, 0]]],
      "SELECT position(materialize(''), '', 1), position('', 'a', 1), position('', '', 0), position('', '', 2)": [
        [1, 0, 1, 0],
      ],
    })
  })

  test('takes unsigned numbers only', async () => {
    for (const start of ['-1', 'toInt64(1)', '1.5', "'1'"])
      await assert.rejects(opened.ask(`SELECT position('abc', 'c', ${start})`), { type: 'ILLEGAL_TYPE_OF_ARGUMENT' })
    await haveRows({
      "SELECT position('abc', 'c', NULL), toTypeName(position('abc', materialize(toNullable('c')), 2))": [
        [null, 'Nullable(UInt64)'],
      ],
      "SELECT position(x, 'c', 2), position('abc', x, 2), position(x, '', 2), position('abc', 'c', y), positionUTF8('abc', '', y) FROM (SELECT materialize(CAST(NULL AS Nullable(String))) AS x, materialize(CAST(NULL AS Nullable(UInt8))) AS y)":
        [[null, null, null, null, null]],
      "SELECT position('abc', '', 18446744073709551615), position('abc', 'c', 18446744073709551615)": [[0, 0]],
    })
  })
})

describe('LIMIT and OFFSET', () => {
  test('take a calculation with constants', async () => {
    await haveRows({
      'SELECT number FROM numbers(10) LIMIT 1 + 1': [[0], [1]],
      'SELECT number FROM numbers(10) LIMIT 2 * 2 OFFSET 5 - 2': [[3], [4], [5], [6]],
      'SELECT number FROM numbers(10) LIMIT 10 / 5': [[0], [1]],
      'SELECT number FROM numbers(10) LIMIT INTDIV(5, 2)': [[0], [1]],
      'SELECT number FROM numbers(10) LIMIT -1 + (5 % 3) * 2, intDiv(5, 2)': [[3], [4]],
      'SELECT number FROM numbers(10) ORDER BY number LIMIT 1 + 1 BY number % 2': [[0], [1], [2], [3]],
    })
  })

  test('refuse a fraction, a negative number, a division by zero and a column', async () => {
    for (const count of [
      '18446744073709551615 - 18446744073709551614',
      '10 / 4',
      '1 - 3',
      '1 / 0',
      '5 % 0',
      '1 + number',
      '9007199254740991 + 1',
    ])
      await assert.rejects(opened.ask(`SELECT number FROM numbers(10) LIMIT ${count}`), {
        type: 'INVALID_LIMIT_EXPRESSION',
      })
  })
})

test('hex and bin of a negative number have the bytes of its type', async () => {
  await haveRows({
    'SELECT hex(toInt8(-1)), hex(toInt16(-1)), hex(toInt32(-2)), hex(toInt64(-1)), hex(toInt16(-256)), hex(-1)': [
      ['FF', 'FFFF', 'FFFFFFFE', 'FFFFFFFFFFFFFFFF', 'FF00', 'FF'],
    ],
    'SELECT hex(toInt32(255)), hex(0), hex(toInt16(1)), hex(true), hex(toUInt64(18446744073709551615))': [
      ['FF', '00', '01', '01', 'FFFFFFFFFFFFFFFF'],
    ],
    'SELECT bin(toInt8(-1)), bin(toInt16(-2)), bin(toInt32(-3)), bin(5)': [
      ['11111111', '1111111111111110', '11111111111111111111111111111101', '00000101'],
    ],
  })
})

test('CAST of an array converts each element as CAST of the element does', async () => {
  await haveRows({
    'SELECT CAST([1.7] AS Array(Int64)), CAST([-1.7, 2.5] AS Array(Int32)), CAST([1.5, 2.999] AS Array(Decimal(9, 2)))':
      [[[1], [-1, 2], [1.5, 2.99]]],
    "SELECT CAST(['1', '2'] AS Array(UInt8)), CAST([1, 2] AS Array(String)), CAST([[1.7], [2.2, 3.9]] AS Array(Array(Int8)))":
      [
        [
          [1, 2],
          ['1', '2'],
          [[1], [2, 3]],
        ],
      ],
    'SELECT CAST([1.7, NULL] AS Array(Nullable(Int64))), CAST([300, -1] AS Array(UInt8)), CAST([1, 2] AS Array(Float64))':
      [
        [
          [1, null],
          [44, 255],
          [1, 2],
        ],
      ],
    "SELECT CAST(['2024-01-01'] AS Array(Date)), CAST([1704067200] AS Array(DateTime('UTC'))), CAST([1, 0, 2] AS Array(Bool))":
      [[['2024-01-01'], ['2024-01-01 00:00:00'], [true, false, true]]],
    "SELECT arrayMap(x -> lower(x), CAST([unhex('41')] AS Array(Nullable(String)))), length(CAST([[unhex('4142')]] AS Array(Array(Nullable(String))))[1][1])":
      [[['a'], 2]],
    "SELECT CAST([] AS Array(Int64)), CAST(emptyArrayUInt64() AS Array(Int64)), CAST('[1, 2]' AS Array(Int64))": [
      [[], [], [1, 2]],
    ],
  })
})
