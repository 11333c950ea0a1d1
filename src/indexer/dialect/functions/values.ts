import { QueryError } from '../../query/error.ts'
import { compareSql, matchSql } from '../not-a-number.ts'
import {
  arrayOf,
  asInt,
  BOOL,
  duckType,
  FLOAT32,
  FLOAT64,
  type IntType,
  int,
  isNumber,
  isTime,
  NOTHING,
  notNull,
  nullable,
  plain,
  supertype,
  type Type,
  tupleOf,
  typeName,
  UNKNOWN,
  zoneOf,
} from '../types.ts'
import {
  condition,
  conditionSql,
  constantNumber,
  constantText,
  convert,
  numberSql,
  plainSql,
  quoteText,
  textMoment,
  toText,
  type Value,
  value,
} from '../value.ts'
import { toNumber } from './cast.ts'
import { decimalSql } from './decimals.ts'
import { type CallArguments, define, defineAll, type FunctionDefinition, stringValue } from './definition.ts'
import { timeIn } from './time/arguments.ts'

/** Both sides in one type, so that the engine compares as ClickHouse does: a text constant becomes a time or a number. */
export function comparable(a: Value, b: Value): readonly [string, string] {
  const [x, y] = [a.type, b.type]
  if (x.kind === 'string' && (isTime(y) || (isNumber(y) && a.isConstant === true))) return [castTo(a, y), plainSql(b)]
  if (y.kind === 'string' && (isTime(x) || (isNumber(x) && b.isConstant === true))) return [plainSql(a), castTo(b, x)]
  if (isTime(x) && asInt(y) !== undefined) return [`epoch(CAST(${a.sql} AS TIMESTAMP))`, numberSql(b)]
  if (isTime(y) && asInt(x) !== undefined) return [numberSql(a), `epoch(CAST(${b.sql} AS TIMESTAMP))`]
  if (a.isBytes === true || b.isBytes === true)
    return [a.isBytes === true ? a.sql : `encode(${a.sql})`, b.isBytes === true ? b.sql : `encode(${b.sql})`]
  if (isNumber(x) && isNumber(y)) return [numberSql(a), numberSql(b)]
  // A date begins at midnight of the zone.
  if (x.kind === 'date' && zoneOf(y) !== undefined) return [convert(a, y), plainSql(b)]
  if (y.kind === 'date' && zoneOf(x) !== undefined) return [plainSql(a), convert(b, x)]
  if (x.kind === 'tuple' && y.kind === 'tuple') return comparableTuples([a, x.items], [b, y.items])
  return [plainSql(a), plainSql(b)]
}

type TupleSide = readonly [given: Value, items: readonly Type[]]

/** Tuples of one type if there is one, else element by element. */
function comparableTuples([a, items]: TupleSide, [b, others]: TupleSide): readonly [string, string] {
  const type = supertype([plain(a.type), plain(b.type)])
  if (type !== undefined) return [convert(a, type), convert(b, type)]
  if (items.length !== others.length) return [plainSql(a), plainSql(b)]
  const element = (of: Value, item: Type, at: number): Value => ({
    ...value(`struct_extract(${of.sql}, '${at + 1}')`, item),
    isConstant: of.isConstant ?? false,
  })
  const pairs = items.map((item, at) => comparable(element(a, item, at), element(b, others[at] as Type, at)))
  const packed = (side: 0 | 1): string =>
    `struct_pack(${pairs.map((pair, at) => `"${at + 1}" := ${pair[side]}`).join(', ')})`
  return [packed(0), packed(1)]
}

function castTo(given: Value, type: Type): string {
  if (type.kind === 'int') return wholeSql(given, type)
  if (type.kind === 'datetime' || type.kind === 'datetime64') return textMoment(given, zoneOf(type))
  return `CAST(${given.sql} AS ${isNumber(type) ? 'DOUBLE' : duckType(type)})`
}

const HUGE: IntType = { kind: 'int', bits: 128, isSigned: true }
/** Characters of the longest whole number of 128 bits, with its sign. */
const WHOLE_DIGITS_MAX = 40

