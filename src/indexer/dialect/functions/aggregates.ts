import { withoutNaN } from '../not-a-number.ts'
import {
  arrayOf,
  asInt,
  defaultOf,
  duckType,
  FLOAT32,
  FLOAT64,
  int,
  isNumber,
  isTime,
  notNull,
  nullable,
  plain,
  STRING,
  type Type,
  UINT64,
  UNKNOWN,
} from '../types.ts'
import { constantNumber, constantText, numberSql, plainSql, quoteText, toText, type Value, value } from '../value.ts'
import { bound, type CallArguments } from './definition.ts'
import { ofFewReads } from './list-length.ts'

/** What an aggregate function gets for one call. */
export type AggregateInput = CallArguments & {
  readonly parameters: readonly Value[]
  readonly isDistinct: boolean
  /** Whether there may be no rows: without GROUP BY, or with a condition. */
  readonly mayBeEmpty: boolean
  /** A call of the engine, with the condition and the window of this call; with its DISTINCT unless `isDistinct` is given. */
  engine(name: string, args: string, isDistinct?: boolean): string
}

export type AggregateDefinition = {
  readonly name: string
  readonly argsMin: number
  readonly argsMax: number
  readonly parametersMax: number
  /** Whether DISTINCT can be computed: not where the engine gets a product of the arguments, or the order of the rows counts. */
  readonly takesDistinct: boolean
  compile(input: AggregateInput): Value
}

export function defineAggregate(
  names: string,
  args: number | readonly [number, number],
  compile: (input: AggregateInput) => Value,
  parametersMax = 0,
  takesDistinct = true,
): AggregateDefinition[] {
  const [argsMin, argsMax] = typeof args === 'number' ? [args, args] : args
  return names.split(' ').map((name) => ({ name, argsMin, argsMax, parametersMax, takesDistinct, compile }))
}

/** ClickHouse returns the default of the type for no rows, the engine NULL. */
export function filled(sql: string, type: Type, input: AggregateInput): Value {
  if (type.kind === 'unknown' || type.isNullable === true || !input.mayBeEmpty) return value(sql, type)
  return value(`coalesce(${sql}, ${defaultOf(type)})`, type)
}

/** Not a number for no rows. */
export function floating(sql: string, input: AggregateInput, type: Type = FLOAT64): Value {
  const cast = `CAST(${sql} AS ${duckType(type)})`
  const isNullable = input.args.some((each) => each.type.isNullable === true)
  return isNullable ? value(cast, nullable(type)) : value(`coalesce(${cast}, CAST('nan' AS ${duckType(type)}))`, type)
}

const resultOf = (given: Value): Type => plain(given.type)
const double = (given: Value): string => `CAST(${numberSql(given)} AS DOUBLE)`

function sum(input: AggregateInput): Value {
  const given = input.arg(0)
  const { type } = given
  if (type.kind === 'unknown') return value(input.engine('sum', plainSql(given)), UNKNOWN)
  const whole = asInt(type)
  const result: Type =
    whole !== undefined
      ? int(Math.max(64, whole.bits), whole.isSigned)
      : type.kind === 'decimal'
        ? { kind: 'decimal', precision: 38, scale: type.scale }
        : FLOAT64
  if (whole === undefined && type.kind !== 'float' && type.kind !== 'decimal') throw input.wrongType('takes numbers')
  const sql = `CAST(${input.engine('sum', numberSql(given))} AS ${duckType(result)})`
  return filled(sql, type.isNullable === true ? nullable(result) : result, input)
}

/** A sum in the type of the numbers: whole numbers begin again at the other end of their range. */
function sumWithOverflow(input: AggregateInput): Value {
  const whole = asInt(input.arg(0).type)
  if (whole === undefined) return sum(input)
  const type = int(whole.bits, whole.isSigned)
  const [range, half] = [2n ** BigInt(whole.bits), whole.isSigned ? 2n ** BigInt(whole.bits - 1) : 0n]
  const total = `CAST(coalesce(${input.engine('sum', numberSql(input.arg(0)))}, 0) AS HUGEINT)`
  if (whole.bits > 64) throw input.fail('takes numbers of at most 64 bits')
  return value(`CAST(((${total} + ${half}) % ${range} + ${range}) % ${range} - ${half} AS ${duckType(type)})`, type)
}

