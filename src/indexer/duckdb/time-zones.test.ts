import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

/** Type and value of one expression. */
async function result(expression: string): Promise<readonly [string, unknown]> {
  const defaultFormat = 'JSONCompactEachRowWithNamesAndTypes'
  const { body } = await opened.ask(`SELECT ${expression} AS x`, {}, { defaultFormat })
  const [, types, row] = body
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown[])
  return [types?.[0] as string, row?.[0]]
}

/** The types and values that ClickHouse 26.5 has. */
async function haveResults(expected: Readonly<Record<string, readonly [string, unknown]>>): Promise<void> {
  const found = await Promise.all(
    Object.keys(expected).map(async (expression) => [expression, await result(expression)] as const),
  )
  assert.deepEqual(Object.fromEntries(found), expected)
}

const NOON = "toDateTime('2026-12-31 20:00:00')"

describe('a time zone as the last argument', () => {
  test('decides the parts of a time', () =>
    haveResults({
      "toHour(toDateTime('2026-11-11 03:00:00'), 'Asia/Tokyo')": ['UInt8', 12],
      "toMinute(toDateTime('2026-11-11 03:00:00'), 'Asia/Kolkata')": ['UInt8', 30],
      [`toYear(${NOON}, 'Asia/Tokyo')`]: ['UInt16', 2027],
      [`toQuarter(${NOON}, 'Asia/Tokyo')`]: ['UInt8', 1],
      [`toMonth(${NOON}, 'Asia/Tokyo')`]: ['UInt8', 1],
      [`toDayOfYear(${NOON}, 'Asia/Tokyo')`]: ['UInt16', 1],
      [`toDayOfMonth(${NOON}, 'Asia/Tokyo')`]: ['UInt8', 1],
      [`toDayOfWeek(${NOON}, 0, 'Asia/Tokyo')`]: ['UInt8', 5],
      "toISOWeek(toDateTime('2026-11-15 23:00:00'), 'Asia/Tokyo')": ['UInt8', 47],
      "toYYYYMM(toDateTime('2026-11-30 22:00:00'), 'Asia/Tokyo')": ['UInt32', 202612],
      "toYYYYMMDD(toDateTime('2026-11-11 22:00:00'), 'Asia/Tokyo')": ['UInt32', 20261112],
      "toYYYYMMDDhhmmss(toDateTime('2026-11-11 22:00:00'), 'Asia/Tokyo')": ['UInt64', '20261112070000'],
      "toRelativeDayNum(toDateTime('2026-11-11 22:00:00'), 'Asia/Tokyo')": ['UInt32', 20769],
      "toRelativeHourNum(toDateTime('2026-11-11 22:00:00'), 'Asia/Kolkata')": ['UInt32', 498472],
      "toHour(toNullable(toDateTime('2026-11-11 22:00:00')), 'Asia/Tokyo')": ['Nullable(UInt8)', 7],
      "dateName('weekday', toDateTime('2026-11-11 22:00:00'), 'Asia/Tokyo')": ['String', 'Thursday'],
    }))

  test('decides the date, and the start of an interval with its type', () =>
    haveResults({
      "toDate(toDateTime('2016-06-15 23:00:00'), 'Asia/Yekaterinburg')": ['Date', '2016-06-16'],
      "toDate(1700000000, 'Asia/Tokyo')": ['Date', '2023-11-15'],
      "toDate(65535, 'Asia/Tokyo')": ['Date', '2149-06-06'],
      "toStartOfDay(toDateTime('2026-11-11 03:00:00'), 'America/New_York')": [
        "DateTime('America/New_York')",
        '2026-11-10 00:00:00',
      ],
      "toStartOfDay(toDate('2026-11-11'), 'America/New_York')": ["DateTime('America/New_York')", '2026-11-11 00:00:00'],
      "toStartOfHour(toDateTime('2026-11-11 03:10:00'), 'Asia/Kolkata')": [
        "DateTime('Asia/Kolkata')",
        '2026-11-11 08:00:00',
      ],
      "toStartOfMonth(toDateTime('2026-11-01 03:00:00'), 'America/New_York')": ['Date', '2026-10-01'],
      "toMonday(toDateTime('2026-11-09 03:00:00'), 'America/New_York')": ['Date', '2026-11-02'],
      "toStartOfWeek(toDateTime('2026-11-08 03:00:00'), 0, 'America/New_York')": ['Date', '2026-11-01'],
      "toStartOfInterval(toDateTime('2026-11-01 03:00:00'), INTERVAL 6 HOUR, 'America/New_York')": [
        "DateTime('America/New_York')",
        '2026-10-31 18:00:00',
      ],
      "toStartOfInterval(toDateTime('2026-11-01 03:00:00'), INTERVAL 1 MONTH, 'America/New_York')": [
        'Date',
        '2026-10-01',
      ],
      "date_trunc('day', toDateTime('2026-11-11 03:00:00'), 'America/New_York')": [
        "DateTime('America/New_York')",
        '2026-11-10 00:00:00',
      ],
      "toTime(toDateTime('2026-11-11 03:00:00'), 'Asia/Tokyo')": ["DateTime('Asia/Tokyo')", '1970-01-02 12:00:00'],
    }))

  test('decides what a text means, unless the text has a zone', () =>
    haveResults({
      "parseDateTimeBestEffort('2026-11-11 00:00:00', 'Asia/Tokyo')": ["DateTime('Asia/Tokyo')", '2026-11-11 00:00:00'],
      "parseDateTimeBestEffort('11 Nov 2026 01:02:03', 'Asia/Tokyo')": [
        "DateTime('Asia/Tokyo')",
        '2026-11-11 01:02:03',
      ],
      "parseDateTimeBestEffort('2026-11-11T00:00:00Z', 'Asia/Tokyo')": [
        "DateTime('Asia/Tokyo')",
        '2026-11-11 09:00:00',
      ],
      "parseDateTimeBestEffortOrNull('nonsense', 'Asia/Tokyo')": ["Nullable(DateTime('Asia/Tokyo'))", null],
      "parseDateTimeBestEffort('2026-11-11')": ['DateTime', '2026-11-11 00:00:00'],
      "toDateTimeOrNull('2026-11-11 00:00:00', 'Asia/Tokyo')": [
        "Nullable(DateTime('Asia/Tokyo'))",
        '2026-11-11 00:00:00',
      ],
      "YYYYMMDDhhmmssToDateTime(20261111101112, 'Asia/Tokyo')": ["DateTime('Asia/Tokyo')", '2026-11-11 10:11:12'],
      "toUnixTimestamp('2026-11-11 22:00:00', 'Asia/Tokyo')": ['UInt32', 1794402000],
      "fromUnixTimestamp(1700000000, '%Y-%m-%d %H:%i:%S', 'Asia/Tokyo')": ['String', '2023-11-15 07:13:20'],
      "formatDateTime(toDate('2026-11-11'), '%d %H', 'America/New_York')": ['String', '11 00'],
      "toTypeName(now64(6, 'Asia/Tokyo'))": ['String', "DateTime64(6, 'Asia/Tokyo')"],
    }))

  test('decides the calendar units of a difference, and the minute at which an hour begins', () =>
    haveResults({
      "dateDiff('day', toDateTime('2026-11-11 14:00:00'), toDateTime('2026-11-11 16:00:00'), 'Asia/Tokyo')": [
        'Int64',
        '1',
      ],
      "dateDiff('month', toDateTime('2026-11-30 14:00:00'), toDateTime('2026-11-30 16:00:00'), 'Asia/Tokyo')": [
        'Int64',
        '1',
      ],
      "dateDiff('hour', toDateTime('2026-11-11 14:10:00'), toDateTime('2026-11-11 14:40:00'), 'Asia/Kolkata')": [
        'Int64',
        '1',
      ],
      "dateDiff('hour', toDateTime('2026-03-08 04:00:00'), toDateTime('2026-03-08 16:00:00'), 'America/New_York')": [
        'Int64',
        '12',
      ],
      "dateDiff('hour', toDate('2026-12-31'), toDateTime('2026-12-31 16:00:00'), 'Asia/Tokyo')": ['Int64', '25'],
      "age('day', toDateTime('2026-03-08 04:00:00'), toDateTime('2026-03-09 03:30:00'), 'America/New_York')": [
        'Int64',
        '1',
      ],
    }))

  test('must be the name of one that exists', async () => {
    const time = "toDateTime('2026-11-11 03:00:00')"
    for (const zone of ["'Nowhere/City'", "''", '5'])
      for (const call of [
        `toHour(${time}, ${zone})`,
        `toStartOfDay(${time}, ${zone})`,
        `toStartOfMonth(${time}, ${zone})`,
        `toDate(${time}, ${zone})`,
        `toDate(5, ${zone})`,
        `toDate(toDate('2026-11-11'), ${zone})`,
        `toDate('2026-11-11', ${zone})`,
        `toYYYYMM(${time}, ${zone})`,
        `toUnixTimestamp(${time}, ${zone})`,
        `now64(3, ${zone})`,
        `toWeek(${time}, 0, ${zone})`,
        `toStartOfWeek(${time}, 0, ${zone})`,
        `toStartOfInterval(${time}, INTERVAL 1 DAY, ${zone})`,
        `date_trunc('day', ${time}, ${zone})`,
        `dateDiff('day', ${time}, ${time}, ${zone})`,
        `age('day', ${time}, ${time}, ${zone})`,
        `toDaysSinceYearZero(${time}, ${zone})`,
        `parseDateTimeBestEffort('2026-11-11', ${zone})`,
      ])
        await assert.rejects(result(call), { type: 'BAD_ARGUMENTS' }, call)
  })
})

