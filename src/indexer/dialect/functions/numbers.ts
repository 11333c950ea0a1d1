import {
  asInt,
  decimalOf,
  duckType,
  FLOAT64,
  INT64,
  type IntType,
  int,
  isNumber,
  isTime,
  NOTHING,
  nullable,
  plain,
  supertype,
  type Type,
  typeName,
  UINT8,
  UINT16,
  UNKNOWN,
  zoneOf,
} from '../types.ts'
import { condition, conditionSql, constantNumber, convert, numberSql, plainSql, type Value, value } from '../value.ts'
import { resized } from './cast.ts'
import { divideDecimals, roundDecimal } from './decimals.ts'
import { type CallArguments, define, defineAll, type FunctionDefinition, uint64Value } from './definition.ts'
import { addInterval, timeDifference } from './time-arithmetic.ts'

/** Types of the arithmetic operators: the next larger size, signed if one side is or for a difference. */
function arithmeticType(a: Type, b: Type, isMinus: boolean, input: CallArguments): Type {
  if (a.kind === 'unknown' || b.kind === 'unknown') return UNKNOWN
  if (a.kind === 'nothing' || b.kind === 'nothing') return NOTHING
  if (!isNumber(a) || !isNumber(b)) throw input.wrongType('takes numbers')
  if (a.kind === 'decimal' || b.kind === 'decimal') {
    if (a.kind === 'float' || b.kind === 'float') return FLOAT64
    const [p, q] = [decimalOf(a), decimalOf(b)]
    return { kind: 'decimal', precision: Math.max(p.precision, q.precision), scale: Math.max(p.scale, q.scale) }
  }
  const [x, y] = [asInt(a), asInt(b)]
  if (x === undefined || y === undefined) return FLOAT64
  return int(nextBits(Math.max(x.bits, y.bits)), isMinus || x.isSigned || y.isSigned)
}

/** The next larger size of whole numbers, up to 64 bits; that of larger ones is their own. */
const nextBits = (bits: number): number => (bits < 64 ? bits * 2 : bits)

/**
 * 64 bits are computed with 128 and reduced, because ClickHouse does not report an overflow. Smaller results cannot overflow; larger ones are an error
 * where they do.
 */
function arithmetic(operator: '+' | '-' | '*', input: CallArguments): Value {
  const [a, b] = [input.arg(0), input.arg(1)]
  const type = arithmeticType(a.type, b.type, operator === '-', input)
  const [x, y] = [numberSql(a), numberSql(b)]
  if (type.kind === 'unknown') return value(`(${x} ${operator} ${y})`, type)
  if (type.kind === 'nothing') return value('NULL', type)
  if (type.kind === 'float') return value(`(CAST(${x} AS DOUBLE) ${operator} CAST(${y} AS DOUBLE))`, type)
  if (type.kind === 'decimal') return decimalArithmetic(operator, a, b, type)
  if (type.kind !== 'int') throw input.wrongType('takes numbers')
  if (type.bits !== 64)
    return value(`(CAST(${x} AS ${duckType(type)}) ${operator} CAST(${y} AS ${duckType(type)}))`, type)
  return value(wrapped(`(CAST(${x} AS HUGEINT) ${operator} CAST(${y} AS HUGEINT))`, type.isSigned), type)
}

/** The lower 64 bits of a 128-bit number. */
function wrapped(sql: string, isSigned: boolean): string {
  if (!isSigned) return `CAST(${sql} & 18446744073709551615 AS UBIGINT)`
  return `CAST(((${sql} + 9223372036854775808) & 18446744073709551615) - 9223372036854775808 AS BIGINT)`
}

function decimalArithmetic(
  operator: '+' | '-' | '*',
  a: Value,
  b: Value,
  type: Extract<Type, { kind: 'decimal' }>,
): Value {
  const [p, q] = [decimalOf(a.type), decimalOf(b.type)]
  const result: Type = { ...type, scale: operator === '*' ? p.scale + q.scale : type.scale }
  const part = (given: Value, scale: number): string =>
    `CAST(${numberSql(given)} AS DECIMAL(${operator === '*' ? 18 : 37}, ${scale}))`
  return value(`CAST((${part(a, p.scale)} ${operator} ${part(b, q.scale)}) AS ${duckType(result)})`, result)
}

