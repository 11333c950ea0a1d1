import { arrayOf, asInt, defaultOf, duckType, FLOAT64, int, nullable, plain, type Type, UINT64 } from '../types.ts'
import { constantNumber, numberSql, plainSql, type Value, value } from '../value.ts'
import {
  type AggregateDefinition,
  type AggregateInput,
  defineAggregate,
  filled,
  floating,
  levels,
  sortedValues,
} from './aggregates.ts'
import { bound } from './definition.ts'
import { LIST_LENGTH_MAX, ofShortList } from './list-length.ts'

/** Moments, regressions, and quantiles by other rules than those of quantile and quantileExact. */

const double = (given: Value): string => `CAST(${numberSql(given)} AS DOUBLE)`

/** Sums of powers, as ClickHouse keeps them; `formula` makes the result out of them. */
function moments(input: AggregateInput, formula: (m: (power: number) => string) => string): Value {
  const x = double(input.arg(0))
  const m = (power: number): string =>
    power === 0
      ? `CAST(${input.engine('count', x)} AS DOUBLE)`
      : input.engine('sum', Array.from({ length: power }, () => x).join(' * '))
  return floating(formula(m), input)
}

const variance = (m: (power: number) => string, isSample: boolean): string =>
  `((${m(2)} - ${m(1)} * ${m(1)} / ${m(0)}) / (${m(0)}${isSample ? ' - 1' : ''}))`
const third = (m: (power: number) => string): string =>
  `((${m(3)} - (3 * ${m(2)} - 2 * ${m(1)} * ${m(1)} / ${m(0)}) * ${m(1)} / ${m(0)}) / ${m(0)})`
const fourth = (m: (power: number) => string): string =>
  `((${m(4)} - (4 * ${m(3)} - (6 * ${m(2)} - 3 * ${m(1)} * ${m(1)} / ${m(0)}) * ${m(1)} / ${m(0)}) * ${m(1)} / ${m(0)}) / ${m(0)})`

const skew = (isSample: boolean) => (input: AggregateInput) =>
  moments(input, (m) => `(${third(m)} / pow(${variance(m, isSample)}, 1.5))`)
const kurtosis = (isSample: boolean) => (input: AggregateInput) =>
  moments(input, (m) => `(${fourth(m)} / pow(${variance(m, isSample)}, 2))`)

/** Slope and intercept of the line through the points. */
function regression(input: AggregateInput): Value {
  const [x, y] = [double(input.arg(0)), double(input.arg(1))]
  const nan = "CAST('nan' AS DOUBLE)"
  return value(
    `struct_pack("1" := coalesce(${input.engine('regr_slope', `${y}, ${x}`)}, ${nan}), "2" := coalesce(${input.engine('regr_intercept', `${y}, ${x}`)}, ${nan}))`,
    { kind: 'tuple', items: [FLOAT64, FLOAT64], names: ['k', 'b'] },
  )
}

const sorted = (input: AggregateInput): string => sortedValues(input, plainSql(input.arg(0)))

/** The value at an index of the sorted values. */
function at(input: AggregateInput, index: (list: string, level: number) => string): Value {
  const [level = 0.5] = levels(input)
  const made = bound(input, sorted(input), (list) => `list_extract(${list}, ${index(list, level)})`)
  return filled(made, plain(input.arg(0).type), input)
}

const high = (list: string, level: number): string =>
  level === 0.5
    ? `CAST(len(${list}) // 2 + 1 AS BIGINT)`
    : `CAST(least(floor(${level} * len(${list})), len(${list}) - 1) AS BIGINT) + 1`

/** Interpolated between two values: at level × (n + 1), or at level × (n - 1) + 1. */
function interpolated(input: AggregateInput, level: number): string {
  return bound(input, `list_transform(${sorted(input)}, lambda e_: CAST(e_ AS DOUBLE))`, (list) => {
    const place = `(${level} * (len(${list}) + 1))`
    const below = `CAST(floor(${place}) AS BIGINT)`
    const item = (sql: string): string => `list_extract(${list}, ${sql})`
    return `CASE WHEN ${place} < 1 THEN ${item('1')} WHEN ${place} >= len(${list}) THEN ${item(`len(${list})`)} ELSE ${item(below)} + (${place} - ${below}) * (${item(`${below} + 1`)} - ${item(below)}) END`
  })
}

/** The first value at which the running sum of weights reaches the level: one pass, which keeps the value until then and the sum. */
function weighted(input: AggregateInput, level: number): string {
  const all = input.engine(
    'list',
    `struct_pack(v := ${plainSql(input.arg(0))}, w := CAST(${numberSql(input.arg(1))} AS HUGEINT))`,
  )
  const pairs = `list_sort(list_filter(${all}, lambda p_: struct_extract(p_, 'v') IS NOT NULL))`
  return bound(input, pairs, (list) =>
    bound(input, `${level} * list_sum(list_transform(${list}, lambda p_: struct_extract(p_, 'w')))`, (wanted) => {
      const next = "struct_pack(v := struct_extract(p_, 'v'), w := struct_extract(a_, 'w') + struct_extract(p_, 'w'))"
      const reached = `list_reduce(${list}, lambda a_, p_: CASE WHEN struct_extract(a_, 'w') >= ${wanted} THEN a_ ELSE ${next} END)`
      const found = `(CASE WHEN len(${list}) > 0 THEN struct_extract(${reached}, 'v') END)`
      return ofShortList(input, list, found, LIST_LENGTH_MAX)
    }),
  )
}

function single(input: AggregateInput): Value {
  const of = input.arg(0)
  const sql = plainSql(of)
  return value(
    `(CASE WHEN ${input.engine('count', sql, true)} = 1 THEN ${input.engine('any_value', sql)} END)`,
    nullable(plain(of.type)),
  )
}