function count(input: AggregateInput): Value {
  const [given] = input.args
  if (given === undefined) {
    if (input.isDistinct) throw input.fail('takes columns after DISTINCT, not *')
    return value(`CAST(${input.engine('count', '*')} AS UBIGINT)`, UINT64)
  }
  if (input.isDistinct) return distinct(input)
  return value(`CAST(${input.engine('count', plainSql(given))} AS UBIGINT)`, UINT64)
}

function distinct(input: AggregateInput): Value {
  const of =
    input.args.length === 1
      ? plainSql(input.arg(0))
      : `struct_pack(${input.args.map((each, at) => `"${at + 1}" := ${plainSql(each)}`).join(', ')})`
  return value(`CAST(${input.engine('count', of, true)} AS UBIGINT)`, UINT64)
}

const same =
  (engine: string) =>
  (input: AggregateInput): Value => {
    const given = input.arg(0)
    return { ...filled(input.engine(engine, plainSql(given)), resultOf(given), input), isBytes: given.isBytes ?? false }
  }

/** The largest value; not a number only where there is no other. */
function largest(input: AggregateInput): Value {
  const given = input.arg(0)
  if (given.type.kind !== 'float') return same('max')(input)
  const sql = `coalesce(${input.engine('max', withoutNaN(given.sql))}, ${input.engine('max', given.sql)})`
  return filled(sql, resultOf(given), input)
}

const CONDITION = ' FILTER (WHERE '

/** The last value that is not NULL. */
function last(input: AggregateInput): Value {
  const given = input.arg(0)
  if (given.type.isNullable !== true) return same('last')(input)
  const of = plainSql(given)
  const rest = input.engine('last', of, false).slice(`last(${of})`.length)
  // The engine takes IGNORE NULLS only with a window, and a condition only without one.
  const sql = rest.startsWith(CONDITION)
    ? `last(${of})${CONDITION}${of} IS NOT NULL AND ${rest.slice(CONDITION.length)}`
    : rest === ''
      ? `last(${of})${CONDITION}${of} IS NOT NULL)`
      : `last(${of} IGNORE NULLS)${rest}`
  return { ...filled(sql, resultOf(given), input), isBytes: given.isBytes ?? false }
}

const argument =
  (engine: 'arg_max' | 'arg_min') =>
  (input: AggregateInput): Value => {
    const [of, by] = [plainSql(input.arg(0)), plainSql(input.arg(1))]
    const plainly = input.engine(engine, `${of}, ${by}`)
    const isLargest = engine === 'arg_max' && input.arg(1).type.kind === 'float'
    return filled(
      isLargest ? `coalesce(${input.engine(engine, `${of}, ${withoutNaN(by)}`)}, ${plainly})` : plainly,
      input.arg(1).type.isNullable === true ? nullable(resultOf(input.arg(0))) : resultOf(input.arg(0)),
      input,
    )
  }

export function levels(input: AggregateInput): readonly number[] {
  const given = input.parameters.map(constantNumber)
  if (given.some((level) => level === undefined || level < 0 || level > 1))
    throw input.fail('takes levels between 0 and 1')
  return given as number[]
}

/** Interpolated between two values. */
function quantile(input: AggregateInput, type: Type = FLOAT64): Value {
  const [level = 0.5] = levels(input)
  const given = input.arg(0)
  if (isTime(given.type)) return filled(input.engine('quantile_disc', `${given.sql}, ${level}`), resultOf(given), input)
  return floating(input.engine('quantile_cont', `${double(given)}, ${level}`), input, type)
}

/** All values in their order, without NULL. */
export function sortedValues(input: AggregateInput, sql: string): string {
  const all = input.engine('list', sql)
  const isNullable = input.arg(0).type.isNullable === true
  return `list_sort(${isNullable ? `list_filter(${all}, lambda e_: e_ IS NOT NULL)` : all})`
}