function plus(input: CallArguments): Value {
  const [a, b] = [input.arg(0), input.arg(1)]
  if (isTime(a.type) || a.type.kind === 'interval')
    return isTime(a.type) ? addInterval(a, b, 1, input) : addInterval(b, a, 1, input)
  if (isTime(b.type)) return addInterval(b, a, 1, input)
  return arithmetic('+', input)
}

function minus(input: CallArguments): Value {
  const [a, b] = [input.arg(0), input.arg(1)]
  if (isTime(a.type)) return isTime(b.type) ? timeDifference(a, b) : addInterval(a, b, -1, input)
  return arithmetic('-', input)
}

function divide(input: CallArguments): Value {
  const [a, b] = [input.arg(0), input.arg(1)]
  const isExact = ({ type }: Value): boolean =>
    type.kind === 'decimal' || type.kind === 'nothing' || asInt(type) !== undefined
  const isDecimal = a.type.kind === 'decimal' || b.type.kind === 'decimal'
  if (isDecimal && isExact(a) && isExact(b)) return divideDecimals(a, b)
  if (!isNumber(a.type) || !isNumber(b.type)) {
    if (a.type.kind === 'unknown' || b.type.kind === 'unknown')
      return value(`(${plainSql(a)} / ${plainSql(b)})`, UNKNOWN)
    throw input.wrongType('takes numbers')
  }
  return value(`(CAST(${numberSql(a)} AS DOUBLE) / CAST(${numberSql(b)} AS DOUBLE))`, FLOAT64)
}

function intDiv(input: CallArguments, isZeroSafe = false): Value {
  const [a, b] = [input.arg(0), input.arg(1)]
  const [x, y] = [asInt(a.type), asInt(b.type)]
  if (x === undefined || y === undefined) {
    if (isNumber(a.type) && isNumber(b.type))
      return value(`CAST(trunc(CAST(${numberSql(a)} AS DOUBLE) / CAST(${numberSql(b)} AS DOUBLE)) AS BIGINT)`, INT64)
    return value(`(${plainSql(a)} // ${plainSql(b)})`, UNKNOWN)
  }
  const type = int(x.bits, x.isSigned || y.isSigned)
  const quotient = `CAST(CAST(${numberSql(a)} AS HUGEINT) // CAST(${numberSql(b)} AS HUGEINT) AS ${duckType(type)})`
  if (isZeroSafe) return value(`coalesce(${quotient}, CAST(0 AS ${duckType(type)}))`, type)
  return value(divided(quotient, b), type)
}

/** A constant other than zero needs no check. */
function divided(sql: string, by: Value): string {
  const number = constantNumber(by)
  if (number !== undefined && number !== 0) return sql
  return `(CASE WHEN ${numberSql(by)} = 0 THEN error('sluice ILLEGAL_DIVISION: Division by zero') ELSE ${sql} END)`
}

/** An error while the statement runs: the text reaches the customer. */
export function guarded(sql: string, isWrong: string, message: string): string {
  return `(CASE WHEN ${isWrong} THEN error('sluice: ${message}') ELSE ${sql} END)`
}

function modulo(input: CallArguments, isZeroSafe = false): Value {
  const [a, b] = [input.arg(0), input.arg(1)]
  const [x, y] = [asInt(a.type), asInt(b.type)]
  if (x === undefined || y === undefined) {
    if (isNumber(a.type) && isNumber(b.type))
      return value(`(CAST(${numberSql(a)} AS DOUBLE) % CAST(${numberSql(b)} AS DOUBLE))`, FLOAT64)
    return value(`(${plainSql(a)} % ${plainSql(b)})`, UNKNOWN)
  }
  const type = int(x.isSigned ? nextBits(y.bits) : y.bits, x.isSigned)
  const rest = `CAST(CAST(${numberSql(a)} AS HUGEINT) % CAST(${numberSql(b)} AS HUGEINT) AS ${duckType(type)})`
  return value(isZeroSafe ? rest : divided(rest, b), type)
}

