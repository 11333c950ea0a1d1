import { DATE, DATETIME, type Type } from '../../types.ts'
import { constantNumber, constantText, plainSql, quoteText, utcSql, type Value, value } from '../../value.ts'
import { type CallArguments, define, defineAll, type FunctionDefinition, stringValue } from '../definition.ts'
import { timeIn, zoneFrom } from './arguments.ts'
import { formatted, parsedPattern } from './pattern.ts'

/** Times from texts and back. */

const EPOCH = "TIMESTAMP '1970-01-01 00:00:00'"

/** Texts of times in common forms; the zone is that of the call unless the text has one. */
function bestEffort(input: CallArguments, cast: 'CAST' | 'TRY_CAST'): string {
  const given = input.arg(0)
  const zone = zoneFrom(input.args[1], input)
  const sql = given.type.kind === 'string' ? given.sql : plainSql(given)
  const isSeconds = `regexp_full_match(${sql}, '\\d{9,10}')`
  const compact = `regexp_replace(regexp_replace(${sql}, '^(\\d{4})(\\d{2})(\\d{2})(?:[T ]?(\\d{2})(\\d{2})(\\d{2}))$', '\\1-\\2-\\3 \\4:\\5:\\6'), '^(\\d{4})(\\d{2})(\\d{2})$', '\\1-\\2-\\3')`
  const named = `try_strptime(${sql}, ['%d %b %Y %H:%M:%S', '%d %b %Y %H:%M', '%d %b %Y', '%b %d %Y %H:%M:%S', '%b %d, %Y', '%b %d %Y'])`
  const hasZone = `regexp_matches(${sql}, '(Z|[+-]\\d{2}:?\\d{2})$')`
  const cases = [
    `WHEN regexp_matches(${sql}, '[A-SU-Ya-su-y]{3}') AND ${named} IS NOT NULL THEN ${utcSql(named, zone)}`,
    `WHEN ${isSeconds} THEN make_timestamp(TRY_CAST(${sql} AS BIGINT) * 1000000)`,
    `WHEN ${hasZone} THEN date_trunc('second', timezone('UTC', ${cast}(${compact} AS TIMESTAMP WITH TIME ZONE)))`,
    `ELSE ${utcSql(`date_trunc('second', ${cast}(${compact} AS TIMESTAMP))`, zone)}`,
  ]
  return `(CASE ${cases.join(' ')} END)`
}

function formatDateTime(input: CallArguments): Value {
  const pattern = constantText(input.arg(1))
  if (pattern === undefined) throw input.fail('takes a constant pattern')
  return stringValue(formatted(timeIn(input, 2), pattern, input))
}

/** A zone in which the text is not converted. */
function utcOnly(input: CallArguments, at: number): string | undefined {
  const zone = zoneFrom(input.args[at], input)
  if (zone !== undefined && zone !== 'UTC') throw input.fail('takes the time zone UTC only')
  return zone
}

/** The type of the result: its zone is the second argument. */
const dateTime = (input: CallArguments): Type => ({ kind: 'datetime', zone: zoneFrom(input.args[1], input) })

const tried = (input: CallArguments): string =>
  utcSql(`TRY_CAST(${plainSql(input.arg(0))} AS TIMESTAMP)`, zoneFrom(input.args[1], input))

export const TIME_TEXT_FUNCTIONS: readonly FunctionDefinition[] = [
  define('toDateOrNull', 1, (input) =>
    value(`TRY_CAST(${plainSql(input.arg(0))} AS DATE)`, { ...DATE, isNullable: true }),
  ),
  define('toDateTimeOrNull', [1, 2], (input) => value(tried(input), { ...dateTime(input), isNullable: true })),
  define('toDateOrZero', 1, (input) =>
    value(`coalesce(TRY_CAST(${plainSql(input.arg(0))} AS DATE), DATE '1970-01-01')`, DATE),
  ),
  define('toDateTimeOrZero', [1, 2], (input) => value(`coalesce(${tried(input)}, ${EPOCH})`, dateTime(input))),
  define('parseDateTimeBestEffort', [1, 2], (input) => value(bestEffort(input, 'CAST'), dateTime(input))),
  define('parseDateTimeBestEffortOrNull', [1, 2], (input) =>
    value(bestEffort(input, 'TRY_CAST'), { ...dateTime(input), isNullable: true }),
  ),
  define('parseDateTimeBestEffortOrZero', [1, 2], (input) =>
    value(`coalesce(${bestEffort(input, 'TRY_CAST')}, ${EPOCH})`, dateTime(input)),
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
    const sql = `strptime(${input.arg(0).sql}, ${quoteText(parsedPattern(pattern, zone, input))})`
    return value(utcSql(sql, zone), { ...DATETIME, zone } as Type)
  }),
  ...defineAll('formatDateTime DATE_FORMAT dateFormat', [2, 3], formatDateTime),
]
