import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const haveRows = (expected: ExpectedRows, given = {}) => assertRows(opened, expected, given)

const OF = 'FROM (SELECT arrayJoin([1, 1, 1, 1, 9]) AS x)'

describe('DISTINCT inside of aggregates', () => {
  test('counts every value once', () =>
    haveRows({
      [`SELECT stddevPop(DISTINCT x), quantileExact(0.5)(DISTINCT x), median(DISTINCT x), sumCount(DISTINCT x), varSamp(DISTINCT x), groupBitXor(DISTINCT x), sumWithOverflow(DISTINCT x), avg(DISTINCT x), sum(DISTINCT x) ${OF}`]:
        [[4, 9, 5, [10, 2], 32, 8, 10, 5, 10]],
      [`SELECT arraySort(splitByChar(',', groupConcat(',')(DISTINCT x))), groupArraySorted(3)(DISTINCT x), quantiles(0.5, 0.9)(DISTINCT x), quantilesExact(0.5, 0.9)(DISTINCT x), entropy(DISTINCT x), histogram(2)(DISTINCT x) ${OF}`]:
        [
          [
            ['1', '9'],
            [1, 9],
            [5, 8.2],
            [9, 9],
            1,
            [
              [1, 5, 1],
              [5, 9, 1],
            ],
          ],
        ],
      [`SELECT stddevPopDistinct(x), medianDistinct(x), quantileExactDistinct(x), sumCountDistinct(x), entropyDistinct(x) ${OF}`]:
        [[4, 5, 9, [10, 2], 1]],
      'SELECT sumIf(DISTINCT x, x > 0), stddevPopIf(DISTINCT x, x > 0), round(stddevPopOrNull(DISTINCT x), 6), medianDistinctIf(x, x > 0) FROM (SELECT arrayJoin([1, 1, 9, -5]) AS x)':
        [[10, 4, 5.734884, 5]],
      [`SELECT DISTINCT stddevPop(DISTINCT x) OVER () ${OF}`]: [[4]],
      [`SELECT anyLast(DISTINCT x), max(DISTINCT x), any(DISTINCT x), uniqUpTo(3)(DISTINCT x) FROM (SELECT arrayJoin([9, 9]) AS x)`]:
        [[9, 9, 9, 1]],
    }))

  test('counts every pair of arguments once', () =>
    haveRows({
      'SELECT round(corr(DISTINCT x, y), 6), round(covarPop(DISTINCT x, y), 6), argMax(DISTINCT x, y), boundingRatio(DISTINCT x, y) FROM (SELECT arrayJoin([(1, 2), (1, 2), (9, 3), (4, 8)]) AS p, p.1 AS x, p.2 AS y)':
        [[0.012829, 0.111111, 4, 0.125]],
      'SELECT quantileExactWeighted(0.5)(DISTINCT x, w), maxIntersections(DISTINCT x, w), topKWeighted(2)(DISTINCT x, w) FROM (SELECT arrayJoin([(1, 10), (1, 10), (5, 11), (7, 20)]) AS p, p.1 AS x, p.2 AS w)':
        [[5, 3, [7, 5]]],
      "SELECT sumMap(DISTINCT m) FROM (SELECT arrayJoin([map('a', 1), map('a', 1), map('a', 3)]) AS m)": [[{ a: 4 }]],
      'SELECT sumMap(DISTINCT k, v) FROM (SELECT arrayJoin([([1], [2]), ([1], [2]), ([1], [5])]) AS p, p.1 AS k, p.2 AS v)':
        [[[[1], [7]]]],
    }))

  test('is refused where the engine would compute something else', async () => {
    for (const call of [
      ...['skewPop', 'skewSamp', 'kurtPop', 'kurtSamp', 'groupArrayMovingSum'].map((name) => `${name}(DISTINCT x)`),
      'groupArrayMovingAvg(2)(DISTINCT x)',
      'avgWeighted(DISTINCT x, x)',
      'sumArray(DISTINCT [x])',
      'count(DISTINCT *)',
      'skewPopDistinct(x)',
    ])
      await assert.rejects(opened.ask(`SELECT ${call} ${OF}`), /DISTINCT/, call)
  })
})
