import { DATE, UINT8, UINT32 } from '../../types.ts'
import { constantNumber, type Value, value } from '../../value.ts'
import { type CallArguments, define, defineAll, type FunctionDefinition } from '../definition.ts'
import { local, timeIn } from './arguments.ts'

/** Weeks as ClickHouse counts them, by a mode that is the second argument. The third one is a time zone. */

function modeOf(input: CallArguments, max: number): number {
  const mode = input.args.length > 1 ? constantNumber(input.arg(1)) : 0
  if (mode === undefined || !Number.isInteger(mode) || mode < 0 || mode > max)
    throw input.fail(`takes a mode of 0 to ${max}`)
  return mode
}

/** The first day of the week that contains the time: a Monday in odd modes, a Sunday in even ones. */
function weekStart(time: string, mode: number): string {
  return mode % 2 === 1 ? `date_trunc('week', ${time})` : `(date_trunc('week', ${time} + to_days(1)) - to_days(1))`
}

/** Days from the start of a week to the day whose year the week belongs to: of the week with four days in the year, the fourth one. */
function daysToAnchor(mode: number): number {
  if (mode >= 8) return 6
  return [1, 3, 4, 6].includes(mode) ? 3 : 0
}

/** The number of a week. In modes that count from 0 the days before the first week of their year are week 0, otherwise they are in the last week of the year before. */
function week(input: CallArguments): Value {
  const mode = modeOf(input, 9)
  const time = local(timeIn(input, 2))
  const anchor = `(${weekStart(time, mode)} + to_days(${daysToAnchor(mode)}))`
  const year = [0, 1, 4, 5].includes(mode) ? time : anchor
  const days = `date_diff('day', date_trunc('year', ${year}), ${anchor})`
  return value(`CAST((${days} + 7) // 7 AS UTINYINT)`, UINT8)
}

/** Year and week together: days around the new year may belong to a week of the other year. */
function yearWeek(input: CallArguments): Value {
  const mode = modeOf(input, 9)
  const anchor = `(${weekStart(local(timeIn(input, 2)), mode)} + to_days(${daysToAnchor(mode)}))`
  return value(`CAST(date_part('year', ${anchor}) * 100 + (date_part('doy', ${anchor}) + 6) // 7 AS UINTEGER)`, UINT32)
}

/** Modes 0 and 1 begin with Monday, 2 and 3 with Sunday; 0 and 3 count from 1. */
function dayOfWeek(input: CallArguments): Value {
  const mode = modeOf(input, 3)
  const time = local(timeIn(input, 2))
  const day = mode < 2 ? `(date_part('isodow', ${time}) - 1)` : `date_part('dow', ${time})`
  return value(`CAST(${day} + ${mode === 0 || mode === 3 ? 1 : 0} AS UTINYINT)`, UINT8)
}

export const WEEK_FUNCTIONS: readonly FunctionDefinition[] = [
  ...defineAll('toWeek week', [1, 3], week),
  ...defineAll('toYearWeek yearweek', [1, 3], yearWeek),
  ...defineAll('toDayOfWeek dayOfWeek', [1, 3], dayOfWeek),
  define('toStartOfWeek', [1, 3], (input) =>
    value(`CAST(${weekStart(local(timeIn(input, 2)), modeOf(input, 9))} AS DATE)`, DATE),
  ),
  define('toLastDayOfWeek', [1, 3], (input) =>
    value(`CAST(${weekStart(local(timeIn(input, 2)), modeOf(input, 9))} + to_days(6) AS DATE)`, DATE),
  ),
]
