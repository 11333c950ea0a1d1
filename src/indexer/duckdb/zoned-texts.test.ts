import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const haveRows = (expected: ExpectedRows, given = {}) => assertRows(opened, expected, given)

const MIDNIGHT = "WITH toDateTime('2024-01-01 00:00:00', 'Asia/Tokyo') AS x"
const TYPED = "DateTime('Asia/Tokyo')"

describe('the zone of a type decides what a text or a date means', () => {
  test('in comparisons', () =>
    haveRows({
      [`${MIDNIGHT} SELECT x = '2024-01-01 00:00:00', x IN ('2024-01-01 00:00:00', '2023-01-01 00:00:00'), x >= '2024-01-01 00:00:00', x != '2024-01-01 00:00:00', '2024-01-01 00:00:01' > x`]:
        [[1, 1, 1, 0, 1]],
      [`${MIDNIGHT} SELECT x = toDate('2024-01-01'), toDate('2024-01-01') = x, x < toDate('2024-01-02'), x IN (toDate('2024-01-01')), toDate('2024-01-01') IN (toDateTime('2024-01-01 00:00:00', 'Asia/Tokyo'))`]:
        [[1, 1, 1, 1, 1]],
      "WITH toDateTime('2024-01-01 00:30:00', 'Asia/Tokyo') AS x SELECT x BETWEEN '2024-01-01 00:00:00' AND '2024-01-01 01:00:00', x > toDate('2024-01-01')":
        [[1, 1]],
      "WITH toDateTime64('2024-01-01 00:00:00.500', 3, 'Asia/Tokyo') AS x SELECT x = '2024-01-01 00:00:00.500', x > '2024-01-01 00:00:00', x IN ('2024-01-01 00:00:00.500'), x > toDate('2024-01-01')":
        [[1, 1, 1, 1]],
      [`${MIDNIGHT} SELECT (x, 1) IN (('2024-01-01 00:00:00', 1), ('2024-01-02 00:00:00', 300)), (x, 1) = ('2024-01-01 00:00:00', 1), (x, 1) < ('2024-01-01 00:00:01', 1)`]:
        [[1, 1, 1]],
      [`${MIDNIGHT} SELECT x IN (SELECT toDate('2024-01-01')), x IN (SELECT '2024-01-01 00:00:00'), (x, 1) IN (SELECT '2024-01-01 00:00:00', 1), (x, 1) IN (SELECT toDate('2024-01-01'), 1)`]:
        [[1, 1, 1, 1]],
      "SELECT toStartOfDay(d, 'Europe/Berlin') AS e, count() AS c FROM (SELECT toDateTime('2026-11-01 05:00:00') + number * 43200 AS d FROM numbers(6)) GROUP BY e HAVING e >= '2026-11-02 00:00:00' ORDER BY e":
        [
          ['2026-11-02 00:00:00', 2],
          ['2026-11-03 00:00:00', 2],
        ],
    }))

  test('in CAST', () =>
    haveRows({
      [`SELECT toUnixTimestamp(CAST('2024-01-01 00:00:00' AS ${TYPED})), toUnixTimestamp('2024-01-01 00:00:00'::${TYPED})`]:
        [[1704034800, 1704034800]],
      "SELECT CAST('2024-01-01 00:00:00.123' AS DateTime64(3, 'Asia/Tokyo')) AS a, toUnixTimestamp(a)": [
        ['2024-01-01 00:00:00.123', 1704034800],
      ],
      [`${MIDNIGHT} SELECT CAST(x AS Date), toDate(x), x::Date`]: [['2024-01-01', '2024-01-01', '2024-01-01']],
      [`SELECT CAST(toDate('2024-01-01') AS ${TYPED}), CAST(1704034800 AS ${TYPED}), toDateTime64(toDate('2024-01-01'), 3, 'Asia/Tokyo')`]:
        [['2024-01-01 00:00:00', '2024-01-01 00:00:00', '2024-01-01 00:00:00.000']],
      [`${MIDNIGHT} SELECT CAST(x AS DateTime('UTC')), CAST(x AS DateTime), toTypeName(CAST(x AS Nullable(DateTime)))`]:
        [['2023-12-31 15:00:00', '2024-01-01 00:00:00', "Nullable(DateTime('Asia/Tokyo'))"]],
      'SELECT toDateTime64(1704034800, 3), CAST(1704034800 AS DateTime64(3)), CAST(1.5 AS DateTime64(3))': [
        ['2023-12-31 15:00:00.000', '2023-12-31 15:00:00.000', '1970-01-01 00:00:01.500'],
      ],
    }))

  test('in the common type of a date and a time', () =>
    haveRows({
      [`${MIDNIGHT} SELECT if(materialize(1), toDate('2024-01-01'), x), coalesce(toNullable(toDate('2024-01-01')), x), greatest(toDate('2024-01-02'), x), [toDate('2024-01-01'), x]`]:
        [
          [
            '2024-01-01 00:00:00',
            '2024-01-01 00:00:00',
            '2024-01-02 00:00:00',
            ['2024-01-01 00:00:00', '2024-01-01 00:00:00'],
          ],
        ],
    }))

  test('in parameters; a number of seconds is the same moment in every zone', async () => {
    const given = (t: string, l: string) => ({ parameters: { t, l } })
    const single = `SELECT toUnixTimestamp({t:${TYPED}}), toUnixTimestamp({t:DateTime64(3, 'Asia/Tokyo')}), toUnixTimestamp({t:DateTime})`
    const list = `SELECT arrayMap(x -> toUnixTimestamp(x), {l:Array(${TYPED})})`
    await haveRows(
      { [single]: [[1704034800, 1704034800, 1704067200]], [list]: [[[1704034800, 1704067200]]] },
      given('2024-01-01 00:00:00', "['2024-01-01 00:00:00', 1704067200]"),
    )
    await haveRows({ [single]: [[1704067200, 1704067200, 1704067200]] }, given('1704067200', '[]'))
  })
})