describe('a time whose type has a zone', () => {
  test('has the seconds of its moment', () =>
    haveResults({
      "toUnixTimestamp(toDateTime('2026-11-11 22:00:00', 'Asia/Tokyo'))": ['UInt32', 1794402000],
      "toRelativeMinuteNum(toDateTime('2026-11-11 22:00:00', 'Asia/Tokyo'))": ['UInt32', 29906700],
    }))

  test('is moved by hours across a change of the offset', () =>
    haveResults({
      "addHours(toDateTime('2026-03-07 23:00:00', 'America/New_York'), 12)": [
        "DateTime('America/New_York')",
        '2026-03-08 12:00:00',
      ],
      "addDays(toDateTime('2026-03-07 23:00:00', 'America/New_York'), 1)": [
        "DateTime('America/New_York')",
        '2026-03-08 23:00:00',
      ],
      "toUnixTimestamp(toStartOfHour(toDateTime('2026-11-01 06:30:00'), 'America/New_York'))": ['UInt32', 1793512800],
    }))
})

test('intervals of hours begin at midnight', () =>
  haveResults({
    "toStartOfInterval(toDateTime('2026-11-02 06:30:00'), INTERVAL 5 HOUR)": ['DateTime', '2026-11-02 05:00:00'],
    "toStartOfInterval(toDateTime('2026-11-02 23:30:00'), INTERVAL 30 HOUR)": ['DateTime', '2026-11-02 00:00:00'],
  }))

