import { asInt, DATETIME, isNumber, isTime, type Type, typeName } from '../../types.ts'
import { constantText, localSql, numberSql, plainSql, textMoment, utcSql, type Value, value } from '../../value.ts'
import type { CallArguments } from '../definition.ts'
import { isTimeZone } from '../time-zone.ts'

/** The time of a call, in the zone of argument `zoneAt` if the call has one. */
export function timeIn(input: CallArguments, zoneAt: number, timeAt = 0): Value {
  const time = timeOf(input.arg(timeAt), input)
  const zone = zoneFrom(input.args[zoneAt], input)
  return zone === undefined ? time : inZone(time, zone)
}

/** A time as TIMESTAMP of the engine; a text has `textType` where the function takes one. */
export function timeOf(given: Value, input: CallArguments, textType?: Type): Value {
  if (isTime(given.type)) return given
  if (given.type.kind === 'string' && textType !== undefined) return value(textMoment(given, undefined), textType)
  if (given.type.kind === 'unknown') return value(`CAST(${given.sql} AS TIMESTAMP)`, DATETIME)
  throw input.wrongType(`takes a time, not ${typeName(given.type)}`)
}

/** The same moment in another zone. A date is its midnight there. */
export function inZone(time: Value, zone: string): Value {
  const type: Type = { kind: 'datetime', zone }
  if (time.type.kind === 'date') return value(utcSql(`CAST(${time.sql} AS TIMESTAMP)`, zone), type)
  return { ...time, type: time.type.kind === 'datetime64' ? { ...time.type, zone } : type }
}

export function zoneFrom(given: Value | undefined, input: CallArguments): string | undefined {
  if (given === undefined) return undefined
  const zone = constantText(given)
  if (zone === undefined || !isTimeZone(zone))
    throw input.fail('takes the name of a time zone that exists, such as Europe/Berlin')
  return zone
}

/** Date and time of day in the zone of the time. */
export const local = (given: Value): string => localSql({ ...given, sql: utc(given) })

export const utc = (given: Value): string => `CAST(${given.sql} AS TIMESTAMP)`

/** A moment without the digits of the second that DateTime64 of this scale has not; `from` is the type of what it was made of. */
export function withDigits(sql: string, scale: number, from?: Type): string {
  const known = from?.kind === 'datetime64' ? from.scale : from?.kind === 'datetime' || from?.kind === 'date' ? 0 : 6
  if (scale >= known || scale >= 6) return sql
  if (scale === 0) return `date_trunc('second', ${sql})`
  if (scale === 3) return `date_trunc('millisecond', ${sql})`
  const step = 10 ** (6 - scale)
  return `make_timestamp(CAST(floor(epoch_us(${sql}) / CAST(${step} AS DOUBLE)) AS BIGINT) * ${step})`
}

/** A number of seconds, a time, a date or a text as a moment; texts and dates are those of the zone. */
export function momentSql(given: Value, zone: string | undefined): string {
  // A whole number of few bits would be out of its range.
  if (asInt(given.type) !== undefined) return `make_timestamp(CAST(${numberSql(given)} AS BIGINT) * 1000000)`
  if (isNumber(given.type)) return `make_timestamp(CAST(${numberSql(given)} * 1000000 AS BIGINT))`
  if (given.type.kind === 'string') return textMoment(given, zone)
  const time = `CAST(${plainSql(given)} AS TIMESTAMP)`
  return given.type.kind === 'datetime' || given.type.kind === 'datetime64' ? time : utcSql(time, zone)
}
