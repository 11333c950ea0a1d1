import { after, before, describe, test } from 'node:test'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const haveRows = (expected: ExpectedRows, given = {}) => assertRows(opened, expected, given)

const ONE = 'FROM (SELECT 1 AS k) a'
const MISSING = 'ON a.k = b.k'

describe('where an outer join has no row', () => {
  test('an array is empty in conditions, functions and groups', () =>
    haveRows({
      [`SELECT count() ${ONE} LEFT JOIN (SELECT 2 AS k, [1] AS a) b ${MISSING} WHERE empty(b.a)`]: [[1]],
      [`SELECT count() ${ONE} LEFT JOIN (SELECT 2 AS k, [1] AS a) b ${MISSING} WHERE length(b.a) = 0`]: [[1]],
      [`SELECT count() ${ONE} ANY LEFT JOIN (SELECT 2 AS k, [1] AS a) b ${MISSING} WHERE NOT has(b.a, 7)`]: [[1]],
      [`SELECT b.a, empty(b.a), isNull(b.a), toTypeName(b.a) ${ONE} LEFT JOIN (SELECT 2 AS k, [1] AS a) b ${MISSING}`]:
        [[[], 1, 0, 'Array(UInt8)']],
      'SELECT b.a AS g, count() AS c FROM (SELECT arrayJoin([1, 2, 3]) AS k) a LEFT JOIN (SELECT arrayJoin([2, 3]) AS k, emptyArrayUInt64() AS a) b ON a.k = b.k GROUP BY g':
        [[[], 3]],
    }))

  test('so it is on either side of a RIGHT and a FULL JOIN', () =>
    haveRows({
      'SELECT a.x, empty(a.x), b.k FROM (SELECT 1 AS k, [1, 2] AS x) a RIGHT JOIN (SELECT 2 AS k) b ON a.k = b.k': [
        [[], 1, 2],
      ],
      "SELECT a.k, b.k, length(a.x) AS p, length(b.y) AS q FROM (SELECT 1 AS k, [1] AS x) a FULL JOIN (SELECT 2 AS k, ['a', 'b'] AS y) b ON a.k = b.k ORDER BY p, q":
        [
          [null, 2, 0, 2],
          [1, null, 1, 0],
        ],
    }))

  test('a map is empty', () =>
    haveRows({
      [`SELECT b.m, isNull(b.m), length(b.m) ${ONE} LEFT JOIN (SELECT 2 AS k, map('a', 1) AS m) b ${MISSING}`]: [
        [{}, 0, 0],
      ],
    }))

  test('the elements of a tuple are NULL, arrays in it are empty', () =>
    haveRows({
      [`SELECT isNull(b.t), b.t.1, b.t.2, isNull(b.t.1), toTypeName(b.t.1) ${ONE} LEFT JOIN (SELECT 2 AS k, (1, 'x') AS t) b ${MISSING}`]:
        [[1, null, null, 1, 'Nullable(UInt8)']],
      [`SELECT b.t.1, b.t.2, length(b.t.1), empty(b.t.1) ${ONE} LEFT JOIN (SELECT 2 AS k, ([1], 2) AS t) b ${MISSING}`]:
        [[[], null, 0, 1]],
    }))

  test('blocks without transactions are kept by a condition about their arrays', () =>
    haveRows({
      "SELECT count() FROM blocks b LEFT JOIN (SELECT slot + 1000000 AS slot, program_ids FROM transactions) t ON b.slot = t.slot WHERE NOT has(t.program_ids, 'x')":
        [[20]],
    }))
})