/** A text as a whole number to compare with numbers of a type: exactly, also where it is out of the range of the type. */
function wholeSql(given: Value, type: IntType): string {
  const text = constantText(given)
  if (text === undefined) return toNumber(given, HUGE, 'CAST')
  if (!/^[+-]?\d+$/.test(text))
    throw new QueryError('TYPE_MISMATCH', `Cannot convert a text to ${typeName(type)}, with which it is compared.`)
  const digits = text.replace(/^([+-]?)0+(?=\d)/, '$1').replace('+', '')
  // More digits than any whole number has; reading them all would take long.
  const number = digits.length > WHOLE_DIGITS_MAX ? undefined : BigInt(digits)
  const fitting = [type, HUGE].find((each) => number !== undefined && isInRange(number, each))
  return `CAST(${given.sql} AS ${fitting === undefined ? 'DOUBLE' : duckType(fitting)})`
}

function isInRange(number: bigint, { bits, isSigned }: IntType): boolean {
  const half = isSigned ? 2n ** BigInt(bits - 1) : 0n
  return number >= -half && number < 2n ** BigInt(bits) - half
}

const COMPARISONS: Readonly<Record<string, string>> = {
  equals: '=',
  notEquals: '<>',
  less: '<',
  greater: '>',
  lessOrEquals: '<=',
  greaterOrEquals: '>=',
  isNotDistinctFrom: 'IS NOT DISTINCT FROM',
  isDistinctFrom: 'IS DISTINCT FROM',
}

function compare(input: CallArguments, operator: string): Value {
  const [a, b] = [input.arg(0), input.arg(1)]
  const isMixed =
    (a.type.kind === 'string' && isNumber(b.type) && a.isConstant !== true) ||
    (b.type.kind === 'string' && isNumber(a.type) && b.isConstant !== true)
  if (isMixed) throw input.noCommonType(`cannot compare ${typeName(a.type)} and ${typeName(b.type)}`)
  const notNumber = [
    [a, b],
    [b, a],
  ].find(([text, other]) => isNumber((other as Value).type) && isOtherText(constantText(text)))
  if (notNumber !== undefined)
    throw new QueryError(
      'TYPE_MISMATCH',
      `Cannot convert the text at position ${input.at} to ${typeName((notNumber[1] as Value).type)}: function ${input.name} compares it with a number.`,
    )
  const [x, y] = comparable(a, b)
  return { ...condition(compareSql(x, operator, y, [a, b])), matchSql: matchSql(x, operator, y, [a, b]) }
}

/** A constant text that is no number. */
function isOtherText(text: string | undefined): boolean {
  return (
    text !== undefined && (text.trim() === '' || Number.isNaN(Number(text))) && !/^(nan|inf|true|false)/i.test(text)
  )
}

/** The common type of the branches of a condition. Strings with and without LowCardinality are String. */
function branchType(values: readonly Value[], input: Pick<CallArguments, 'fail'>): Type {
  const type = supertype(values.map((each) => (each.type.kind === 'string' ? plain(each.type) : each.type)))
  if (type === undefined)
    throw input.fail(`has branches of different types: ${values.map((each) => typeName(each.type)).join(', ')}`)
  return type
}

function multiIf(input: CallArguments): Value {
  if (input.args.length % 2 === 0)
    throw input.fail('takes pairs of a condition and a value, then a value for all other rows')
  const results = input.args.filter((_, at) => at % 2 === 1 || at === input.args.length - 1)
  const type = branchType(results, input)
  const cases: string[] = []
  for (let at = 0; at + 1 < input.args.length; at += 2)
    cases.push(`WHEN ${conditionSql(input.arg(at))} THEN ${convert(input.arg(at + 1), type)}`)
  return value(`(CASE ${cases.join(' ')} ELSE ${convert(input.arg(input.args.length - 1), type)} END)`, type)
}

function caseWithExpression(input: CallArguments): Value {
  const [subject, ...rest] = input.args
  if (subject === undefined || rest.length % 2 === 0) throw input.fail('takes a value, pairs and a default')
  input.countCopies(subject.sql, rest.length / 2)
  const results = rest.filter((_, at) => at % 2 === 1 || at === rest.length - 1)
  const type = branchType(results, input)
  const cases: string[] = []
  for (let at = 0; at + 1 < rest.length; at += 2) {
    const when = rest[at] as Value
    const [x, y] = comparable(subject, when)
    cases.push(`WHEN ${compareSql(x, '=', y, [subject, when])} THEN ${convert(rest[at + 1] as Value, type)}`)
  }
  return value(`(CASE ${cases.join(' ')} ELSE ${convert(rest.at(-1) as Value, type)} END)`, type)
}

