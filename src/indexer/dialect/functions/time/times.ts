import {
  DATE,
  DATETIME,
  duckType,
  INT64,
  isTime,
  STRING,
  type Type,
  UINT8,
  UINT16,
  UINT32,
  UINT64,
  zoneOf,
} from '../../types.ts'
import {
  constantNumber,
  constantText,
  localSql,
  numberSql,
  plainSql,
  quoteText,
  textMoment,
  utcSql,
  type Value,
  value,
} from '../../value.ts'
import { type CallArguments, define, defineAll, type FunctionDefinition, stringValue } from '../definition.ts'
import { INTERVAL_UNITS, shift, startOfInterval } from '../time-arithmetic.ts'
import { inZone, local, momentSql, timeIn, timeOf, utc, withDigits, zoneFrom } from './arguments.ts'
import { formatted } from './pattern.ts'

/** A text that is moved by an interval becomes a time of this type. */
const SHIFTED_TEXT: Type = { kind: 'datetime64', scale: 3 }

/** A part of a time as a number. */
const part = (name: string, field: string, type: Type): FunctionDefinition =>
  define(name, [1, 2], (input) =>
    value(`CAST(date_part('${field}', ${local(timeIn(input, 1))}) AS ${duckType(type)})`, type),
  )

const startOf = (name: string, unit: string, count = 1): FunctionDefinition =>
  define(name, [1, 2], (input) => startOfInterval(timeIn(input, 1), unit, count))

/** The start of a month and longer is a date. */
const dateOf = (name: string, sql: (time: string) => string): FunctionDefinition =>
  define(name, [1, 2], (input) => value(`CAST(${sql(local(timeIn(input, 1)))} AS DATE)`, DATE))

/** Units by their short names, as dateDiff and others take them. */
const SHORT_UNITS: Readonly<Record<string, string>> = {
  ...{ us: 'Microsecond', u: 'Microsecond', ms: 'Millisecond', ss: 'Second', s: 'Second' },
  ...{ mi: 'Minute', n: 'Minute', hh: 'Hour', h: 'Hour', dd: 'Day', d: 'Day', wk: 'Week', ww: 'Week' },
  ...{ mm: 'Month', m: 'Month', qq: 'Quarter', q: 'Quarter', yyyy: 'Year', yy: 'Year' },
}

function unitOf(given: Value, input: CallArguments): string {
  const name = constantText(given)?.toLowerCase() ?? ''
  const unit =
    INTERVAL_UNITS.find((each) => [each, `${each}s`].includes(`${name.slice(0, 1).toUpperCase()}${name.slice(1)}`)) ??
    (Object.hasOwn(SHORT_UNITS, name) ? SHORT_UNITS[name] : undefined)
  if (unit === undefined)
    throw input.fail(
      `takes a unit as its first argument: ${INTERVAL_UNITS.map((each) => each.toLowerCase()).join(', ')}`,
    )
  return unit
}

function interval(input: CallArguments, at: number): { unit: string; count: number } {
  const given = input.arg(at)
  const count = constantNumber(given)
  if (given.type.kind !== 'interval' || count === undefined || count < 1 || !Number.isInteger(count))
    throw input.fail('takes a constant interval such as INTERVAL 5 MINUTE')
  return { unit: given.type.unit, count }
}

/** Units that begin at a time of the calendar; shorter ones do not depend on the zone. */
const CALENDAR_UNITS: ReadonlySet<string> = new Set(['Day', 'Week', 'Month', 'Quarter', 'Year'])

