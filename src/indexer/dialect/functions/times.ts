import {
  DATE,
  DATETIME,
  duckType,
  INT64,
  isTime,
  STRING,
  type Type,
  typeName,
  UINT8,
  UINT16,
  UINT32,
  UINT64,
} from '../types.ts'
import {
  constantNumber,
  constantText,
  localSql,
  numberSql,
  plainSql,
  quoteText,
  utcSql,
  type Value,
  value,
} from '../value.ts'
import { dateTimePattern } from './date-time-pattern.ts'
import { define, defineAll, type FunctionDefinition, type Input, text } from './definition.ts'
import { INTERVAL_UNITS, shift, startOfInterval } from './time-arithmetic.ts'
import { isTimeZone } from './time-zone.ts'

/** A time as TIMESTAMP of the engine; a text has `textType` where the function takes one. */
export function timeOf(given: Value, input: Input, textType?: Type): Value {
  if (isTime(given.type)) return given
  if (given.type.kind === 'string' && textType !== undefined) return value(`CAST(${given.sql} AS TIMESTAMP)`, textType)
  if (given.type.kind === 'unknown') return value(`CAST(${given.sql} AS TIMESTAMP)`, DATETIME)
  throw input.wrongType(`takes a time, not ${typeName(given.type)}`)
}

/** A text that is moved by an interval becomes a time of this type. */
const SHIFTED_TEXT: Type = { kind: 'datetime64', scale: 3 }

export const local = (given: Value): string => localSql({ ...given, sql: `CAST(${given.sql} AS TIMESTAMP)` })

/** A part of a time as a number. */
const part = (name: string, field: string, type: Type): FunctionDefinition =>
  define(name, [1, 3], (input) =>
    value(`CAST(date_part('${field}', ${local(timeOf(input.arg(0), input))}) AS ${duckType(type)})`, type),
  )

const startOf = (name: string, unit: string, count = 1): FunctionDefinition =>
  define(name, [1, 2], (input) => startOfInterval(timeOf(input.arg(0), input), unit, count))

/** The start of a month and longer is a date. */
const dateOf = (name: string, sql: (time: string) => string): FunctionDefinition =>
  define(name, [1, 3], (input) => value(`CAST(${sql(local(timeOf(input.arg(0), input)))} AS DATE)`, DATE))

function unitOf(given: Value, input: Input): string {
  const name = constantText(given)?.toLowerCase().replace(/s$/, '')
  const short: Readonly<Record<string, string>> = {
    ss: 'Second',
    mi: 'Minute',
    n: 'Minute',
    hh: 'Hour',
    h: 'Hour',
    dd: 'Day',
    d: 'Day',
    wk: 'Week',
    ww: 'Week',
    mm: 'Month',
    m: 'Month',
    qq: 'Quarter',
    q: 'Quarter',
    yyyy: 'Year',
    yy: 'Year',
  }
  const unit =
    INTERVAL_UNITS.find((each) => each.toLowerCase() === name) ?? (name === undefined ? undefined : short[name])
  if (unit === undefined)
    throw input.fail(
      `takes a unit as its first argument: ${INTERVAL_UNITS.map((each) => each.toLowerCase()).join(', ')}`,
    )
  return unit
}

function interval(input: Input, at: number): { unit: string; count: number } {
  const given = input.arg(at)
  const count = constantNumber(given)
  if (given.type.kind !== 'interval' || count === undefined || count < 1 || !Number.isInteger(count))
    throw input.fail('takes a constant interval such as INTERVAL 5 MINUTE')
  return { unit: given.type.unit, count }
}

/** Number of boundaries of the unit between two times. */
function dateDiff(input: Input): Value {
  const unit = unitOf(input.arg(0), input)
  const [from, to] = [timeOf(input.arg(1), input), timeOf(input.arg(2), input)]
  return value(`date_diff('${unit.toLowerCase()}', ${local(from)}, ${local(to)})`, INT64)
}

/** Complete units between two times. */
function age(input: Input): Value {
  const unit = unitOf(input.arg(0), input)
  const [from, to] = [timeOf(input.arg(1), input), timeOf(input.arg(2), input)]
  return value(`date_sub('${unit.toLowerCase()}', ${local(from)}, ${local(to)})`, INT64)
}