function coalesce(input: CallArguments): Value {
  const type = supertype(input.args.map((each) => each.type)) ?? branchType(input.args, input)
  const isNull = input.args.every((each) => each.type.isNullable === true)
  const result = isNull ? nullable(type) : notNull(type)
  return value(`coalesce(${input.args.map((each) => convert(each, result)).join(', ')})`, result)
}

/** Replaces values by the value at the same place of a second list. */
function transform(input: CallArguments): Value {
  const [x, from, to] = [input.arg(0), input.arg(1), input.arg(2)]
  if (from.type.kind !== 'array' || to.type.kind !== 'array')
    throw input.fail('takes a value, two arrays and a default')
  const fallback = input.args.length > 3 ? input.arg(3) : x
  const type = supertype([plain(to.type.of), plain(fallback.type)])
  if (type === undefined) throw input.fail('takes results of one type')
  const key = supertype([plain(x.type), plain(from.type.of)])
  if (key === undefined) throw input.fail('takes keys of the type of the value')
  const place = `list_position(${convert(from, arrayOf(key))}, ${convert(x, key)})`
  const found = value(`list_extract(${to.sql}, ${place})`, to.type.of)
  return value(
    `(CASE WHEN coalesce(${place}, 0) > 0 THEN ${convert(found, type)} ELSE ${convert(fallback, type)} END)`,
    type,
  )
}

const NUMBERS: readonly (readonly [string, Type])[] = [
  ...[8, 16, 32, 64, 128].flatMap((bits) => [
    [`UInt${bits}`, int(bits, false)] as const,
    [`Int${bits}`, int(bits, true)] as const,
  ]),
  ['Float32', FLOAT32],
  ['Float64', FLOAT64],
]

const conversions = NUMBERS.flatMap(([name, type]) => [
  define(`to${name}`, 1, (input) => value(toNumber(input.arg(0), type, 'CAST'), type)),
  define(`to${name}OrZero`, 1, (input) =>
    value(`coalesce(${toNumber(input.arg(0), type, 'TRY_CAST')}, CAST(0 AS ${duckType(type)}))`, type),
  ),
  define(`to${name}OrNull`, 1, (input) => value(toNumber(input.arg(0), type, 'TRY_CAST'), nullable(type)), {
    nulls: false,
  }),
  define(`to${name}OrDefault`, [1, 2], (input) =>
    value(
      `coalesce(${toNumber(input.arg(0), type, 'TRY_CAST')}, ${input.args.length > 1 ? toNumber(input.arg(1), type, 'CAST') : `CAST(0 AS ${duckType(type)})`})`,
      type,
    ),
  ),
])

const decimal = (name: string, precision: number): FunctionDefinition =>
  define(name, 2, (input) => {
    const scale = constantNumber(input.arg(1))
    if (scale === undefined || scale < 0 || scale > precision)
      throw input.fail(`takes a constant scale up to ${precision}`)
    const type = { kind: 'decimal', precision, scale } as const
    return value(decimalSql(input.arg(0), type), type)
  })

