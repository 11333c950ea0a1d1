import { after, before, describe, test } from 'node:test'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

/** Values of functions of times as ClickHouse 26.5 has them. */
let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const have = (expected: ExpectedRows) => () => assertRows(opened, expected)

test(
  'units have short names',
  have({
    "SELECT dateDiff('ms', toDateTime64('2024-01-01 00:00:00.1', 3), toDateTime64('2024-01-01 00:00:00.35', 3)), dateDiff('us', toDateTime64('2024-01-01 00:00:00.1', 3), toDateTime64('2024-01-01 00:00:00.35', 3))":
      [[250, 250_000]],
    "SELECT dateDiff('s', toDateTime('2024-01-01 00:00:00'), toDateTime('2024-01-01 00:00:07')), dateDiff('ss', toDateTime('2024-01-01 00:00:00'), toDateTime('2024-01-01 00:00:07')), dateDiff(mm, toDate('2024-01-01'), toDate('2024-03-01'))":
      [[7, 7, 2]],
  }),
)

test(
  'DateTime64 has the digits of its scale, also where it is compared',
  have({
    "SELECT toDateTime64('2024-01-05 07:08:09.987', 1) = toDateTime64('2024-01-05 07:08:09.9', 1), CAST('2024-01-05 07:08:09.987' AS DateTime64(1)) = CAST('2024-01-05 07:08:09.9' AS DateTime64(1))":
      [[1, 1]],
    "SELECT count() FROM (SELECT DISTINCT toDateTime64(concat('2024-01-05 07:08:09.9', toString(number)), 1) AS t FROM numbers(3))":
      [[1]],
  }),
)

test(
  'a time as a text of a zone, and as a number with a fraction',
  have({
    "SELECT toString(toDateTime('2024-01-01 00:00:00', 'UTC'), 'America/New_York'), toFloat64(toDateTime64('2024-01-01 00:00:00.5', 3))":
      [['2023-12-31 19:00:00', 1_704_067_200.5]],
    "SELECT age('month', toDate('2024-01-31'), toDate('2024-02-29')), age('month', toDate('2024-01-31'), toDate('2024-03-30')), age('year', toDate('2020-02-29'), toDate('2024-02-28'))":
      [[0, 1, 3]],
    "SELECT EXTRACT(WEEK FROM toDate('2024-12-30'))": [[1]],
    'SELECT formatReadableTimeDelta(1e8)': [['3 years, 2 months, 1 day, 9 hours, 46 minutes and 40 seconds']],
  }),
)

test(
  'a date of numbers',
  have({
    'SELECT makeDate(2024, 13, 1), makeDate(2023, 2, 29), makeDate(2024, 60), makeDate(2024, 2, 29)': [
      ['1970-01-01', '2023-03-01', '2024-02-29', '2024-02-29'],
    ],
  }),
)

describe('a text as a time', () => {
  test(
    'is a date, a date and a time to the second, or a number of seconds',
    have({
      "SELECT toDateTimeOrNull('1704438489'), toDateTimeOrNull('2024-01-05'), toDateTimeOrNull('2024-01-05 07:08:09')":
        [['2024-01-05 07:08:09', '2024-01-05 00:00:00', '2024-01-05 07:08:09']],
      "SELECT toDateTimeOrNull('2024-01-05 07:08:09.7'), toDateTimeOrNull('2024-01-05T07:08:09Z'), toDateTimeOrNull('2024-01-05 07:08')":
        [[null, null, null]],
    }),
  )

  test(
    'has an offset of its own',
    have({
      "SELECT toDateTime('2024-01-05T07:08:09+02:00'), toDateTime(materialize('2024-01-05 07:08:09.5-0330')), toDateTime64('2024-01-05T07:08:09.25+02', 2), toDateTime('2024-01-05T07:08:09Z', 'Asia/Tokyo')":
        [['2024-01-05 05:08:09', '2024-01-05 10:38:09', '2024-01-05 05:08:09.25', '2024-01-05 16:08:09']],
      "SELECT toDateTime('2024-01-05 05:08:09') = '2024-01-05 07:08:09+02:00', toUnixTimestamp('2024-01-05 07:08:09+02:00')":
        [[1, 1_704_431_289]],
    }),
  )

  test('has an offset of its own as a parameter', () =>
    assertRows(
      opened,
      { 'SELECT {t:DateTime}, {u:DateTime64(3)}': [['2024-01-05 05:08:09', '2024-01-05 10:38:09.250']] },
      { parameters: { t: '2024-01-05T07:08:09+02:00', u: '2024-01-05 07:08:09.250-0330' } },
    ))

  test(
    'has many forms for parseDateTimeBestEffort',
    have(
      Object.fromEntries(
        Object.entries({
          '1704438489123': '2024-01-05 07:08:09',
          '5 Jan 2024 7:08 PM': '2024-01-05 19:08:00',
          'Jan 5, 2024 07:08:09': '2024-01-05 07:08:09',
          'Jan 5 2024 7:08:09 PM': '2024-01-05 19:08:09',
          '5-Jan-2024': '2024-01-05 00:00:00',
          '05/01/2024': '2024-01-05 00:00:00',
          'Fri, 05 Jan 2024 07:08:09 GMT': '2024-01-05 07:08:09',
          '2024-01-05 07:08:09 UTC': '2024-01-05 07:08:09',
          '24-01-05': '2005-01-24 00:00:00',
          '2024-01-05 07': '2024-01-05 07:00:00',
          '2024': '2024-01-01 00:00:00',
          '2024-01': '2024-01-01 00:00:00',
          '2024-01-05T07:08:09-03': '2024-01-05 10:08:09',
          '2024-01-05T07:08:09+0530': '2024-01-05 01:38:09',
          '2024-01-05T07:08:09.123456Z': '2024-01-05 07:08:09',
          '20240105T070809Z': '2024-01-05 07:08:09',
        }).map(([text, time]) => [`SELECT parseDateTimeBestEffortOrNull('${text}')`, [[time]]]),
      ),
    ),
  )
})