describe('weeks', () => {
  test('are counted by every mode', () => {
    const day = "toDate('2016-01-01')"
    const modes = [0, 0, 52, 53, 0, 0, 52, 52, 1, 1]
    return haveResults({
      ...Object.fromEntries(modes.map((week, mode) => [`toWeek(${day}, ${mode})`, ['UInt8', week]] as const)),
      "toWeek(toDate('2026-11-11'), 1)": ['UInt8', 46],
      "toYearWeek(toDate('2016-01-01'), 1)": ['UInt32', 201553],
      "toYearWeek(toDate('2015-12-27'), 8)": ['UInt32', 201601],
    })
  })

  test('begin with Monday in odd modes', () =>
    haveResults({
      "toStartOfWeek(toDate('2026-11-11'))": ['Date', '2026-11-08'],
      "toStartOfWeek(toDate('2026-11-11'), 3)": ['Date', '2026-11-09'],
      "toStartOfWeek(toDate('2026-11-11'), 9)": ['Date', '2026-11-09'],
      "toLastDayOfWeek(toDate('2026-11-11'), 4)": ['Date', '2026-11-14'],
      "toDayOfWeek(toDate('2026-11-15'), 2)": ['UInt8', 0],
      "toDayOfWeek(toDate('2026-11-15'), 3)": ['UInt8', 1],
    }))

  test('between two times are counted by their Mondays', () =>
    haveResults({
      "dateDiff('week', toDate('2026-11-15'), toDate('2026-11-16'))": ['Int64', '1'],
      "dateDiff('week', toDate('2026-11-16'), toDate('2026-11-15'))": ['Int64', '-1'],
      "dateDiff('week', toDate('2026-11-09'), toDate('2026-11-15'))": ['Int64', '0'],
    }))

  test('have no other modes', async () => {
    for (const call of ['toWeek', 'toYearWeek', 'toStartOfWeek', 'toLastDayOfWeek', 'toDayOfWeek'])
      for (const mode of ['10', '-1', '1.5', "'Asia/Tokyo'"])
        await assert.rejects(result(`${call}(toDate('2026-11-11'), ${mode})`), { type: 'BAD_ARGUMENTS' }, call)
  })
})

test('the origin of toStartOfInterval is refused', async () => {
  const call = "toStartOfInterval(toDate('2026-11-11'), INTERVAL 2 DAY, toDate('2026-11-10'))"
  await assert.rejects(result(call), { type: 'BAD_ARGUMENTS', message: /an origin is not offered/ })
})
