import { DATE, duckType, INT64, int, isTime, type Type, UINT16, UINT32 } from '../types.ts'
import { constantNumber, constantText, numberSql, plainSql, utcSql, type Value, value } from '../value.ts'
import { define, defineAll, type FunctionDefinition, type Input, text } from './definition.ts'
import { local, timeOf, zoneFrom } from './times.ts'

/** Weeks with their years, offsets of zones, and times as numbers of other units. */

const day = (sql: string): Value => value(`CAST(${sql} AS DATE)`, DATE)

/** The first day of the week: Sunday, or with mode 1 Monday. */
function isMondayFirst(input: Input): boolean {
  const mode = input.args.length > 1 ? constantNumber(input.arg(1)) : 0
  if (mode !== 0 && mode !== 1) throw input.fail('takes mode 0 or 1')
  return mode === 1
}

/** Year and week together: the first days of January may belong to the last week of the year before. */
function yearWeek(input: Input): Value {
  const time = local(timeOf(input.arg(0), input))
  const mode = input.args.length > 1 ? constantNumber(input.arg(1)) : 0
  if (mode === 3)
    return value(`CAST(date_part('isoyear', ${time}) * 100 + date_part('week', ${time}) AS UINTEGER)`, UINT32)
  if (mode !== 0) throw input.fail('takes mode 0 or 3')
  const sunday = `(date_trunc('week', ${time} + to_days(1)) - to_days(1))`
  const week = `CAST(strftime(${sunday}, '%U') AS UINTEGER)`
  return value(`CAST(date_part('year', ${sunday}) * 100 + ${week} AS UINTEGER)`, UINT32)
}

/** A number of units since 1970 as a time, and back. */
const UNITS: readonly (readonly [
  name: string,
  scale: number,
  toMicros: (x: string) => string,
  from: (t: string) => string,
])[] = [
  ['Second', 0, (x) => `${x} * 1000000`, (time) => `CAST(floor(epoch(${time})) AS BIGINT)`],
  ['Nano', 9, (x) => `${x} // 1000`, (time) => `epoch_us(${time}) * 1000`],
]

const epochs = UNITS.flatMap(([name, scale, toMicros, from]) => [
  define(`toUnixTimestamp64${name}`, 1, (input) =>
    value(from(`CAST(${timeOf(input.arg(0), input).sql} AS TIMESTAMP)`), INT64),
  ),
  define(`fromUnixTimestamp64${name}`, [1, 2], (input) =>
    value(`make_timestamp(${toMicros(`CAST(${numberSql(input.arg(0))} AS BIGINT)`)})`, {
      kind: 'datetime64',
      scale,
      zone: zoneFrom(input.args[1], input),
    }),
  ),
])

/** A whole number of digits YYYYMMDD or YYYYMMDDhhmmss as a date or time. */
const fromDigits = (name: string, pattern: string, width: number, type: Type): FunctionDefinition =>
  define(name, [1, 2], (input) => {
    const zone = zoneFrom(input.args[1], input)
    const digits = `lpad(CAST(CAST(${numberSql(input.arg(0))} AS BIGINT) AS VARCHAR), ${width}, '0')`
    return value(
      `CAST(strptime(${digits}, '${pattern}') AS ${duckType(type)})`,
      zone === undefined ? type : ({ ...type, zone } as Type),
    )
  })

export const CALENDAR_FUNCTIONS: readonly FunctionDefinition[] = [
  ...defineAll('toYearWeek yearweek', [1, 2], yearWeek),
  define('toLastDayOfWeek', [1, 2], (input) => {
    const time = local(timeOf(input.arg(0), input))
    return day(
      isMondayFirst(input)
        ? `date_trunc('week', ${time}) + to_days(6)`
        : `date_trunc('week', ${time} + to_days(1)) + to_days(5)`,
    )
  }),
  define('toMillisecond', 1, (input) =>
    value(`CAST(date_part('millisecond', ${local(timeOf(input.arg(0), input))}) % 1000 AS USMALLINT)`, UINT16),
  ),
  define('timeZoneOffset', 1, (input) => {
    const time = timeOf(input.arg(0), input)
    return value(`CAST(epoch(${local(time)}) - epoch(CAST(${time.sql} AS TIMESTAMP)) AS INTEGER)`, int(32, true))
  }),
  define('toDaysSinceYearZero', [1, 2], (input) =>
    value(
      `CAST(date_diff('day', DATE '0000-01-01', CAST(${local(timeOf(input.arg(0), input))} AS DATE)) AS UINTEGER)`,
      UINT32,
    ),
  ),
  define('fromDaysSinceYearZero', 1, (input) => day(`DATE '0000-01-01' + CAST(${numberSql(input.arg(0))} AS INTEGER)`)),
  define('toDateOrDefault', [1, 2], (input) => {
    const given = input.arg(0)
    const fallback = input.args.length > 1 && isTime(input.arg(1).type) ? input.arg(1).sql : "DATE '1970-01-01'"
    return day(`coalesce(TRY_CAST(${plainSql(given)} AS DATE), ${fallback})`)
  }),
  fromDigits('YYYYMMDDToDate', '%Y%m%d', 8, DATE),
  fromDigits('YYYYMMDDhhmmssToDateTime', '%Y%m%d%H%M%S', 14, { kind: 'datetime' }),
  ...epochs,
  define('monthName', 1, (input) => text(`monthname(${local(timeOf(input.arg(0), input))})`)),
  define('dateName', [2, 3], (input) => {
    const field = constantText(input.arg(0))
    const time = local(timeOf(input.arg(1), input))
    if (field === 'weekday') return text(`dayname(${time})`)
    if (field === 'month') return text(`monthname(${time})`)
    if (field !== undefined && ['year', 'quarter', 'day', 'week', 'hour', 'minute', 'second'].includes(field))
      return text(`CAST(date_part('${field}', ${time}) AS VARCHAR)`)
    throw input.fail('takes year, quarter, month, week, weekday, day, hour, minute or second')
  }),
  ...defineAll('makeDate makeDate32', 3, (input) =>
    value(`make_date(${[0, 1, 2].map((at) => `CAST(${numberSql(input.arg(at))} AS BIGINT)`).join(', ')})`, DATE),
  ),
  define('makeDateTime', [6, 7], (input) =>
    value(
      utcSql(
        `make_timestamp(${[0, 1, 2, 3, 4].map((at) => `CAST(${numberSql(input.arg(at))} AS BIGINT)`).join(', ')}, CAST(${numberSql(input.arg(5))} AS DOUBLE))`,
        zoneFrom(input.args[6], input),
      ),
      { kind: 'datetime', zone: zoneFrom(input.args[6], input) },
    ),
  ),
]