function sumCount(input: AggregateInput): Value {
  const whole = asInt(input.arg(0).type)
  const type: Type = whole === undefined ? FLOAT64 : int(64, whole.isSigned)
  const sum = `coalesce(CAST(${input.engine('sum', numberSql(input.arg(0)))} AS ${duckType(type)}), ${defaultOf(type)})`
  return value(
    `struct_pack("1" := ${sum}, "2" := CAST(${input.engine('count', numberSql(input.arg(0)))} AS UBIGINT))`,
    { kind: 'tuple', items: [type, UINT64] },
  )
}

/** The most of the intervals from the first to the second argument that have a point in common. */
function intersections(input: AggregateInput): Value {
  const pairs = `coalesce(${input.engine('list', `struct_pack(a := CAST(${numberSql(input.arg(0))} AS HUGEINT), b := CAST(${numberSql(input.arg(1))} AS HUGEINT))`)}, [])`
  return value(
    bound(
      input,
      pairs,
      (list) =>
        `CAST(coalesce(list_max(list_transform(${ofShortList(input, list, list)}, lambda p_: len(list_filter(${list}, lambda q_: struct_extract(q_, 'a') <= struct_extract(p_, 'a') AND struct_extract(p_, 'a') < struct_extract(q_, 'b'))))), 0) AS UBIGINT)`,
    ),
    UINT64,
  )
}

/** The sum of each value and those before it, of at most as many as the window has. */
function movingSum(input: AggregateInput): {
  readonly sql: string
  readonly window: number | undefined
  readonly type: Type
} {
  const window = constantNumber(input.parameters[0])
  if (input.parameters.length > 0 && (window === undefined || window < 1 || !Number.isInteger(window)))
    throw input.fail('takes a window of a whole number above 0')
  const whole = asInt(input.arg(0).type)
  const type: Type = whole === undefined ? FLOAT64 : int(64, whole.isSigned)
  const from = window === undefined ? '1' : `greatest(1, i_ - ${window - 1})`
  const all = `coalesce(${input.engine('list', numberSql(input.arg(0)))}, [])`
  const sql = bound(input, all, (list) =>
    ofShortList(
      input,
      list,
      `list_transform(${list}, lambda e_, i_: CAST(list_sum(list_slice(${list}, ${from}, i_)) AS ${duckType(type)}))`,
    ),
  )
  return { sql, window, type }
}

function uniqUpTo(input: AggregateInput): Value {
  const max = constantNumber(input.parameters[0])
  if (max === undefined || max < 1 || max > 100) throw input.wrongType('takes a number up to 100')
  return value(`CAST(least(${input.engine('count', plainSql(input.arg(0)), true)}, ${max + 1}) AS UBIGINT)`, UINT64)
}

/** For each condition whether a row fulfils it and another one fulfils the first. */
function retention(input: AggregateInput): Value {
  const held = input.args.map((each) => input.engine('max', `CAST(${numberSql(each)} AS UTINYINT)`))
  const flags = held.map((each) => `coalesce(${held[0]} * ${each}, CAST(0 AS UTINYINT))`)
  return value(`CAST([${flags.join(', ')}] AS UTINYINT[])`, arrayOf(int(8, false)))
}

const each = (input: AggregateInput, of: (level: number) => string, type: Type): Value => {
  const list = levels(input)
  if (list.length === 0) throw input.fail('takes at least one level')
  return value(`[${list.map((level) => `coalesce(${of(level)}, ${defaultOf(type)})`).join(', ')}]`, arrayOf(type))
}

export const STATISTICS: readonly AggregateDefinition[] = [
  ...defineAggregate('skewPop', 1, skew(false), 0, false),
  ...defineAggregate('skewSamp', 1, skew(true), 0, false),
  ...defineAggregate('kurtPop', 1, kurtosis(false), 0, false),
  ...defineAggregate('kurtSamp', 1, kurtosis(true), 0, false),
  ...defineAggregate('simpleLinearRegression', 2, regression),
  ...defineAggregate('quantileExactHigh medianExactHigh', 1, (input) => at(input, high), 1),
  ...defineAggregate(
    'quantileExactExclusive',
    1,
    (input) => floating(interpolated(input, levels(input)[0] ?? 0.5), input),
    1,
  ),
  ...defineAggregate(
    'quantileExactWeighted medianExactWeighted',
    2,
    (input) => filled(weighted(input, levels(input)[0] ?? 0.5), plain(input.arg(0).type), input),
    1,
  ),
  ...defineAggregate(
    'quantilesExactWeighted',
    2,
    (input) => each(input, (level) => weighted(input, level), plain(input.arg(0).type)),
    100,
  ),
  ...defineAggregate('singleValueOrNull', 1, single),
  ...defineAggregate('sumCount', 1, sumCount),
  ...defineAggregate('maxIntersections', 2, intersections),
  ...defineAggregate(
    'groupArrayMovingSum',
    1,
    (input) => value(movingSum(input).sql, arrayOf(movingSum(input).type)),
    1,
    false,
  ),
  ...defineAggregate(
    'groupArrayMovingAvg',
    1,
    (input) => {
      const { sql, window } = movingSum(input)
      if (window === undefined) throw input.fail('takes a window of a whole number above 0')
      return value(`list_transform(${sql}, lambda s_: CAST(s_ AS DOUBLE) / ${window})`, arrayOf(FLOAT64))
    },
    1,
    false,
  ),
  ...defineAggregate('uniqUpTo', 1, uniqUpTo, 1),
  ...defineAggregate('retention', [1, 32], retention),
]
