import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

/** Calls over a list `l` of n elements, and over the n rows of `numbers(n)`. */
const OF_LISTS = [
  'arrayCumSum(l)[n]',
  'arrayCumSumNonNegative(l)[n]',
  'arrayCumSum(x -> x + 1, l)[n]',
  'arrayEnumerateUniq(l)[n]',
  'arrayFill(x -> x % 2 = 0, l)[n]',
  'arrayReverseFill(x -> x % 2 = 0, l)[n]',
  'length(arraySplit(x -> x = 1, l))',
  'hasSubstr(l, [1, 2])',
]
const OF_ROWS = [
  'groupArrayMovingSum(number)[1]',
  'groupArrayMovingAvg(9000)(number)[1]',
  'maxIntersections(number, number + 2)',
]

const ofList = (call: string, n: number): string => `SELECT ${call} FROM (SELECT range(${n}) AS l, ${n} AS n)`
const ofRows = (call: string, n: number): string => `SELECT ${call} FROM numbers(${n})`

describe('functions whose work grows with the square of a list', () => {
  test('refuse a list of more than 4000 elements', async () => {
    for (const call of OF_LISTS) await assert.rejects(opened.ask(ofList(call, 4001)), /list_length/, call)
    for (const call of OF_ROWS) await assert.rejects(opened.ask(ofRows(call, 4001)), /list_length/, call)
  })

  test('compute with 4000', async () => {
    const { body } = await opened.ask(ofList('arrayCumSum(l)[n], arrayEnumerateUniq(l)[n]', 4000))
    assert.equal(body.toString(), '["7998000",1]\n')
    const rows = await opened.ask(
      ofRows('groupArrayMovingSum(number)[4000], maxIntersections(number, number + 2)', 4000),
    )
    assert.equal(rows.body.toString(), '["7998000","2"]\n')
  })
})

describe('aggregates that read all values once for each key or bucket', () => {
  const OF_KEYS = [
    'sumMap(map(number, 1))',
    'minMap([number], [1])',
    'maxMap(map(number, 1))',
    'topKWeighted(3)(number, 1)',
  ]

  test('compute with 16,000,000 steps and refuse more', async () => {
    for (const call of OF_KEYS) {
      const { body } = await opened.ask(ofRows(`length(toString(${call})) > 0`, 4000))
      assert.equal(body.toString(), '[1]\n', call)
      await assert.rejects(opened.ask(ofRows(call, 4001)), /list_length/, call)
    }
    await assert.rejects(opened.ask(ofRows('histogram(250)(number)', 64_001)), /list_length/)
  })

  test('take many rows where there are few keys or buckets', async () => {
    const { body } = await opened.ask(
      ofRows('sumMap(map(number % 2, 1)), topKWeighted(1)(number % 3, number), histogram(2)(number)', 200_000),
    )
    assert.equal(body.toString(), '[{"0":"100000","1":"100000"},[1],[[0,99999.5,100000],[99999.5,199999,100000]]]\n')
  })

  test('each value is in one bucket, the largest in the last', async () => {
    const { body } = await opened.ask(
      'SELECT histogram(5)(number), histogramIf(2)(number, number > 20), histogram(2)(toNullable(7)) FROM numbers(23)',
    )
    const five = [0, 1, 2, 3, 4].map((at) => [4.4 * at, 4.4 * (at + 1), [5, 4, 5, 4, 5][at]])
    assert.deepEqual(
      JSON.parse(body.toString(), (_, each) => (typeof each === 'number' ? Number(each.toFixed(9)) : each)),
      [
        five.map((each) => each.map((number) => Number(number?.toFixed(9)))),
        [
          [21, 21.5, 1],
          [21.5, 22, 1],
        ],
        [
          [7, 7, 0],
          [7, 7, 23],
        ],
      ],
    )
  })
})

describe('weighted quantiles', () => {
  test('are computed in one pass', async () => {
    const { body } = await opened.ask(
      'SELECT quantileExactWeighted(0.5)(number, 1), quantilesExactWeighted(0, 0.1, 1)(number, number % 3) FROM numbers(30000)',
    )
    assert.equal(body.toString(), '["14999",["0","2999","29999"]]\n')
    await assert.rejects(opened.ask('SELECT quantileExactWeighted(number, 1) FROM numbers(100001)'), /list_length/)
  })

  test('of no rows are the default, of weights without a sum the first value', async () => {
    const { body } = await opened.ask(
      'SELECT quantileExactWeighted(0.5)(number, 1), quantilesExactWeighted(0.5)(number, 1) FROM numbers(3) WHERE number > 5',
    )
    assert.equal(body.toString(), '["0",["0"]]\n')
    const zero = await opened.ask('SELECT quantileExactWeighted(0.5)(number + 7, 0) FROM numbers(3)')
    assert.equal(zero.body.toString(), '["7"]\n')
  })
})
