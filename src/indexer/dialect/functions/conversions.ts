import { parseType } from '../parse-type.ts'
import {
  asInt,
  DATETIME,
  defaultOf,
  duckType,
  FLOAT64,
  int,
  isNumber,
  isTime,
  nullable,
  type Type,
  typeName,
  UINT32,
  UINT64,
} from '../types.ts'
import { constantNumber, constantText, numberSql, plainSql, quoteText, toText, type Value, value } from '../value.ts'
import { decimalSql } from './decimals.ts'
import { type CallArguments, define, defineAll, type FunctionDefinition, stringValue } from './definition.ts'
import { withDigits } from './time/arguments.ts'
import { tryTimeText } from './time/texts.ts'

/** Conversions that check the value, and values that are made at random. */

/** The value in the type whose name is the second argument; NULL where it does not fit exactly. */
function accurate(input: CallArguments): { readonly sql: string; readonly type: Type } {
  const name = constantText(input.arg(1))
  if (name === undefined) throw input.fail('takes the name of a type as its second argument')
  const type = parseType(name)
  const given = input.arg(0)
  if (type.kind === 'string') return { sql: toText(given), type }
  const isKnown = isNumber(type) || type.kind === 'date' || type.kind === 'datetime' || type.kind === 'uuid'
  if (!isKnown || !(isNumber(given.type) || given.type.kind === 'string'))
    throw input.fail(`cannot convert ${typeName(given.type)} to ${typeName(type)}`)
  if (asInt(type) !== undefined && (given.type.kind === 'float' || given.type.kind === 'decimal')) {
    const whole = `trunc(${given.sql}) = ${given.sql}`
    return { sql: `(CASE WHEN ${whole} THEN TRY_CAST(${given.sql} AS ${duckType(type)}) END)`, type }
  }
  if (type.kind === 'decimal') return { sql: decimalSql(given, type, 'TRY_CAST'), type }
  const isWhole = given.type.kind === 'string' && asInt(type) !== undefined
  const cast = `TRY_CAST(${plainSql(given)} AS ${duckType(type)})`
  return { sql: isWhole ? `(CASE WHEN regexp_full_match(${given.sql}, '[+-]?\\d+') THEN ${cast} END)` : cast, type }
}

const SIZES: readonly (readonly [string, number])[] = [
  ['toDecimal32', 9],
  ['toDecimal64', 18],
  ['toDecimal128', 38],
]

/** A text as a decimal; another text is NULL, zero or the default. */
const decimals = SIZES.flatMap(([name, precision]) => {
  const read = (input: CallArguments): { readonly sql: string; readonly type: Type } => {
    const scale = constantNumber(input.arg(1))
    if (scale === undefined || scale < 0 || scale > precision)
      throw input.fail(`takes a constant scale up to ${precision}`)
    const type = { kind: 'decimal', precision, scale } as const
    return { sql: decimalSql(input.arg(0), type, 'TRY_CAST'), type }
  }
  return [
    define(`${name}OrNull`, 2, (input) => value(read(input).sql, nullable(read(input).type)), { nulls: false }),
    define(`${name}OrZero`, 2, (input) =>
      value(`coalesce(${read(input).sql}, ${defaultOf(read(input).type)})`, read(input).type),
    ),
  ]
})

const UUID: Type = { kind: 'uuid' }
const ZERO_UUID = "CAST('00000000-0000-0000-0000-000000000000' AS UUID)"
const tryTime = (input: CallArguments): string => {
  const given = input.arg(0)
  return isTime(given.type) ? `TRY_CAST(${plainSql(given)} AS TIMESTAMP)` : tryTimeText(input, plainSql(given))
}

function timeScale(input: CallArguments): Extract<Type, { kind: 'datetime64' }> {
  const scale = input.args.length > 1 ? constantNumber(input.arg(1)) : 3
  if (scale === undefined || scale < 0 || scale > 9) throw input.fail('takes the number of digits of a second, 0 to 9')
  return { kind: 'datetime64', scale }
}

/** Characters that randomString makes. */
const RANDOM_LENGTH_MAX = 1000

function randomString(input: CallArguments): Value {
  const count = constantNumber(input.arg(0))
  if (count === undefined || count < 0 || count > RANDOM_LENGTH_MAX || !Number.isInteger(count))
    throw input.fail(`takes a constant length up to ${RANDOM_LENGTH_MAX} (random_length)`)
  return stringValue(
    `array_to_string(list_transform(range(0, ${count}), lambda i_: chr(CAST(32 + floor(random() * 95) AS INTEGER))), '')`,
  )
}

export const CONVERSION_FUNCTIONS: readonly FunctionDefinition[] = [
  define('accurateCast', 2, (input) => {
    const { sql, type } = accurate(input)
    const message = `sluice CANNOT_CONVERT_TYPE: Value does not fit into ${typeName(type)}`
    return value(`coalesce(${sql}, CAST(error(${quoteText(message)}) AS ${duckType(type)}))`, type)
  }),
  define('accurateCastOrNull', 2, (input) => value(accurate(input).sql, nullable(accurate(input).type)), {
    nulls: false,
  }),
  define('accurateCastOrDefault', [2, 3], (input) => {
    const { sql, type } = accurate(input)
    const fallback = input.args.length > 2 ? `CAST(${plainSql(input.arg(2))} AS ${duckType(type)})` : defaultOf(type)
    return value(`coalesce(${sql}, ${fallback})`, type)
  }),
  ...decimals,
  define('toUUID', 1, (input) => value(`CAST(${plainSql(input.arg(0))} AS UUID)`, UUID)),
  define('toUUIDOrNull', 1, (input) => value(`TRY_CAST(${plainSql(input.arg(0))} AS UUID)`, nullable(UUID)), {
    nulls: false,
  }),
  define('toUUIDOrZero', 1, (input) =>
    value(`coalesce(TRY_CAST(${plainSql(input.arg(0))} AS UUID), ${ZERO_UUID})`, UUID),
  ),
  define(
    'toDateTime64OrNull',
    [1, 2],
    (input) => {
      const type = timeScale(input)
      return value(withDigits(tryTime(input), type.scale), nullable(type))
    },
    { nulls: false },
  ),
  define('toDateTime64OrZero', [1, 2], (input) =>
    value(
      `coalesce(${withDigits(tryTime(input), timeScale(input).scale)}, TIMESTAMP '1970-01-01 00:00:00')`,
      timeScale(input),
    ),
  ),
  define('toDateTimeOrDefault', [1, 2], (input) =>
    value(`coalesce(date_trunc('second', ${tryTime(input)}), TIMESTAMP '1970-01-01 00:00:00')`, DATETIME),
  ),
  ...defineAll('rand32', 0, () => value('CAST(floor(random() * 4294967296) AS UINTEGER)', UINT32)),
  define('rand64', [0, 1], () =>
    value(
      'CAST(floor(random() * 4294967296) AS UBIGINT) * 4294967296 + CAST(floor(random() * 4294967296) AS UBIGINT)',
      UINT64,
    ),
  ),
  define('randUniform', 2, (input) => {
    const [low, high] = [0, 1].map((at) => `CAST(${numberSql(input.arg(at))} AS DOUBLE)`)
    return value(`(${low} + random() * (${high} - ${low}))`, FLOAT64)
  }),
  define('randomString', 1, randomString),
  define('randomPrintableASCII', 1, randomString),
  define('isConstant', 1, (input) =>
    value(`CAST(${input.arg(0).isConstant === true ? 1 : 0} AS UTINYINT)`, int(8, false)),
  ),
]