describe('formatDateTime', () => {
  test('writes the offset of the zone', () =>
    haveRows({
      "SELECT formatDateTime(toDateTime('2024-01-02 03:04:05'), '%F %T %z', 'Asia/Tokyo'), formatDateTime(toDateTime('2024-01-02 03:04:05'), '%z'), formatDateTime(toDateTime('2024-01-02 03:04:05'), '%z', 'America/New_York'), formatDateTime(toDateTime('2024-07-02 03:04:05'), '%z', 'Asia/Kolkata')":
        [['2024-01-02 12:04:05 +0900', '+0000', '-0500', '+0530']],
      "SELECT formatDateTime(toDateTime('2024-07-02 03:04:05', 'Europe/Berlin'), '%z|%%z'), formatDateTime(toDateTime('2024-07-02 03:04:05', 'America/St_Johns'), '%z'), formatDateTime(toDateTime64('2024-07-02 03:04:05.5', 3, 'America/New_York'), '%H%z')":
        [['+0200|%z', '-0230', '03-0400']],
      "SELECT fromUnixTimestamp(1704034800, '%F %T %z', 'Asia/Tokyo')": [['2024-01-01 00:00:00 +0900']],
    }))

  test('writes month and hour with two digits', () =>
    haveRows({
      "SELECT formatDateTime(toDateTime('2024-01-02 03:04:05'), '%c|%e|%k|%l'), formatDateTime(toDateTime('2024-11-12 15:04:05'), '%c|%e|%k|%l')":
        [['01|2|03|03', '11|12|15|03']],
      "SELECT parseDateTime('1/2/2024 3', '%c/%e/%Y %k')": [['2024-01-02 03:00:00']],
    }))

  test('an offset in a text is refused beside a zone', async () => {
    const pattern = "'%Y-%m-%d %H:%i:%s %z', 'Asia/Tokyo'"
    await assert.rejects(opened.ask(`SELECT parseDateTime('2024-01-02 03:04:05 +0000', ${pattern})`), /%z/)
    await assert.rejects(opened.ask("SELECT formatDateTime(toDate('2024-01-02'), '%z')"), /%z/)
  })
})