function negate(input: CallArguments): Value {
  const a = input.arg(0)
  const x = asInt(a.type)
  if (x === undefined) return value(`(-${plainSql(a)})`, plain(a.type))
  const type = int(x.isSigned ? x.bits : nextBits(x.bits), true)
  // The smallest number of a type has no negative in it, and stays the same.
  const sql = `-CAST(${numberSql(a)} AS HUGEINT)`
  return value(resized(`(${sql})`, { kind: 'int', bits: 128, isSigned: true }, type as IntType), type)
}

function abs(input: CallArguments): Value {
  const a = input.arg(0)
  const x = asInt(a.type)
  const type = x === undefined ? plain(a.type) : int(x.bits, false)
  if (x === undefined) return value(`abs(${plainSql(a)})`, type)
  return value(`CAST(abs(CAST(${numberSql(a)} AS HUGEINT)) AS ${duckType(type)})`, type)
}

/** A number as the engine has it. */
function numberArgument(input: CallArguments, at: number): string {
  const given = input.arg(at)
  if (!isNumber(given.type) && given.type.kind !== 'unknown' && given.type.kind !== 'nothing')
    throw input.wrongType(`takes a number as argument ${at + 1}, not ${typeName(given.type)}`)
  return numberSql(given)
}

type Rounding = 'round' | 'bankers' | 'floor' | 'ceil' | 'trunc'

/** Functions that round keep the type of a number; the second argument is the number of digits. */
function rounding(mode: Rounding, input: CallArguments): Value {
  const a = input.arg(0)
  const digits = input.args.length > 1 ? constantNumber(input.arg(1)) : 0
  if (digits === undefined || !Number.isInteger(digits)) throw input.fail('takes a constant number of digits')
  const type = plain(a.type)
  const of = numberArgument(input, 0)
  const whole = asInt(a.type)
  if (whole !== undefined) return value(digits >= 0 ? of : roundedWhole(mode, of, digits, whole), type)
  if (a.type.kind === 'unknown') return value(`round(${of}, ${digits})`, type)
  const cast = (sql: string): string => `CAST(${sql} AS ${duckType(type)})`
  if (mode === 'round' && a.type.kind === 'decimal') return value(cast(`round(${of}, ${digits})`), type)
  if (type.kind === 'decimal' && mode !== 'round' && mode !== 'bankers') {
    const exact = roundDecimal(mode, { sql: of, digits, type })
    if (exact !== undefined) return value(cast(exact), type)
  }
  // ClickHouse rounds the half of a fraction to the even number.
  const rounded = (sql: string): string =>
    mode === 'round' || mode === 'bankers' ? `round_even(${sql}, 0)` : `${mode}(${sql})`
  if (digits === 0) return value(cast(rounded(`CAST(${of} AS DOUBLE)`)), type)
  const factor = `CAST(${10 ** Math.abs(digits)} AS DOUBLE)`
  const scaled =
    digits > 0
      ? `${rounded(`CAST(${of} AS DOUBLE) * ${factor}`)} / ${factor}`
      : `${rounded(`CAST(${of} AS DOUBLE) / ${factor}`)} * ${factor}`
  return value(cast(scaled), type)
}

/** A whole number, rounded to a multiple of a power of ten without a fraction: half of it is rounded away from zero. */
function roundedWhole(mode: Rounding, sql: string, digits: number, type: IntType): string {
  const cast = (of: string): string => `CAST(${of} AS ${duckType(type)})`
  const scale = 10n ** BigInt(Math.min(-digits, 39))
  // As in ClickHouse: the type has no such power.
  if (scale >= 2n ** BigInt(type.isSigned ? type.bits - 1 : type.bits)) return cast(`(${sql} * 0)`)
  const x = `CAST(${sql} AS HUGEINT)`
  const half = `(abs(${x}) + ${scale / 2n})`
  switch (mode) {
    case 'trunc':
      return cast(`${x} // ${scale} * ${scale}`)
    case 'floor':
      return cast(`(CASE WHEN ${x} < 0 THEN ${x} - ${scale - 1n} ELSE ${x} END) // ${scale} * ${scale}`)
    case 'ceil':
      return cast(`(CASE WHEN ${x} > 0 THEN ${x} + ${scale - 1n} ELSE ${x} END) // ${scale} * ${scale}`)
    case 'round':
      return cast(`sign(${x}) * (${half} // ${scale} * ${scale})`)
    case 'bankers': {
      const count = `${half} // ${scale}`
      return cast(`sign(${x}) * (CASE WHEN ${half} % ${scale} = 0 THEN ${count} // 2 * 2 ELSE ${count} END * ${scale})`)
    }
  }
}

