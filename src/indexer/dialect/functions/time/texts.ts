import { DATE, DATETIME, type Type } from '../../types.ts'
import { constantNumber, constantText, plainSql, quoteText, utcSql, type Value, value } from '../../value.ts'
import { bound, type CallArguments, define, defineAll, type FunctionDefinition, stringValue } from '../definition.ts'
import { timeIn, withDigits, zoneFrom } from './arguments.ts'
import { formatted, parsedPattern } from './pattern.ts'

/** Times from texts and back. */

const EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"

/** Forms of dates with the name of the month, or with the day first, and of the time after them. */
const DATES = ['%d %b %Y', '%b %d %Y', '%d/%m/%Y']
const TIMES = [' %I:%M:%S %p', ' %I:%M %p', ' %H:%M:%S', ' %H:%M', '']
const NAMED = DATES.flatMap((date) => TIMES.map((time) => `'${date}${time}'`)).join(', ')

/** Changes of a text before it is read, in their order: the parts of a date get their usual places and separators. */
const WRITTEN: readonly (readonly [pattern: string, replacement: string])[] = [
  ['^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +', ''],
  [' ?(GMT|UTC)$', 'Z'],
  ['^(\\d{4})(\\d{2})(\\d{2})[T ]?(\\d{2})(\\d{2})(\\d{2})(Z|[+-][\\d:]+)?$', '\\1-\\2-\\3 \\4:\\5:\\6\\7'],
  ['^(\\d{4})(\\d{2})(\\d{2})$', '\\1-\\2-\\3'],
  ['^(\\d{4})$', '\\1-01-01'],
  ['^(\\d{4}-\\d{2})$', '\\1-01'],
  ['^(\\d{4}-\\d{2}-\\d{2})[T ](\\d{1,2})$', '\\1 \\2:00:00'],
  ['^(\\d{1,2})-(\\d{1,2})-(\\d{4})( |T|$)', '\\3-\\2-\\1\\4'],
  ['^(\\d{2})-(\\d{2})-(\\d{2})( |T|$)', '20\\3-\\2-\\1\\4'],
  ['^(\\d{1,2})-([A-Za-z]{3,9})-', '\\1 \\2 '],
]

/** Texts of times in common forms; the zone is that of the call unless the text has one. */
function bestEffort(input: CallArguments, cast: 'CAST' | 'TRY_CAST', zone = zoneFrom(input.args[1], input)): string {
  const given = input.arg(0)
  const text = given.type.kind === 'string' ? given.sql : plainSql(given)
  const written = WRITTEN.reduce(
    (sql, [pattern, replacement]) => `regexp_replace(${sql}, '${pattern}', '${replacement}')`,
    text,
  )
  return bound(input, written, (sql) => {
    const named = `try_strptime(replace(regexp_replace(${sql}, 'Z$', ''), ',', ''), [${NAMED}])`
    const isNamed = `regexp_matches(${sql}, '[A-SU-Ya-su-y]{3}|^\\d{1,2}/') AND ${named} IS NOT NULL`
    const hasZone = `regexp_matches(${sql}, '(Z|[+-]\\d{2}:?\\d{2}|:\\d{2}(\\.\\d+)?[+-]\\d{2})$')`
    const cases = [
      `WHEN ${isNamed} THEN CASE WHEN ends_with(${sql}, 'Z') THEN ${named} ELSE ${utcSql(named, zone)} END`,
      `WHEN regexp_full_match(${sql}, '\\d{9,10}') THEN make_timestamp(TRY_CAST(${sql} AS BIGINT) * 1000000)`,
      `WHEN regexp_full_match(${sql}, '\\d{13}') THEN make_timestamp(TRY_CAST(${sql} AS BIGINT) * 1000)`,
      `WHEN ${hasZone} THEN timezone('UTC', ${cast}(${sql} AS TIMESTAMP WITH TIME ZONE))`,
      `ELSE ${utcSql(`${cast}(${sql} AS TIMESTAMP)`, zone)}`,
    ]
    return `CASE ${cases.join(' ')} END`
  })
}