export function zoneFrom(given: Value | undefined, input: Input): string | undefined {
  if (given === undefined) return undefined
  const zone = constantText(given)
  if (zone === undefined || !isTimeZone(zone))
    throw input.fail('takes the name of a time zone that exists, such as Europe/Berlin')
  return zone
}

/** A zone in which the text is not converted. */
function utcOnly(input: Input, at: number): string | undefined {
  const zone = zoneFrom(input.args[at], input)
  if (zone !== undefined && zone !== 'UTC') throw input.fail('takes the time zone UTC only')
  return zone
}

/** To DateTime: of a text, of seconds since 1970, of a date or another time. */
function toDateTime(input: Input): Value {
  const given = input.arg(0)
  const zone = zoneFrom(input.args[1], input) ?? ('zone' in given.type ? given.type.zone : undefined)
  const type: Type = { kind: 'datetime', zone }
  switch (given.type.kind) {
    case 'string':
    case 'unknown':
      return value(utcSql(`date_trunc('second', CAST(${plainSql(given)} AS TIMESTAMP))`, zone), type)
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

function toDateTime64(input: Input): Value {
  const given = input.arg(0)
  const scale = constantNumber(input.arg(1))
  if (scale === undefined || scale < 0 || scale > 9) throw input.fail('takes the number of digits of a second, 0 to 9')
  const zone = zoneFrom(input.args[2], input) ?? ('zone' in given.type ? given.type.zone : undefined)
  const type: Type = { kind: 'datetime64', scale, zone }
  if (isTime(given.type)) return value(`CAST(${given.sql} AS TIMESTAMP)`, type)
  if (given.type.kind === 'string' || given.type.kind === 'unknown')
    return value(utcSql(`CAST(${plainSql(given)} AS TIMESTAMP)`, zone), type)
  return value(`make_timestamp(CAST(${numberSql(given)} * 1000000 AS BIGINT))`, type)
}

function toDate(input: Input): Value {
  const given = input.arg(0)
  if (given.type.kind === 'date') return given
  if (given.type.kind === 'string' || given.type.kind === 'unknown')
    return value(`CAST(${plainSql(given)} AS DATE)`, DATE)
  if (isTime(given.type)) return value(`CAST(${local(given)} AS DATE)`, DATE)
  // Small numbers are days since 1970, large ones seconds.
  const number = `CAST(${numberSql(given)} AS BIGINT)`
  return value(
    `CAST(make_timestamp((CASE WHEN ${number} <= 65535 THEN ${number} * 86400 ELSE ${number} END) * 1000000) AS DATE)`,
    DATE,
  )
}

/** Texts of times in common forms; the zone is UTC unless the text has one. */
function bestEffort(input: Input, cast: 'CAST' | 'TRY_CAST'): string {
  const given = input.arg(0)
  const sql = given.type.kind === 'string' ? given.sql : plainSql(given)
  const isSeconds = `regexp_full_match(${sql}, '\\d{9,10}')`
  const compact = `regexp_replace(regexp_replace(${sql}, '^(\\d{4})(\\d{2})(\\d{2})(?:[T ]?(\\d{2})(\\d{2})(\\d{2}))$', '\\1-\\2-\\3 \\4:\\5:\\6'), '^(\\d{4})(\\d{2})(\\d{2})$', '\\1-\\2-\\3')`
  const named = `try_strptime(${sql}, ['%d %b %Y %H:%M:%S', '%d %b %Y %H:%M', '%d %b %Y', '%b %d %Y %H:%M:%S', '%b %d, %Y', '%b %d %Y'])`
  return `(CASE WHEN regexp_matches(${sql}, '[A-SU-Ya-su-y]{3}') AND ${named} IS NOT NULL THEN ${named} WHEN ${isSeconds} THEN make_timestamp(TRY_CAST(${sql} AS BIGINT) * 1000000) ELSE date_trunc('second', timezone('UTC', ${cast}(concat(${compact}, CASE WHEN regexp_matches(${sql}, '(Z|[+-]\\d{2}:?\\d{2})$') THEN '' ELSE '+00' END) AS TIMESTAMP WITH TIME ZONE))) END)`
}

function formatDateTime(input: Input): Value {
  const pattern = constantText(input.arg(1))
  if (pattern === undefined) throw input.fail('takes a constant pattern')
  const zone = zoneFrom(input.args[2], input)
  const time = timeOf(input.arg(0), input)
  const shown: Value = zone === undefined ? time : { ...time, type: { kind: 'datetime', zone } }
  return text(`strftime(${local(shown)}, ${quoteText(dateTimePattern(pattern, input))})`)
}

function truncate(input: Input): Value {
  const unit = unitOf(input.arg(0), input)
  return startOfInterval(timeOf(input.arg(1), input), unit, 1)
}

/** `dateAdd(unit, count, time)`, or `dateAdd(time, INTERVAL …)`. */
function dateAdd(sign: 1 | -1) {
  return (input: Input): Value => {
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
  define(name, [1, 2], (input) =>
    value(
      `CAST(${sql(local(timeOf(input.arg(0), input, name === 'toUnixTimestamp' ? DATETIME : undefined)))} AS ${duckType(type)})`,
      type,
    ),
  )

export const TIME_FUNCTIONS: readonly FunctionDefinition[] = [
  ...defineAll('now current_timestamp', [0, 1], (input) =>
    value(`date_trunc('second', ${NOW})`, { kind: 'datetime', zone: zoneFrom(input.args[0], input) }),
  ),
  define('now64', [0, 2], (input) => value(NOW, { kind: 'datetime64', scale: constantNumber(input.args[0]) ?? 3 })),
  ...defineAll('today current_date', 0, () => value(`CAST(${NOW} AS DATE)`, DATE)),
  define('yesterday', 0, () => value(`(CAST(${NOW} AS DATE) - 1)`, DATE)),
  ...defineAll('toYear year', 1, (input) =>
    value(`CAST(date_part('year', ${local(timeOf(input.arg(0), input))}) AS USMALLINT)`, UINT16),
  ),
  ...['toQuarter', 'quarter'].map((name) => part(name, 'quarter', UINT8)),
  ...['toMonth', 'month'].map((name) => part(name, 'month', UINT8)),
  ...['toDayOfYear', 'dayOfYear'].map((name) => part(name, 'doy', UINT16)),
  ...['toDayOfMonth', 'dayOfMonth', 'day'].map((name) => part(name, 'day', UINT8)),
  ...['toDayOfWeek', 'dayOfWeek'].map((name) => part(name, 'isodow', UINT8)),
  ...['toHour', 'hour'].map((name) => part(name, 'hour', UINT8)),
  ...['toMinute', 'minute'].map((name) => part(name, 'minute', UINT8)),
  ...['toSecond', 'second'].map((name) => part(name, 'second', UINT8)),
  part('toISOWeek', 'week', UINT8),
  part('toISOYear', 'isoyear', UINT16),
  ...['toWeek', 'week'].map((name) =>
    define(name, [1, 2], (input) => {
      const mode = input.args.length > 1 ? constantNumber(input.arg(1)) : 0
      if (mode !== 0 && mode !== 1 && mode !== 3) throw input.fail('takes mode 0, 1 or 3')
      const time = local(timeOf(input.arg(0), input))
      return value(
        `CAST(${mode === 3 ? `date_part('week', ${time})` : `strftime(${time}, '${mode === 0 ? '%U' : '%W'}')`} AS UTINYINT)`,
        UINT8,
      )
    }),
  ),
  define('toStartOfSecond', [1, 2], (input) => {
    const time = timeOf(input.arg(0), input)
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
  define('toStartOfWeek', [1, 3], (input) => {
    const isMonday = input.args.length > 1 && constantNumber(input.arg(1)) === 1
    const time = local(timeOf(input.arg(0), input))
    return value(
      isMonday
        ? `CAST(date_trunc('week', ${time}) AS DATE)`
        : `CAST(date_trunc('week', ${time} + to_days(1)) - to_days(1) AS DATE)`,
      DATE,
    )
  }),
  dateOf('toStartOfISOYear', (time) => `date_trunc('week', make_date(date_part('isoyear', ${time}), 1, 4))`),
  dateOf('toLastDayOfMonth', (time) => `last_day(${time})`),
  define('toStartOfInterval', [2, 4], (input) => {
    const { unit, count } = interval(input, 1)
    return startOfInterval(timeOf(input.arg(0), input), unit, count)
  }),
  ...defineAll('date_trunc dateTrunc', [2, 3], truncate),
  number('toYYYYMM', UINT32, (time) => `strftime(${time}, '%Y%m')`),
  number('toYYYYMMDD', UINT32, (time) => `strftime(${time}, '%Y%m%d')`),
  number('toYYYYMMDDhhmmss', UINT64, (time) => `strftime(${time}, '%Y%m%d%H%M%S')`),
  number('toUnixTimestamp', UINT32, (time) => `trunc(epoch(${time}))`),
  number('toRelativeDayNum', UINT32, (time) => `date_diff('day', DATE '1970-01-01', CAST(${time} AS DATE))`),
  number('toRelativeHourNum', UINT32, (time) => `floor(epoch(${time}) / 3600)`),
  number('toRelativeMinuteNum', UINT32, (time) => `floor(epoch(${time}) / 60)`),
  number('toRelativeSecondNum', UINT32, (time) => `floor(epoch(${time}))`),
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
    return text(`strftime(${time.sql}, ${quoteText(dateTimePattern(pattern, input))})`)
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
  define('toDateOrNull', 1, (input) =>
    value(`TRY_CAST(${plainSql(input.arg(0))} AS DATE)`, { ...DATE, isNullable: true }),
  ),
  define('toDateTimeOrNull', 1, (input) =>
    value(`TRY_CAST(${plainSql(input.arg(0))} AS TIMESTAMP)`, { ...DATETIME, isNullable: true }),
  ),
  define('toDateOrZero', 1, (input) =>
    value(`coalesce(TRY_CAST(${plainSql(input.arg(0))} AS DATE), DATE '1970-01-01')`, DATE),
  ),
  define('toDateTimeOrZero', 1, (input) =>
    value(`coalesce(TRY_CAST(${plainSql(input.arg(0))} AS TIMESTAMP), TIMESTAMP '1970-01-01 00:00:00')`, DATETIME),
  ),
  define('toTimeZone', 2, (input) => {
    const time = timeOf(input.arg(0), input)
    const zone = zoneFrom(input.arg(1), input)
    return { ...time, type: time.type.kind === 'datetime64' ? { ...time.type, zone } : { kind: 'datetime', zone } }
  }),
  define('timeZoneOf', 1, (input) =>
    text(quoteText(('zone' in input.arg(0).type ? (input.arg(0).type as { zone?: string }).zone : undefined) ?? 'UTC')),
  ),
  define('parseDateTimeBestEffort', [1, 2], (input) =>
    value(bestEffort(input, 'CAST'), { kind: 'datetime', zone: zoneFrom(input.args[1], input) }),
  ),
  define('parseDateTimeBestEffortOrNull', [1, 2], (input) =>
    value(bestEffort(input, 'TRY_CAST'), { kind: 'datetime', zone: zoneFrom(input.args[1], input), isNullable: true }),
  ),
  define('parseDateTimeBestEffortOrZero', [1, 2], (input) =>
    value(`coalesce(${bestEffort(input, 'TRY_CAST')}, TIMESTAMP '1970-01-01 00:00:00')`, {
      kind: 'datetime',
      zone: zoneFrom(input.args[1], input),
    }),
  ),
  define('parseDateTime64BestEffort', [1, 3], (input) =>
    value(`CAST(${plainSql(input.arg(0))} AS TIMESTAMP)`, {
      kind: 'datetime64',
      scale: constantNumber(input.args[1]) ?? 3,
      zone: utcOnly(input, 2),
    }),
  ),
  define('parseDateTime', [1, 3], (input) => {
    const pattern = constantText(input.args[1]) ?? '%Y-%m-%d %H:%i:%s'
    const zone = zoneFrom(input.args[2], input)
    const sql = `strptime(${input.arg(0).sql}, ${quoteText(dateTimePattern(pattern, input))})`
    return value(utcSql(sql, zone), { kind: 'datetime', zone })
  }),
  ...defineAll('formatDateTime DATE_FORMAT dateFormat', [2, 3], formatDateTime),
  ...defineAll('dateDiff date_diff timestampDiff timestamp_diff', [3, 4], dateDiff),
  define('age', [3, 4], age),
  ...defineAll('dateAdd date_add timestampAdd timestamp_add', [2, 3], dateAdd(1)),
  ...defineAll('dateSub date_sub timestampSub timestamp_sub', [2, 3], dateAdd(-1)),
  define('toTime', 1, (input) =>
    value(
      `(TIMESTAMP '1970-01-02 00:00:00' + (${local(timeOf(input.arg(0), input))} - date_trunc('day', ${local(timeOf(input.arg(0), input))})))`,
      DATETIME,
    ),
  ),
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