/** The value at an index of the sorted values, as ClickHouse counts it. */
function quantileExact(input: AggregateInput, at: (level: number, list: string) => string): Value {
  const [level = 0.5] = levels(input)
  const list = sortedValues(input, plainSql(input.arg(0)))
  return filled(`list_extract(${list}, ${at(level, list)})`, resultOf(input.arg(0)), input)
}

const exactly = (level: number, list: string): string =>
  `CAST(least(floor(${level} * len(${list})), len(${list}) - 1) AS BIGINT) + 1`
const low = (level: number, list: string): string =>
  level === 0.5 ? `CAST((len(${list}) + 1) // 2 AS BIGINT)` : exactly(level, list)

function list(input: AggregateInput, isDistinct: boolean): Value {
  const given = input.arg(0)
  const max = input.parameters.length > 0 ? constantNumber(input.parameters[0]) : undefined
  if (input.parameters.length > 0 && (max === undefined || max < 1))
    throw input.fail('takes a positive number of elements')
  const type = arrayOf(notNull(resultOf(given)))
  const all = `coalesce(${input.engine('list', plainSql(given), isDistinct)}, CAST([] AS ${duckType(type)}))`
  const present = given.type.isNullable === true ? `list_filter(${all}, lambda e_: e_ IS NOT NULL)` : all
  return value(
    max === undefined ? present : `list_slice(${present}, 1, ${max})`,
    given.type.kind === 'unknown' ? UNKNOWN : type,
  )
}

/** The most frequent values, exactly counted; of equally frequent ones the smaller first. */
function topK(input: AggregateInput): Value {
  const max = input.parameters.length > 0 ? constantNumber(input.parameters[0]) : 10
  if (max === undefined || max < 1 || max > 65_536) throw input.wrongType('takes a number of elements up to 65536')
  const given = input.arg(0)
  const entries = `map_entries(${input.engine('histogram', plainSql(given))})`
  const sorted = `list_sort(list_transform(${entries}, lambda e_: struct_pack(n := -CAST(struct_extract(e_, 'value') AS BIGINT), v := struct_extract(e_, 'key'))))`
  return value(
    `coalesce(list_transform(list_slice(${sorted}, 1, ${max}), lambda e_: struct_extract(e_, 'v')), [])`,
    arrayOf(notNull(resultOf(given))),
  )
}

const float1 =
  (engine: string) =>
  (input: AggregateInput): Value =>
    floating(input.engine(engine, double(input.arg(0))), input)
const float2 =
  (engine: string) =>
  (input: AggregateInput): Value =>
    floating(input.engine(engine, `${double(input.arg(0))}, ${double(input.arg(1))}`), input)

function groupConcat(input: AggregateInput): Value {
  const separator = constantText(input.parameters[0]) ?? ''
  const isNullable = input.arg(0).type.isNullable === true
  const type = isNullable ? nullable(STRING) : STRING
  const [, limit] = input.parameters
  if (limit === undefined)
    return filled(input.engine('string_agg', `${toText(input.arg(0))}, ${quoteText(separator)}`), type, input)
  const max = constantNumber(limit)
  if (max === undefined || max < 1 || !Number.isInteger(max)) throw input.fail('takes a positive number of elements')
  const all = input.engine('list', toText(input.arg(0)))
  const texts = isNullable ? `list_filter(${all}, lambda e_: e_ IS NOT NULL)` : all
  const joined = `array_to_string(list_slice(${texts}, 1, ${max}), ${quoteText(separator)})`
  return filled(isNullable ? `(CASE WHEN len(${texts}) > 0 THEN ${joined} END)` : joined, type, input)
}

