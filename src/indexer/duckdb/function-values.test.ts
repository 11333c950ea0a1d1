import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

async function rows(statement: string): Promise<unknown> {
  const { body } = await opened.ask(statement, {}, { defaultFormat: 'JSONCompactEachRow' })
  return body
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
}

/** The values that ClickHouse 26.5 has. */
async function haveValues(expected: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [expression, expectedValue] of Object.entries(expected))
    assert.deepEqual(await rows(`SELECT ${expression} AS x`), [[expectedValue]], expression)
}

describe('the index of an array', () => {
  test('may be any whole number', () =>
    haveValues({
      '[1, 2, 3][length([1, 2, 3])]': 3,
      '[1, 2, 3][indexOf([1, 2, 3], 2)]': 2,
      "['a', 'b'][toUInt64(2)]": 'b',
      'arrayElementOrNull([1, 2, 3], toUInt64(2))': 2,
      '[1, 2, 3][toInt64(-1)]': 3,
    }))

  test('behind the end gives the default, above the range of the engine too', () =>
    haveValues({
      '[1, 2, 3][toUInt64(4)]': 0,
      '[1, 2, 3][18446744073709551615]': 0,
      'arrayElementOrNull([1, 2, 3], 18446744073709551615)': null,
      '[[1], [2, 3]][toUInt64(5)]': [],
    }))

  test('that is NULL gives NULL', () =>
    haveValues({ '[1, 2, 3][nullIf(2, 2)]': null, '[1, 2, 3][nullIf(toUInt64(2), 2)]': null }))

  test('of a row is one of its columns', async () =>
    assert.deepEqual(await rows('SELECT [10, 20, 30][number + 1] AS x FROM numbers(4)'), [[10], [20], [30], [0]]))
})

describe('aggregates ignore NULL', () => {
  test('first and last values', async () => {
    assert.deepEqual(await rows('SELECT first_value(nullIf(number, 0)), anyLast(nullIf(number, 2)) FROM numbers(3)'), [
      ['1', '1'],
    ])
    assert.deepEqual(
      await rows('SELECT anyLastIf(nullIf(number, 2), number < 3), anyLastOrNull(nullIf(number, 4)) FROM numbers(5)'),
      [['1', '3']],
    )
  })

  test('first and last values of a window', async () => {
    const over = 'OVER (ORDER BY number)'
    assert.deepEqual(
      await rows(
        `SELECT first_value(nullIf(number, 0)) ${over}, last_value(nullIf(number, 2)) ${over} FROM numbers(3) ORDER BY number`,
      ),
      [
        [null, '0'],
        ['1', '1'],
        ['1', '1'],
      ],
    )
  })

  test('exact quantiles', async () => {
    const names = ['quantileExact', 'quantileExactLow', 'quantileExactHigh']
    const calls = names.map((name) => `${name}(0.5)(nullIf(number, 0))`).join(', ')
    assert.deepEqual(await rows(`SELECT ${calls} FROM numbers(10)`), [['5', '5', '5']])
    assert.deepEqual(await rows('SELECT quantilesExact(0.1, 0.5, 0.9)(nullIf(number, 0)) FROM numbers(10)'), [
      [['1', '5', '9']],
    ])
    assert.deepEqual(await rows('SELECT quantileExactWeighted(0.5)(nullIf(number, 0), 1) FROM numbers(4)'), [['2']])
  })

  test('averages of logarithms', async () => {
    assert.deepEqual(await rows('SELECT round(avg(log(nullIf(number, 0))), 4) FROM numbers(3)'), [[0.3466]])
    await haveValues({ 'log(nullIf(8, 8))': null, 'log2(nullIf(8, 8))': null, 'isNaN(log10(-1))': 1 })
  })
})