const inSeconds = (input: CallArguments, cast: 'CAST' | 'TRY_CAST'): string =>
  `date_trunc('second', ${bestEffort(input, cast)})`

function formatDateTime(input: CallArguments): Value {
  const pattern = constantText(input.arg(1))
  if (pattern === undefined) throw input.fail('takes a constant pattern')
  return stringValue(formatted(timeIn(input, 2), pattern, input))
}

/** The type of the result: its zone is the second argument. */
const dateTime = (input: CallArguments): Type => ({ kind: 'datetime', zone: zoneFrom(input.args[1], input) })

/** A text of a date, or of a date and a time to the second, or NULL, computed once. A number counts seconds since 1970. */
export const tryTimeText = (input: CallArguments, text: string, zone?: string): string =>
  bound(input, text, (sql) => timeOfText(sql, zone))

function timeOfText(text: string, zone: string | undefined): string {
  const isDate = `regexp_full_match(${text}, '\\d{4}[-/]\\d{1,2}[-/]\\d{1,2}([ T]\\d{1,2}:\\d{1,2}:\\d{1,2}(\\.\\d+)?)?')`
  const isNumber = `regexp_full_match(${text}, '\\d{5,10}')`
  return `(CASE WHEN ${isNumber} THEN make_timestamp(TRY_CAST(${text} AS BIGINT) * 1000000) WHEN ${isDate} THEN ${utcSql(`TRY_CAST(${text} AS TIMESTAMP)`, zone)} END)`
}

const tried = (input: CallArguments): string => {
  const given = input.arg(0)
  if (given.type.kind !== 'string')
    return utcSql(`TRY_CAST(${plainSql(given)} AS TIMESTAMP)`, zoneFrom(input.args[1], input))
  // DateTime has no fraction of a second.
  const zone = zoneFrom(input.args[1], input)
  return bound(input, given.sql, (sql) => `CASE WHEN strpos(${sql}, '.') = 0 THEN ${timeOfText(sql, zone)} END`)
}

export const TIME_TEXT_FUNCTIONS: readonly FunctionDefinition[] = [
  define('toDateOrNull', 1, (input) =>
    value(`TRY_CAST(${plainSql(input.arg(0))} AS DATE)`, { ...DATE, isNullable: true }),
  ),
  define('toDateTimeOrNull', [1, 2], (input) => value(tried(input), { ...dateTime(input), isNullable: true })),
  define('toDateOrZero', 1, (input) =>
    value(`coalesce(TRY_CAST(${plainSql(input.arg(0))} AS DATE), DATE '1970-01-01')`, DATE),
  ),
  define('toDateTimeOrZero', [1, 2], (input) => value(`coalesce(${tried(input)}, ${EPOCH})`, dateTime(input))),
  define('parseDateTimeBestEffort', [1, 2], (input) => value(inSeconds(input, 'CAST'), dateTime(input))),
  define('parseDateTimeBestEffortOrNull', [1, 2], (input) =>
    value(inSeconds(input, 'TRY_CAST'), { ...dateTime(input), isNullable: true }),
  ),
  define('parseDateTimeBestEffortOrZero', [1, 2], (input) =>
    value(`coalesce(${inSeconds(input, 'TRY_CAST')}, ${EPOCH})`, dateTime(input)),
  ),
  define('parseDateTime64BestEffort', [1, 3], (input) => {
    const scale = constantNumber(input.args[1]) ?? 3
    const zone = zoneFrom(input.args[2], input)
    return value(withDigits(bestEffort(input, 'CAST', zone ?? 'UTC'), scale), { kind: 'datetime64', scale, zone })
  }),
  define('parseDateTime', [1, 3], (input) => {
    const pattern = constantText(input.args[1]) ?? '%Y-%m-%d %H:%i:%s'
    const zone = zoneFrom(input.args[2], input)
    const sql = `strptime(${input.arg(0).sql}, ${quoteText(parsedPattern(pattern, zone, input))})`
    return value(utcSql(sql, zone), { ...DATETIME, zone } as Type)
  }),
  ...defineAll('formatDateTime DATE_FORMAT dateFormat', [2, 3], formatDateTime),
]