/** Buckets of equal width between the smallest and the largest value: lower bound, upper bound, number of values. */
function histogram(input: AggregateInput): Value {
  const bins = constantNumber(input.parameters[0])
  if (bins === undefined || bins < 1 || bins > 250 || !Number.isInteger(bins))
    throw input.wrongType('takes a number of buckets up to 250')
  const type = arrayOf({ kind: 'tuple', items: [FLOAT64, FLOAT64, FLOAT64] })
  const made = bound(input, sortedValues(input, double(input.arg(0))), (list) =>
    bound(input, `list_extract(${list}, 1)`, (from) =>
      bound(input, `list_extract(${list}, -1)`, (to) => {
        const edge = (at: string): string => `(${from} + (${to} - ${from}) * ${at} / ${bins})`
        const inside = `len(list_filter(${list}, lambda v_: v_ >= ${edge('b_')} AND (v_ < ${edge('(b_ + 1)')} OR b_ = ${bins - 1})))`
        const bucket = `struct_pack("1" := ${edge('b_')}, "2" := ${edge('(b_ + 1)')}, "3" := CAST(${inside} AS DOUBLE))`
        return ofFewReads(input, list, String(bins), `list_transform(range(0, ${bins}), lambda b_: ${bucket})`)
      }),
    ),
  )
  return value(made, type)
}

