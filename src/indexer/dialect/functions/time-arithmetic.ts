import { asInt, DATE, DATETIME, int, isTime, type Type, UNKNOWN, zoneOf } from '../types.ts'
import { localSql, numberSql, plainSql, utcSql, type Value, value } from '../value.ts'
import type { CallArguments } from './definition.ts'

const SECONDS: Readonly<Record<string, number>> = { Second: 1, Minute: 60 }
const MAKERS: Readonly<Record<string, string>> = {
  Second: 'to_seconds',
  Minute: 'to_minutes',
  Hour: 'to_hours',
  Day: 'to_days',
  Week: 'to_weeks',
  Month: 'to_months',
  Quarter: 'to_quarters',
  Year: 'to_years',
  Millisecond: 'to_milliseconds',
  Microsecond: 'to_microseconds',
}

export const INTERVAL_UNITS: readonly string[] = Object.keys(MAKERS)

/** An interval of the engine: `count` of a unit such as Hour. */
export function intervalSql(unit: string, count: string): string {
  if (unit === 'Quarter') return `to_months(CAST(3 * ${count} AS INTEGER))`
  if (unit === 'Millisecond' || unit === 'Microsecond') return `${MAKERS[unit]}(CAST(${count} AS BIGINT))`
  const isLarge = unit === 'Second' || unit === 'Minute' || unit === 'Hour'
  return `${MAKERS[unit]}(CAST(${count} AS ${isLarge ? 'BIGINT' : 'INTEGER'}))`
}

/** A time and an interval, or a number of seconds; a date and a number of days. */
export function addInterval(time: Value, step: Value, sign: 1 | -1, input: CallArguments): Value {
  if (step.type.kind === 'unknown' || time.type.kind === 'unknown')
    return value(`(${plainSql(time)} ${sign === 1 ? '+' : '-'} ${plainSql(step)})`, UNKNOWN)
  if (!isTime(time.type)) throw input.wrongType('takes a time and an interval')
  if (step.type.kind === 'interval') return shift(time, step.type.unit, `(${sign} * ${step.sql})`)
  if (asInt(step.type) === undefined) throw input.wrongType('takes a time and an interval or a whole number')
  return shift(time, time.type.kind === 'date' ? 'Day' : 'Second', `(${sign} * CAST(${numberSql(step)} AS BIGINT))`)
}

/** The time `count` units later. The value of an interval expression is its count. */
export function shift(time: Value, unit: string, count: string): Value {
  const isFine = unit === 'Hour' || unit === 'Minute' || unit === 'Second' || unit.endsWith('second')
  const type: Type = time.type.kind === 'date' ? (isFine ? DATETIME : DATE) : withScale(time.type, unit)
  const moment = `CAST(${time.sql} AS TIMESTAMP)`
  // Days and longer units move the calendar of the zone; a change of its offset is no part of shorter ones.
  const sql = isFine
    ? `${moment} + ${intervalSql(unit, count)}`
    : utcSql(`${localSql({ ...time, sql: moment })} + ${intervalSql(unit, count)}`, zoneOf(time.type))
  return value(type.kind === 'date' ? `CAST(${sql} AS DATE)` : `(${sql})`, { ...type, isLowCardinality: false })
}

function withScale(type: Type, unit: string): Type {
  const scale = unit === 'Millisecond' ? 3 : unit === 'Microsecond' ? 6 : 0
  if (scale === 0 || (type.kind === 'datetime64' && type.scale >= scale)) return type
  return { kind: 'datetime64', scale, zone: 'zone' in type ? type.zone : undefined }
}

/** Dates: days; times: seconds. */
export function timeDifference(a: Value, b: Value): Value {
  if (a.type.kind === 'date' && b.type.kind === 'date')
    return value(`CAST(date_diff('day', ${b.sql}, ${a.sql}) AS INTEGER)`, int(32, true))
  return value(
    `CAST(epoch(CAST(${a.sql} AS TIMESTAMP)) - epoch(CAST(${b.sql} AS TIMESTAMP)) AS INTEGER)`,
    int(32, true),
  )
}

/** The start of the interval of `count` units that contains the time. */
export function startOfInterval(time: Value, unit: string, count: number): Value {
  const local = localSql({ ...time, sql: `CAST(${time.sql} AS TIMESTAMP)` })
  const zone = zoneOf(time.type)
  const type: Type = { kind: 'datetime', zone }
  if (unit === 'Week')
    return value(
      `CAST(date_trunc('week', ${local}) - to_days(CAST((date_diff('day', DATE '1970-01-05', CAST(date_trunc('week', ${local}) AS DATE)) // 7 % ${count}) * 7 AS INTEGER)) AS DATE)`,
      DATE,
    )
  if (unit === 'Month' || unit === 'Quarter' || unit === 'Year') {
    const months = unit === 'Month' ? count : unit === 'Quarter' ? count * 3 : count * 12
    const since =
      unit === 'Year'
        ? `(date_part('year', ${local}) * 12)`
        : `(date_part('year', ${local}) * 12 + date_part('month', ${local}) - 1)`
    const start = `(${since} // ${months} * ${months})`
    return value(`make_date(${start} // 12, ${start} % 12 + 1, 1)`, DATE)
  }
  if (unit === 'Day' && count === 1) return value(utcSql(`date_trunc('day', ${local})`, zone), type)
  if (unit === 'Day') {
    const days = `CAST(floor(epoch(${local}) / 86400) AS BIGINT)`
    return value(utcSql(`make_timestamp((${days} - ${days} % ${count}) * 86400000000)`, zone), type)
  }
  if (unit === 'Millisecond' || unit === 'Microsecond') {
    const step = count * (unit === 'Millisecond' ? 1000 : 1)
    const micros = `epoch_us(CAST(${time.sql} AS TIMESTAMP))`
    return value(`make_timestamp(${micros} - ${micros} % ${step})`, {
      kind: 'datetime64',
      scale: unit === 'Millisecond' ? 3 : 6,
      zone,
    })
  }
  const moment = `CAST(floor(epoch(CAST(${time.sql} AS TIMESTAMP))) AS BIGINT)`
  if (unit === 'Hour') {
    const inZone = `CAST(floor(epoch(${local})) AS BIGINT)`
    // Not from the time in the zone, which exists twice where its offset decreases.
    if (count === 1) return value(`make_timestamp((${moment} - ${inZone} % 3600) * 1000000)`, type)
    // Hours are counted from midnight: the last interval of a day may be shorter.
    const start = `make_timestamp((${inZone} - ${inZone} % 86400 % ${count * 3600}) * 1000000)`
    return value(utcSql(start, zone), type)
  }
  const seconds = (SECONDS[unit] ?? 1) * count
  return value(`make_timestamp((${moment} - ${moment} % ${seconds}) * 1000000)`, type)
}