/** Number of boundaries of the unit between two times. */
function dateDiff(input: CallArguments): Value {
  const unit = unitOf(input.arg(0), input)
  const [from, to] = [timeIn(input, 3, 1), timeIn(input, 3, 2)]
  if (unit === 'Hour') return value(`CAST(${hourNumber(to)} - ${hourNumber(from)} AS BIGINT)`, INT64)
  if (unit === 'Week') {
    // The engine divides the days by seven, ClickHouse counts Mondays.
    const [first = '', last = ''] = [from, to].map((time) => `date_trunc('week', ${local(time)})`)
    return value(`date_diff('day', ${first}, ${last}) // 7`, INT64)
  }
  const sql = CALENDAR_UNITS.has(unit) ? local : utc
  return value(`date_diff('${unit.toLowerCase()}', ${sql(from)}, ${sql(to)})`, INT64)
}

const MONTHS: Readonly<Record<string, number>> = { Month: 1, Quarter: 3, Year: 12 }

/** Complete months: the last day of a month is none for the engine only. */
function monthsBetween(input: CallArguments, from: string, to: string): string {
  input.countCopies(from, 6)
  input.countCopies(to, 6)
  const inMonth = (time: string): string => `epoch(${time}) - epoch(date_trunc('month', ${time}))`
  const isShort = `${to} >= ${from} AND ${inMonth(to)} < ${inMonth(from)}`
  const isLong = `${to} < ${from} AND ${inMonth(to)} > ${inMonth(from)}`
  return `(date_diff('month', ${from}, ${to}) - CASE WHEN ${isShort} THEN 1 WHEN ${isLong} THEN -1 ELSE 0 END)`
}

/** Complete units between two times. */
function age(input: CallArguments): Value {
  const unit = unitOf(input.arg(0), input)
  const [from, to] = [timeIn(input, 3, 1), timeIn(input, 3, 2)]
  const months = MONTHS[unit]
  if (months !== undefined) return value(`(${monthsBetween(input, local(from), local(to))} // ${months})`, INT64)
  const sql = CALENDAR_UNITS.has(unit) ? local : utc
  return value(`date_sub('${unit.toLowerCase()}', ${sql(from)}, ${sql(to)})`, INT64)
}

/** The offset of the zone in 1970 in seconds: ClickHouse takes the minutes of hours from it. */
const firstOffset = ({ type }: Value): string => `epoch(${localSql({ sql: "TIMESTAMP '1970-01-01 00:00:00'", type })})`

/** Number of full hours since a fixed time at which an hour of the zone began. */
function hourNumber(time: Value, shift = `(86400 - ${firstOffset(time)}) % 3600`): string {
  const zone = zoneOf(time.type)
  const seconds = `epoch(${utc(time)})`
  return `floor((${zone === undefined || zone === 'UTC' ? seconds : `${seconds} + ${shift}`}) / 3600)`
}

/** Hours since 1970 UTC. ClickHouse counts from another time where the zone is not whole hours from UTC. */
function relativeHour(input: CallArguments): Value {
  const time = timeIn(input, 1)
  const offset = firstOffset(time)
  const shift = `CASE WHEN ${offset} % 3600 = 0 THEN 0 ELSE 86400 - ${offset} END`
  return value(`CAST(${hourNumber(time, shift)} AS UINTEGER)`, UINT32)
}

/** To DateTime: of a text, of seconds since 1970, of a date or another time. */
function toDateTime(input: CallArguments): Value {
  const given = input.arg(0)
  const zone = zoneFrom(input.args[1], input) ?? ('zone' in given.type ? given.type.zone : undefined)
  const type: Type = { kind: 'datetime', zone }
  switch (given.type.kind) {
    case 'string':
    case 'unknown':
      return value(`date_trunc('second', ${textMoment(given, zone)})`, type)
    case 'int':
    case 'float':
    case 'decimal':
    case 'bool':
      return value(`make_timestamp(CAST(trunc(${numberSql(given)}) AS BIGINT) * 1000000)`, type)
    case 'datetime64':
      return value(`date_trunc('second', ${given.sql})`, type)
    case 'date':
      return value(utcSql(`CAST(${given.sql} AS TIMESTAMP)`, zone), type)
    default:
      return value(given.sql, type)
  }
}