export const AGGREGATES: readonly AggregateDefinition[] = [
  ...defineAggregate('count', [0, 10], count),
  ...defineAggregate('sum sumKahan', 1, sum),
  ...defineAggregate('sumWithOverflow', 1, sumWithOverflow),
  ...defineAggregate('avg', 1, (input) => {
    const given = input.arg(0)
    if (!isNumber(given.type) && given.type.kind !== 'unknown' && given.type.kind !== 'nothing')
      throw input.wrongType('takes numbers')
    const sql = given.type.kind === 'decimal' ? double(given) : numberSql(given)
    return floating(input.engine('avg', sql), input)
  }),
  ...defineAggregate('min', 1, same('min')),
  ...defineAggregate('max', 1, largest),
  ...defineAggregate('any any_value first_value', 1, same('any_value')),
  ...defineAggregate('anyLast last_value', 1, last),
  ...defineAggregate('argMax', 2, argument('arg_max')),
  ...defineAggregate('argMin', 2, argument('arg_min')),
  ...defineAggregate('uniq uniqExact uniqHLL12 uniqTheta countDistinct', [1, 10], distinct),
  ...defineAggregate('uniqCombined uniqCombined64', [1, 10], distinct, 1),
  ...defineAggregate('median quantile', 1, (input) => quantile(input), 1),
  ...defineAggregate(
    'quantileTDigest medianTDigest quantileTiming medianTiming quantileBFloat16',
    1,
    (input) => quantile(input, FLOAT32),
    1,
  ),
  ...defineAggregate('quantileExact medianExact', 1, (input) => quantileExact(input, exactly), 1),
  ...defineAggregate('quantileExactLow', 1, (input) => quantileExact(input, low), 1),
  ...defineAggregate('quantileExactInclusive', 1, (input) => quantile(input), 1),
  ...defineAggregate(
    'quantiles quantilesTDigest',
    1,
    (input) => {
      const type = /^quantiles(?!tdigest)/i.test(input.name) ? FLOAT64 : FLOAT32
      const quantiles = levels(input)
      if (quantiles.length === 0) throw input.fail('takes at least one level')
      return value(
        `CAST(coalesce(${input.engine('quantile_cont', `${double(input.arg(0))}, [${quantiles.join(', ')}]`)}, [${quantiles.map(() => "CAST('nan' AS DOUBLE)").join(', ')}]) AS ${duckType(type)}[])`,
        arrayOf(type),
      )
    },
    100,
  ),
  ...defineAggregate(
    'quantilesExact',
    1,
    (input) => {
      const sorted = sortedValues(input, plainSql(input.arg(0)))
      const type = notNull(resultOf(input.arg(0)))
      return value(
        `[${levels(input)
          .map((level) => `coalesce(list_extract(${sorted}, ${exactly(level, sorted)}), ${defaultOf(type)})`)
          .join(', ')}]`,
        arrayOf(type),
      )
    },
    100,
  ),
  ...defineAggregate('stddevPop STDDEV_POP', 1, float1('stddev_pop')),
  ...defineAggregate('stddevSamp STDDEV_SAMP', 1, float1('stddev_samp')),
  ...defineAggregate('varPop VAR_POP', 1, float1('var_pop')),
  ...defineAggregate('varSamp VAR_SAMP', 1, float1('var_samp')),
  ...defineAggregate('corr', 2, float2('corr')),
  ...defineAggregate('covarPop COVAR_POP', 2, float2('covar_pop')),
  ...defineAggregate('covarSamp COVAR_SAMP', 2, float2('covar_samp')),
  ...defineAggregate('entropy', 1, (input) =>
    value(`coalesce(${input.engine('entropy', plainSql(input.arg(0)))}, CAST(0 AS DOUBLE))`, FLOAT64),
  ),
  ...defineAggregate('groupArray array_agg', 1, (input) => list(input, input.isDistinct), 1),
  ...defineAggregate('groupUniqArray', 1, (input) => list(input, true), 1),
  ...defineAggregate(
    'groupArraySorted',
    1,
    (input) => {
      const max = constantNumber(input.parameters[0])
      if (max === undefined) throw input.fail('takes the number of elements')
      const all = list({ ...input, parameters: [] }, input.isDistinct)
      return value(`list_slice(list_sort(${all.sql}), 1, ${max})`, all.type)
    },
    1,
  ),
  ...defineAggregate('topK', 1, topK, 3),
  ...defineAggregate('groupConcat', 1, groupConcat, 2),
  ...defineAggregate('histogram', 1, histogram, 1),
  ...defineAggregate('groupBitAnd BIT_AND', 1, (input) => {
    const made = same('bit_and')({ ...input, mayBeEmpty: false })
    // The result for no rows has all bits set.
    const isFilled = input.mayBeEmpty && made.type.isNullable !== true
    return isFilled ? { ...made, sql: `coalesce(${made.sql}, ~CAST(0 AS ${duckType(made.type)}))` } : made
  }),
  ...defineAggregate('groupBitOr BIT_OR', 1, same('bit_or')),
  ...defineAggregate('groupBitXor BIT_XOR', 1, same('bit_xor')),
  ...defineAggregate(
    'avgWeighted',
    2,
    (input) =>
      floating(
        `(${input.engine('sum', `${double(input.arg(0))} * ${double(input.arg(1))}`)} / ${input.engine('sum', double(input.arg(1)))})`,
        input,
      ),
    0,
    false,
  ),
  ...defineAggregate('boundingRatio', 2, (input) => {
    const [x, y] = [double(input.arg(0)), double(input.arg(1))]
    return floating(
      `((${input.engine('arg_max', `${y}, ${x}`)} - ${input.engine('arg_min', `${y}, ${x}`)}) / (${input.engine('max', x)} - ${input.engine('min', x)}))`,
      input,
    )
  }),
]

/** Window functions that are not aggregates: the name in the engine and the type of the result. */
export const WINDOW_FUNCTIONS: ReadonlyMap<
  string,
  { readonly name: string; readonly engine: string; readonly type: Type | 'same' }
> = new Map(
  (
    [
      ['row_number', 'row_number', UINT64],
      ['rank', 'rank', UINT64],
      ['dense_rank', 'dense_rank', UINT64],
      ['denseRank', 'dense_rank', UINT64],
      ['percent_rank', 'percent_rank', FLOAT64],
      ['percentRank', 'percent_rank', FLOAT64],
      ['cume_dist', 'cume_dist', FLOAT64],
      ['ntile', 'ntile', UINT64],
      ['lag', 'lag', 'same'],
      ['lead', 'lead', 'same'],
      ['lagInFrame', 'lag', 'same'],
      ['leadInFrame', 'lead', 'same'],
      ['nth_value', 'nth_value', 'same'],
    ] as const
  ).map(([name, engine, type]) => [name.toLowerCase(), { name, engine, type }]),
)