const float =
  (name: string) =>
  (input: CallArguments): Value =>
    value(`${name}(CAST(${numberArgument(input, 0)} AS DOUBLE))`, FLOAT64)
/** ClickHouse has not a number where the engine has an error. */
const floatWithin =
  (name: string, isOutside: (x: string) => string) =>
  (input: CallArguments): Value => {
    const x = `CAST(${numberArgument(input, 0)} AS DOUBLE)`
    return value(`(CASE WHEN ${isOutside(x)} THEN CAST('nan' AS DOUBLE) ELSE ${name}(${x}) END)`, FLOAT64)
  }
const float2 =
  (name: string) =>
  (input: CallArguments): Value =>
    value(`${name}(CAST(${numberArgument(input, 0)} AS DOUBLE), CAST(${numberArgument(input, 1)} AS DOUBLE))`, FLOAT64)

/** The logarithm of 0 is -inf, that of a negative number is not a number. */
const logarithm =
  (name: string) =>
  (input: CallArguments): Value => {
    const x = `CAST(${numberArgument(input, 0)} AS DOUBLE)`
    return value(
      `(CASE WHEN ${x} > 0 THEN ${name}(${x}) WHEN ${x} = 0 THEN CAST('-inf' AS DOUBLE) WHEN ${x} < 0 THEN CAST('nan' AS DOUBLE) END)`,
      FLOAT64,
    )
  }

/** greatest and least: of one type, the common one. */
function extreme(name: 'greatest' | 'least', input: CallArguments): Value {
  const type = supertype(input.args.map((each) => plain(each.type)))
  if (type === undefined) throw input.fail('takes arguments of one type')
  const parts = input.args.map((each) =>
    isNumber(type)
      ? `CAST(${numberSql(each)} AS ${duckType(type)})`
      : zoneOf(type) === undefined
        ? plainSql(each)
        : convert(each, type),
  )
  return value(`${name}(${parts.join(', ')})`, type)
}

