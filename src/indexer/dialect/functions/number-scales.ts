import { asInt, duckType, FLOAT64, int, isNumber, supertype, UINT8, UINT16 } from '../types.ts'
import { numberSql, type Value, value } from '../value.ts'
import { type CallArguments, define, type FunctionDefinition } from './definition.ts'

/** Functions of one number: steps, gamma and other functions of analysis. */

const double = (input: CallArguments, at = 0): string => `CAST(${numberSql(input.arg(at))} AS DOUBLE)`
const float = (name: string, sql: (x: string) => string): FunctionDefinition =>
  define(name, 1, (input) => value(sql(double(input)), FLOAT64))

/** The largest of the steps that is not above the number; the first one below all of them. */
function stepDown(x: string, steps: readonly number[], first: number): string {
  const cases = steps.toReversed().map((step) => `WHEN ${x} >= ${step} THEN ${step}`)
  return `(CASE ${cases.join(' ')} ELSE ${first} END)`
}

const DURATIONS = [1, 10, 30, 60, 120, 180, 240, 300, 600, 1200, 1800, 3600, 7200, 18_000, 36_000]

function roundDown(input: CallArguments): Value {
  const [x, steps] = [input.arg(0), input.arg(1)]
  if (steps.type.kind !== 'array' || !isNumber(steps.type.of) || !isNumber(x.type))
    throw input.wrongType('takes a number and an array of numbers')
  const type = supertype([x.type, steps.type.of])
  if (type === undefined) throw input.wrongType('takes numbers of one type')
  const list = `CAST(${steps.sql} AS ${duckType(type)}[])`
  const below = `list_max(list_filter(${list}, lambda s_: s_ <= ${numberSql(x)}))`
  return value(`CAST(coalesce(${below}, list_min(${list})) AS ${duckType(type)})`, type)
}

export const NUMBER_SCALE_FUNCTIONS: readonly FunctionDefinition[] = [
  define('roundToExp2', 1, (input) => {
    const type = asInt(input.arg(0).type)
    if (type === undefined) throw input.wrongType('takes a whole number')
    const x = `abs(${double(input)})`
    return value(
      `CAST(CASE WHEN ${x} < 1 THEN 0 ELSE sign(${double(input)}) * pow(CAST(2 AS DOUBLE), floor(log2(${x}))) END AS ${duckType(type)})`,
      type,
    )
  }),
  define('roundDuration', 1, (input) => value(`CAST(${stepDown(double(input), DURATIONS, 0)} AS USMALLINT)`, UINT16)),
  define('roundAge', 1, (input) =>
    value(
      `CAST(CASE WHEN ${double(input)} < 1 THEN 0 ELSE ${stepDown(double(input), [18, 25, 35, 45, 55], 17)} END AS UTINYINT)`,
      UINT8,
    ),
  ),
  define('roundDown', 2, roundDown),
  define('positiveModulo', 2, (input) => {
    const [x, y] = [asInt(input.arg(0).type), asInt(input.arg(1).type)]
    if (x === undefined || y === undefined) throw input.wrongType('takes whole numbers')
    const type = int(y.bits, false)
    const [a, b] = [0, 1].map((at) => `CAST(${numberSql(input.arg(at))} AS HUGEINT)`)
    return value(`CAST((${a} % ${b} + abs(${b})) % ${b} AS ${duckType(type)})`, type)
  }),
  define('hypot', 2, (input) => {
    const [x, y] = [double(input), double(input, 1)]
    return value(`sqrt(${x} * ${x} + ${y} * ${y})`, FLOAT64)
  }),
  float('tgamma', (x) => `gamma(${x})`),
  float('lgamma', (x) => `lgamma(${x})`),
  float('sigmoid', (x) => `(1 / (1 + exp(-${x})))`),
  float('asinh', (x) => `asinh(${x})`),
  float('acosh', (x) => `acosh(${x})`),
  float('atanh', (x) => `atanh(${x})`),
  float('log1p', (x) => `ln(1 + ${x})`),
]