function toDateTime64(input: CallArguments): Value {
  const given = input.arg(0)
  const scale = constantNumber(input.arg(1))
  if (scale === undefined || scale < 0 || scale > 9) throw input.fail('takes the number of digits of a second, 0 to 9')
  const zone = zoneFrom(input.args[2], input) ?? ('zone' in given.type ? given.type.zone : undefined)
  const type: Type = { kind: 'datetime64', scale, zone }
  return value(withDigits(momentSql(given, zone), scale, given.type), type)
}

function toDate(input: CallArguments): Value {
  const given = input.arg(0)
  const zone = zoneFrom(input.args[1], input)
  if (given.type.kind === 'date') return given
  if (given.type.kind === 'string' || given.type.kind === 'unknown')
    return value(`CAST(${plainSql(given)} AS DATE)`, DATE)
  if (isTime(given.type)) return value(`CAST(${local(timeIn(input, 1))} AS DATE)`, DATE)
  // Small numbers are days since 1970, large ones seconds.
  const number = `CAST(${numberSql(given)} AS BIGINT)`
  const time = (seconds: string): string => `make_timestamp(${seconds} * 1000000)`
  const moment = localSql({ sql: time(number), type: { kind: 'datetime', zone } })
  return value(`CAST(CASE WHEN ${number} <= 65535 THEN ${time(`${number} * 86400`)} ELSE ${moment} END AS DATE)`, DATE)
}

function truncate(input: CallArguments): Value {
  const unit = unitOf(input.arg(0), input)
  return startOfInterval(timeIn(input, 2, 1), unit, 1)
}

/** `dateAdd(unit, count, time)`, or `dateAdd(time, INTERVAL …)`. */
function dateAdd(sign: 1 | -1) {
  return (input: CallArguments): Value => {
    if (input.args.length === 3)
      return shift(
        timeOf(input.arg(2), input, SHIFTED_TEXT),
        unitOf(input.arg(0), input),
        `(${sign} * ${numberSql(input.arg(1))})`,
      )
    const step = input.arg(1)
    if (step.type.kind !== 'interval') throw input.fail('takes a unit, a number and a time')
    return shift(timeOf(input.arg(0), input, SHIFTED_TEXT), step.type.unit, `(${sign} * ${step.sql})`)
  }
}

const NOW = "timezone('UTC', get_current_timestamp())"
const number = (name: string, type: Type, sql: (time: string) => string): FunctionDefinition =>
  define(name, [1, 2], (input) => value(`CAST(${sql(local(timeIn(input, 1)))} AS ${duckType(type)})`, type))

/** A number of seconds or minutes: the same in every zone. */
const moment = (name: string, sql: (time: string) => string): FunctionDefinition =>
  define(name, [1, 2], (input) => value(`CAST(${sql(utc(timeIn(input, 1)))} AS UINTEGER)`, UINT32))

/** A text is a time in the zone; a date begins at midnight of UTC whatever the zone. */
function toUnixTimestamp(input: CallArguments): Value {
  const zone = zoneFrom(input.args[1], input)
  const given = input.arg(0)
  const time = given.type.kind === 'string' ? textMoment(given, zone) : utc(timeOf(given, input))
  return value(`CAST(trunc(epoch(${time})) AS UINTEGER)`, UINT32)
}

function now64(input: CallArguments): Value {
  const scale = input.args.length > 0 ? constantNumber(input.arg(0)) : 3
  if (scale === undefined || scale < 0 || scale > 9) throw input.fail('takes the number of digits of a second, 0 to 9')
  return value(NOW, { kind: 'datetime64', scale, zone: zoneFrom(input.args[1], input) })
}

/** `toStartOfInterval(time, INTERVAL …, zone)`. */
function toStartOfInterval(input: CallArguments): Value {
  const { unit, count } = interval(input, 1)
  if (input.args.length > 3 || (input.args.length === 3 && input.arg(2).type.kind !== 'string'))
    throw input.fail('takes a time, an interval and a time zone; an origin is not offered')
  return startOfInterval(timeIn(input, 2), unit, count)
}