export const NUMBER_FUNCTIONS: readonly FunctionDefinition[] = [
  define('plus', 2, plus),
  define('minus', 2, minus),
  define('multiply', 2, (input) => arithmetic('*', input)),
  define('divide', 2, divide),
  define('intDiv', 2, (input) => intDiv(input)),
  define('intDivOrZero', 2, (input) => intDiv(input, true)),
  ...defineAll('modulo mod', 2, (input) => modulo(input)),
  define('moduloOrZero', 2, (input) => {
    const result = modulo(input, true)
    return value(`coalesce(${result.sql}, CAST(0 AS ${duckType(result.type)}))`, result.type)
  }),
  define('negate', 1, negate),
  define('abs', 1, abs),
  define('sign', 1, (input) => value(`CAST(sign(${numberSql(input.arg(0))}) AS TINYINT)`, int(8, true))),
  define('round', [1, 2], (input) => rounding('round', input)),
  define('roundBankers', [1, 2], (input) => rounding('bankers', input)),
  define('floor', [1, 2], (input) => rounding('floor', input)),
  ...defineAll('ceil ceiling', [1, 2], (input) => rounding('ceil', input)),
  ...defineAll('trunc truncate', [1, 2], (input) => rounding('trunc', input)),
  define(
    'sqrt',
    1,
    floatWithin('sqrt', (x) => `${x} < 0`),
  ),
  ...['asin', 'acos'].map((name) =>
    define(
      name,
      1,
      floatWithin(name, (x) => `abs(${x}) > 1`),
    ),
  ),
  ...'cbrt exp sin cos tan atan sinh cosh tanh degrees radians'.split(' ').map((name) => define(name, 1, float(name))),
  ...defineAll('log ln', 1, logarithm('ln')),
  define('log2', 1, logarithm('log2')),
  define('log10', 1, logarithm('log10')),
  define('exp2', 1, (input) => value(`pow(CAST(2 AS DOUBLE), CAST(${numberSql(input.arg(0))} AS DOUBLE))`, FLOAT64)),
  define('exp10', 1, (input) => value(`pow(CAST(10 AS DOUBLE), CAST(${numberSql(input.arg(0))} AS DOUBLE))`, FLOAT64)),
  ...defineAll('pow power', 2, float2('pow')),
  define('atan2', 2, float2('atan2')),
  define('pi', 0, () => value('pi()', FLOAT64)),
  define('e', 0, () => value('exp(CAST(1 AS DOUBLE))', FLOAT64)),
  define('greatest', [1, 100], (input) => extreme('greatest', input)),
  define('least', [1, 100], (input) => extreme('least', input)),
  define('max2', 2, float2('greatest')),
  define('min2', 2, float2('least')),
  define('gcd', 2, (input) =>
    value(
      `CAST(gcd(CAST(${numberSql(input.arg(0))} AS HUGEINT), CAST(${numberSql(input.arg(1))} AS HUGEINT)) AS ${duckType(arithmeticType(input.arg(0).type, input.arg(1).type, false, input))})`,
      arithmeticType(input.arg(0).type, input.arg(1).type, false, input),
    ),
  ),
  define('lcm', 2, (input) =>
    value(
      `CAST(lcm(CAST(${numberSql(input.arg(0))} AS HUGEINT), CAST(${numberSql(input.arg(1))} AS HUGEINT)) AS ${duckType(arithmeticType(input.arg(0).type, input.arg(1).type, false, input))})`,
      arithmeticType(input.arg(0).type, input.arg(1).type, false, input),
    ),
  ),
  define('isNaN', 1, (input) => condition(`isnan(CAST(${numberSql(input.arg(0))} AS DOUBLE))`)),
  define('isInfinite', 1, (input) => condition(`isinf(CAST(${numberSql(input.arg(0))} AS DOUBLE))`)),
  define('isFinite', 1, (input) => condition(`isfinite(CAST(${numberSql(input.arg(0))} AS DOUBLE))`)),
  define('ifNotFinite', 2, (input) =>
    value(
      `(CASE WHEN isfinite(CAST(${numberSql(input.arg(0))} AS DOUBLE)) THEN CAST(${numberSql(input.arg(0))} AS DOUBLE) ELSE CAST(${numberSql(input.arg(1))} AS DOUBLE) END)`,
      FLOAT64,
    ),
  ),
  ...defineAll('width_bucket widthBucket', 4, (input) => {
    const [x, low, high, count] = [0, 1, 2, 3].map((at) => `CAST(${numberSql(input.arg(at))} AS DOUBLE)`)
    return value(
      `CAST(CASE WHEN ${x} < ${low} THEN 0 WHEN ${x} >= ${high} THEN ${count} + 1 ELSE floor((${x} - ${low}) * ${count} / (${high} - ${low})) + 1 END AS USMALLINT)`,
      UINT16,
    )
  }),
  define('not', 1, (input) => {
    const a = input.arg(0)
    return {
      ...condition(`(NOT ${conditionSql(a)})`),
      ...(a.type.kind === 'bool' ? { type: plain(a.type), isCondition: false } : {}),
    }
  }),
  define('xor', [2, 100], (input) =>
    condition(input.args.map(conditionSql).reduce((sql, each) => `(${sql} <> ${each})`)),
  ),
  ...(['and', 'or'] as const).map((name) =>
    define(
      name,
      [2, 1000],
      (input) => {
        const sql = `(${input.args.map(conditionSql).join(` ${name.toUpperCase()} `)})`
        const isNullable = input.args.some(({ type }) => type.isNullable === true)
        const isBool = input.args.some(({ type }) => type.kind === 'bool')
        const type: Type = isBool ? { kind: 'bool' } : UINT8
        return { sql, type: isNullable ? nullable(type) : type, isCondition: !isBool }
      },
      { lowCardinality: false, nulls: false },
    ),
  ),
  define('factorial', 1, (input) => uint64Value(`factorial(CAST(${numberSql(input.arg(0))} AS INTEGER))`)),
]