export const VALUE_FUNCTIONS: readonly FunctionDefinition[] = [
  ...Object.entries(COMPARISONS).map(([name, operator]) =>
    define(name, 2, (input) => compare(input, operator), { nulls: !name.endsWith('DistinctFrom') }),
  ),
  define('if', 3, multiIf, { lowCardinality: false, nulls: false }),
  define('multiIf', [3, 1001], multiIf, { lowCardinality: false, nulls: false }),
  define('caseWithExpression', [4, 1002], caseWithExpression, { nulls: false }),
  define('coalesce', [1, 100], coalesce, { nulls: false, lowCardinality: false }),
  define('ifNull', 2, coalesce, { nulls: false, lowCardinality: false }),
  define(
    'nullIf',
    2,
    (input) => {
      const [x, y] = comparable(input.arg(0), input.arg(1))
      return value(
        `(CASE WHEN ${compareSql(x, '=', y, [input.arg(0), input.arg(1)])} THEN NULL ELSE ${plainSql(input.arg(0))} END)`,
        nullable(plain(input.arg(0).type)),
      )
    },
    { nulls: false },
  ),
  define('isNull', 1, (input) => condition(`(${plainSql(input.arg(0))} IS NULL)`), { nulls: false }),
  define('isNotNull', 1, (input) => condition(`(${plainSql(input.arg(0))} IS NOT NULL)`), { nulls: false }),
  define('isZeroOrNull', 1, (input) => condition(`(coalesce(${numberSql(input.arg(0))}, 0) = 0)`), { nulls: false }),
  define('assumeNotNull', 1, (input) => ({ ...input.arg(0), type: notNull(input.arg(0).type) }), { nulls: false }),
  define('toNullable', 1, (input) => ({ ...input.arg(0), type: nullable(input.arg(0).type) }), { nulls: false }),
  define('transform', [3, 4], transform),
  ...conversions,
  decimal('toDecimal32', 9),
  decimal('toDecimal64', 18),
  decimal('toDecimal128', 38),
  define('toString', [1, 2], (input) => {
    if (input.args.length > 1) return stringValue(toText(timeIn(input, 1)))
    const given = input.arg(0)
    return given.type.kind === 'string' ? { ...given, type: plain(given.type) } : stringValue(toText(given))
  }),
  define('toBool', 1, (input) => ({
    ...value(
      input.arg(0).type.kind === 'string' ? `CAST(${input.arg(0).sql} AS BOOLEAN)` : conditionSql(input.arg(0)),
      BOOL,
    ),
  })),
  define('toTypeName', 1, (input) => stringValue(quoteText(typeName(input.arg(0).type))), {
    lowCardinality: false,
    nulls: false,
  }),
  ...defineAll('identity materialize', 1, (input) => ({ ...input.arg(0), isConstant: false, constant: undefined }), {
    lowCardinality: false,
    nulls: false,
  }),
  define('ignore', [0, 100], () => value('CAST(0 AS UTINYINT)', int(8, false)), {
    lowCardinality: false,
    nulls: false,
  }),
  define('generateUUIDv4', 0, () => value('uuid()', { kind: 'uuid' })),
  define('rand', 0, () => value('CAST(floor(random() * 4294967296) AS UINTEGER)', int(32, false))),
  ...defineAll('randCanonical', 0, () => value('random()', FLOAT64)),
  define(
    'tuple',
    [1, 100],
    (input) =>
      value(
        `struct_pack(${input.args.map((each, at) => `"${at + 1}" := ${plainSql(each)}`).join(', ')})`,
        tupleOf(input.args.map((each) => plain(each.type))),
      ),
    { lowCardinality: false, nulls: false },
  ),
  define(
    'tupleElement',
    2,
    (input) => {
      const of = input.arg(0)
      if (of.type.kind === 'array' && of.type.of.kind === 'tuple') {
        const inner = elementOf({
          ...input,
          arg: (at) => (at === 0 ? value('e_', (of.type as { of: Type }).of) : input.arg(at)),
        })
        return value(`list_transform(${of.sql}, lambda e_: ${inner.sql})`, arrayOf(inner.type))
      }
      return elementOf(input)
    },
    { nulls: false },
  ),
]

/** An element of a tuple by its number or name. */
function elementOf(input: CallArguments): Value {
  const of = input.arg(0)
  if (of.type.kind === 'unknown') return value(`struct_extract(${of.sql}, ${input.arg(1).sql})`, UNKNOWN)
  if (of.type.kind !== 'tuple') throw input.wrongType('takes a tuple')
  const name = constantText(input.arg(1))
  const at = name === undefined ? constantNumber(input.arg(1)) : (of.type.names?.indexOf(name) ?? -1) + 1
  const type = at === undefined ? undefined : of.type.items[at - 1]
  if (type === undefined) throw input.outOfBound('has no element with this number or name')
  return value(`struct_extract(${of.sql}, '${at}')`, type)
}

export const NULL_VALUE: Value = { sql: 'NULL', type: NOTHING, constant: null, isConstant: true }