/** The time of day, on a fixed day. */
function toTime(input: CallArguments): Value {
  const time = timeIn(input, 1)
  const zone = zoneOf(time.type)
  const sql = `(TIMESTAMP '1970-01-02 00:00:00' + (${local(time)} - date_trunc('day', ${local(time)})))`
  return value(utcSql(sql, zone), { kind: 'datetime', zone })
}

export const TIME_FUNCTIONS: readonly FunctionDefinition[] = [
  ...defineAll('now current_timestamp', [0, 1], (input) =>
    value(`date_trunc('second', ${NOW})`, { kind: 'datetime', zone: zoneFrom(input.args[0], input) }),
  ),
  define('now64', [0, 2], now64),
  ...defineAll('today current_date', 0, () => value(`CAST(${NOW} AS DATE)`, DATE)),
  define('yesterday', 0, () => value(`(CAST(${NOW} AS DATE) - 1)`, DATE)),
  ...['toYear', 'year'].map((name) => part(name, 'year', UINT16)),
  ...['toQuarter', 'quarter'].map((name) => part(name, 'quarter', UINT8)),
  ...['toMonth', 'month'].map((name) => part(name, 'month', UINT8)),
  ...['toDayOfYear', 'dayOfYear'].map((name) => part(name, 'doy', UINT16)),
  ...['toDayOfMonth', 'dayOfMonth', 'day'].map((name) => part(name, 'day', UINT8)),
  ...['toHour', 'hour'].map((name) => part(name, 'hour', UINT8)),
  ...['toMinute', 'minute'].map((name) => part(name, 'minute', UINT8)),
  ...['toSecond', 'second'].map((name) => part(name, 'second', UINT8)),
  part('toISOWeek', 'week', UINT8),
  part('toISOYear', 'isoyear', UINT16),
  define('toStartOfSecond', [1, 2], (input) => {
    const time = timeIn(input, 1)
    const made = startOfInterval(time, 'Second', 1)
    return time.type.kind === 'datetime64' ? { ...made, type: time.type } : made
  }),
  startOf('toStartOfMinute', 'Minute'),
  startOf('toStartOfFiveMinutes', 'Minute', 5),
  startOf('toStartOfFiveMinute', 'Minute', 5),
  startOf('toStartOfTenMinutes', 'Minute', 10),
  startOf('toStartOfFifteenMinutes', 'Minute', 15),
  startOf('timeSlot', 'Minute', 30),
  startOf('toStartOfHour', 'Hour'),
  startOf('toStartOfDay', 'Day'),
  dateOf('toStartOfMonth', (time) => `date_trunc('month', ${time})`),
  dateOf('toStartOfQuarter', (time) => `date_trunc('quarter', ${time})`),
  dateOf('toStartOfYear', (time) => `date_trunc('year', ${time})`),
  dateOf('toMonday', (time) => `date_trunc('week', ${time})`),
  dateOf('toStartOfISOYear', (time) => `date_trunc('week', make_date(date_part('isoyear', ${time}), 1, 4))`),
  dateOf('toLastDayOfMonth', (time) => `last_day(${time})`),
  define('toStartOfInterval', [2, 4], toStartOfInterval),
  ...defineAll('date_trunc dateTrunc', [2, 3], truncate),
  number('toYYYYMM', UINT32, (time) => `strftime(${time}, '%Y%m')`),
  number('toYYYYMMDD', UINT32, (time) => `strftime(${time}, '%Y%m%d')`),
  number('toYYYYMMDDhhmmss', UINT64, (time) => `strftime(${time}, '%Y%m%d%H%M%S')`),
  define('toUnixTimestamp', [1, 2], toUnixTimestamp),
  number('toRelativeDayNum', UINT32, (time) => `date_diff('day', DATE '1970-01-01', CAST(${time} AS DATE))`),
  define('toRelativeHourNum', [1, 2], relativeHour),
  moment('toRelativeMinuteNum', (time) => `floor(epoch(${time}) / 60)`),
  moment('toRelativeSecondNum', (time) => `floor(epoch(${time}))`),
  number('toRelativeMonthNum', UINT32, (time) => `date_part('year', ${time}) * 12 + date_part('month', ${time})`),
  number('toRelativeYearNum', UINT16, (time) => `date_part('year', ${time})`),
  define('toUnixTimestamp64Milli', 1, (input) =>
    value(`epoch_ms(CAST(${timeOf(input.arg(0), input).sql} AS TIMESTAMP))`, INT64),
  ),
  define('toUnixTimestamp64Micro', 1, (input) =>
    value(`epoch_us(CAST(${timeOf(input.arg(0), input).sql} AS TIMESTAMP))`, INT64),
  ),
  define('fromUnixTimestamp', [1, 3], (input) => {
    const time = value(`make_timestamp(CAST(${numberSql(input.arg(0))} AS BIGINT) * 1000000)`, DATETIME)
    if (input.args.length === 1) return time
    const pattern = constantText(input.arg(1))
    if (pattern === undefined) throw input.fail('takes a constant pattern')
    const zone = zoneFrom(input.args[2], input)
    const shown = zone === undefined ? time : inZone(time, zone)
    return stringValue(formatted(shown, pattern, input))
  }),
  define('fromUnixTimestamp64Milli', [1, 2], (input) =>
    value(`make_timestamp(CAST(${numberSql(input.arg(0))} AS BIGINT) * 1000)`, {
      kind: 'datetime64',
      scale: 3,
      zone: zoneFrom(input.args[1], input),
    }),
  ),
  define('fromUnixTimestamp64Micro', [1, 2], (input) =>
    value(`make_timestamp(CAST(${numberSql(input.arg(0))} AS BIGINT))`, {
      kind: 'datetime64',
      scale: 6,
      zone: zoneFrom(input.args[1], input),
    }),
  ),
  ...defineAll('toDate toDate32 date', [1, 2], toDate),
  define('toDateTime', [1, 2], toDateTime),
  define('toDateTime64', [2, 3], toDateTime64),
  define('toTimeZone', 2, (input) => timeIn(input, 1)),
  define('timeZoneOf', 1, (input) =>
    stringValue(
      quoteText(('zone' in input.arg(0).type ? (input.arg(0).type as { zone?: string }).zone : undefined) ?? 'UTC'),
    ),
  ),
  ...defineAll('dateDiff date_diff timestampDiff timestamp_diff', [3, 4], dateDiff),
  define('age', [3, 4], age),
  ...defineAll('dateAdd date_add timestampAdd timestamp_add', [2, 3], dateAdd(1)),
  ...defineAll('dateSub date_sub timestampSub timestamp_sub', [2, 3], dateAdd(-1)),
  define('toTime', [1, 2], toTime),
  ...INTERVAL_UNITS.flatMap((unit) => [
    define(
      `toInterval${unit}`,
      1,
      (input) => ({
        ...value(numberSql(input.arg(0)), { kind: 'interval', unit } as Type),
        constant: input.arg(0).constant,
        isConstant: input.arg(0).isConstant ?? false,
      }),
      { lowCardinality: false },
    ),
    define(`add${unit}s`, 2, (input) =>
      shift(timeOf(input.arg(0), input, SHIFTED_TEXT), unit, `(${numberSql(input.arg(1))})`),
    ),
    define(`subtract${unit}s`, 2, (input) =>
      shift(timeOf(input.arg(0), input, SHIFTED_TEXT), unit, `(-1 * ${numberSql(input.arg(1))})`),
    ),
  ]),
  ...defineAll('timezone timeZone', 0, () => value("'UTC'", STRING)),
]
