import { DATE, INT64, int, isTime, UINT16, UINT32 } from '../../types.ts'
import { constantText, numberSql, plainSql, utcSql, type Value, value } from '../../value.ts'
import { type CallArguments, define, type FunctionDefinition, stringValue } from '../definition.ts'
import { local, timeIn, timeOf, zoneFrom } from './arguments.ts'

/** Offsets of zones, times as numbers of other units, and dates by their parts. */

const day = (sql: string): Value => value(`CAST(${sql} AS DATE)`, DATE)

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

/** A whole number of digits YYYYMMDD or YYYYMMDDhhmmss as a time. */
function fromDigits(input: CallArguments, pattern: string, width: number): string {
  const digits = `lpad(CAST(CAST(${numberSql(input.arg(0))} AS BIGINT) AS VARCHAR), ${width}, '0')`
  return `strptime(${digits}, '${pattern}')`
}

/** As in ClickHouse: a day behind the end of its month is one of the next, and what is outside of the type makes the first day of 1970. */
function madeDate(
  input: CallArguments,
  { from, to, last }: { readonly from: number; readonly to: number; readonly last: string },
): Value {
  const [year = '', second = '', third] = input.args.map((given) => `CAST(trunc(${numberSql(given)}) AS BIGINT)`)
  const [first, days] =
    third === undefined ? [`make_date(${year}, 1, 1)`, second] : [`make_date(${year}, ${second}, 1)`, third]
  const isValid =
    third === undefined ? `${second} BETWEEN 1 AND 365` : `${second} BETWEEN 1 AND 12 AND ${third} BETWEEN 1 AND 31`
  const isNull = [year, second, third ?? second].map((each) => `${each} IS NULL`).join(' OR ')
  const made = `${first} + CAST(${days} - 1 AS INTEGER)`
  const epoch = "DATE '1970-01-01'"
  const checked = `CASE WHEN ${made} <= DATE '${last}' THEN ${made} ELSE ${epoch} END`
  return value(
    `(CASE WHEN ${isNull} THEN NULL WHEN ${year} BETWEEN ${from} AND ${to} AND ${isValid} THEN ${checked} ELSE ${epoch} END)`,
    DATE,
  )
}

export const CALENDAR_FUNCTIONS: readonly FunctionDefinition[] = [
  define('toMillisecond', [1, 2], (input) =>
    value(`CAST(date_part('millisecond', ${local(timeIn(input, 1))}) % 1000 AS USMALLINT)`, UINT16),
  ),
  define('timeZoneOffset', 1, (input) => {
    const time = timeOf(input.arg(0), input)
    return value(`CAST(epoch(${local(time)}) - epoch(CAST(${time.sql} AS TIMESTAMP)) AS INTEGER)`, int(32, true))
  }),
  define('toDaysSinceYearZero', [1, 2], (input) => {
    // ClickHouse takes a zone and counts the days of UTC.
    zoneFrom(input.args[1], input)
    const date = `CAST(${timeOf(input.arg(0), input).sql} AS DATE)`
    return value(`CAST(date_diff('day', DATE '0000-01-01', ${date}) AS UINTEGER)`, UINT32)
  }),
  define('fromDaysSinceYearZero', 1, (input) => day(`DATE '0000-01-01' + CAST(${numberSql(input.arg(0))} AS INTEGER)`)),
  define('toDateOrDefault', [1, 2], (input) => {
    const given = input.arg(0)
    const fallback = input.args.length > 1 && isTime(input.arg(1).type) ? input.arg(1).sql : "DATE '1970-01-01'"
    return day(`coalesce(TRY_CAST(${plainSql(given)} AS DATE), ${fallback})`)
  }),
  define('YYYYMMDDToDate', 1, (input) => day(fromDigits(input, '%Y%m%d', 8))),
  define('YYYYMMDDhhmmssToDateTime', [1, 2], (input) => {
    const zone = zoneFrom(input.args[1], input)
    return value(utcSql(fromDigits(input, '%Y%m%d%H%M%S', 14), zone), { kind: 'datetime', zone })
  }),
  ...epochs,
  define('monthName', 1, (input) => stringValue(`monthname(${local(timeOf(input.arg(0), input))})`)),
  define('dateName', [2, 3], (input) => {
    const field = constantText(input.arg(0))
    const time = local(timeIn(input, 2, 1))
    if (field === 'weekday') return stringValue(`dayname(${time})`)
    if (field === 'month') return stringValue(`monthname(${time})`)
    if (field !== undefined && ['year', 'quarter', 'day', 'week', 'hour', 'minute', 'second'].includes(field))
      return stringValue(`CAST(date_part('${field}', ${time}) AS VARCHAR)`)
    throw input.fail('takes year, quarter, month, week, weekday, day, hour, minute or second')
  }),
  define('makeDate', [2, 3], (input) => madeDate(input, { from: 1970, to: 2149, last: '2149-06-06' })),
  define('makeDate32', [2, 3], (input) => madeDate(input, { from: 1900, to: 2299, last: '2299-12-31' })),
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