test('groupConcat ends after the number of values', async () => {
  assert.deepEqual(
    await rows("SELECT groupConcat(',', 2)(number), groupConcat(',', 2)(nullIf(number, 0)) FROM numbers(4)"),
    [['0,1', '1,2']],
  )
  assert.deepEqual(await rows("SELECT groupConcatIf(',', 2)(number, number > 9) FROM numbers(4)"), [['']])
  await assert.rejects(rows("SELECT groupConcat(',', 0)(number) FROM numbers(4)"), { type: 'BAD_ARGUMENTS' })
})

describe('rounding of whole numbers', () => {
  test('rounds the half away from zero', () =>
    haveValues({
      'round(5000, -4)': 10000,
      'round(25000, -4)': 30000,
      'round(25, -1)': 30,
      'round(-25, -1)': -30,
      'round(24, -1)': 20,
      'roundBankers(25, -1)': 20,
      'roundBankers(35, -1)': 40,
    }))

  test('has all digits of 64 bits', () =>
    haveValues({
      'floor(18446744073709551615, -3)': '18446744073709551000',
      'trunc(18446744073709551615, -3)': '18446744073709551000',
      'floor(-25, -1)': -30,
      'ceil(-25, -1)': -20,
      'ceil(21, -1)': 30,
      'ceil(0, -1)': 0,
    }))

  test('gives 0 for a power of ten that the type has not', () =>
    haveValues({ 'ceil(5, -20)': 0, 'floor(-5, -3)': 0, 'round(5, -1000000000)': 0 }))

  test('takes whole digits, and refuses a result that the type has not', async () => {
    await assert.rejects(rows('SELECT round(25, -1.5)'), { type: 'BAD_ARGUMENTS' })
    await assert.rejects(rows('SELECT round(toUInt8(255), -2)'), { type: 'TYPE_MISMATCH' })
  })
})

test('functions of numbers outside of their domain give NaN', () =>
  haveValues({ 'isNaN(sqrt(-1))': 1, 'isNaN(asin(2))': 1, 'isNaN(acos(-2))': 1, 'sqrt(nullIf(4, 4))': null }))

describe('lambdas inside of lambdas', () => {
  test('keep their parameters apart', () =>
    haveValues({
      'arrayFold((acc, x) -> acc + arrayFold((b, y) -> b + x * y, [1, 2], toInt64(0)), [1, 2, 3], toInt64(0))': '18',
      'arrayFold((acc, x) -> acc + countEqual([1, 2, 2], x), [1, 2, 3], toUInt64(0))': '3',
      'arrayFold((acc, x) -> acc + length(arrayDistinct([x, acc, 1])), [1, 2, 3], toInt64(0))': '7',
      "mapFilter((k, v) -> mapExists((k2, v2) -> v2 > v, map('a', 1, 'b', 2)), map('x', 0, 'z', 5))": { x: 0 },
    }))

  test('fold elements of another type, and several arrays', () =>
    haveValues({
      "arrayFold((a, x) -> a + length(x), ['xx', 'yyy'], toUInt64(0))": '5',
      'arrayFold((a, x) -> arrayPushBack(a, x), [1, 2, 3], emptyArrayUInt64())': ['1', '2', '3'],
      'arrayFold((a, x, y) -> a + x * y, [1, 2, 3], [4, 5, 6], toInt64(0))': '32',
      'arrayFold((a, x) -> a + x, emptyArrayUInt64(), toUInt64(7))': '7',
    }))
})

test('arrays of different lengths are an error', async () => {
  for (const call of [
    'arrayMap((x, y) -> x + y, [1, 2], [1])',
    'arrayFilter((x, y) -> x > y, [1], [1, 2])',
    'arraySum((x, y) -> x * y, [1, 2], [1])',
    'arraySort((x, y) -> y, [1, 2, 3], [3, 2])',
    'arrayFold((a, x, y) -> a + x * y, [1, 2], [1], toInt64(0))',
    'arrayZip([1, 2], [1])',
    'arrayUniq([1, 2], [1])',
    'arrayDotProduct([1, 2], [1])',
  ])
    await assert.rejects(rows(`SELECT ${call}`), { type: 'SIZES_OF_ARRAYS_DONT_MATCH', code: 190 }, call)
})
