import { arrayOf, asInt, defaultOf, duckType, FLOAT64, int, nullable, supertype, UINT32 } from '../types.ts'
import { condition, conditionSql, convert, numberSql, type Value, value } from '../value.ts'
import { elements, filtered, index, indexSql, items, mapped, sameSizes, sumType } from './arrays.ts'
import { bound, type CallArguments, define, defineAll, type FunctionDefinition } from './definition.ts'
import { ofShortList } from './list-length.ts'

/** Functions of arrays that compare or move elements by their positions. */

/** For each element whether the lambda holds, and the array itself. */
function flagged(input: CallArguments): { readonly flags: string; readonly list: Value } {
  const found = mapped(input)
  if (found === undefined) throw input.wrongType('takes a lambda and an array')
  return {
    flags: `list_transform(${found.list}, lambda ${found.name}: ${conditionSql(found.body)})`,
    list: found.first,
  }
}

/** The elements `count` places further on; `fill` stands where there is none. */
function shifted(input: CallArguments, sign: 1 | -1): Value {
  const of = items(input.arg(0), input)
  const fill = input.args.length > 2 ? convert(input.arg(2), of) : defaultOf(of)
  const step = `(${sign} * CAST(${numberSql(input.arg(1))} AS BIGINT))`
  const sql = bound(input, input.arg(0).sql, (list) => {
    const moved = `list_extract(${list}, i_ + ${step})`
    return `list_transform(${list}, lambda e_, i_: CASE WHEN i_ + ${step} BETWEEN 1 AND len(${list}) THEN ${moved} ELSE ${fill} END)`
  })
  return value(sql, arrayOf(of))
}

function rotated(input: CallArguments, sign: 1 | -1): Value {
  const step = `(${sign} * CAST(${numberSql(input.arg(1))} AS BIGINT))`
  const sql = bound(
    input,
    input.arg(0).sql,
    (list) =>
      `list_transform(${list}, lambda e_, i_: list_extract(${list}, ((i_ - 1 + ${step}) % len(${list}) + len(${list})) % len(${list}) + 1))`,
  )
  return value(sql, arrayOf(items(input.arg(0), input)))
}

/** Elements for which the lambda does not hold are replaced by the nearest one before (or after) for which it does. */
function filledArray(input: CallArguments, isReverse: boolean): Value {
  const { flags, list } = flagged(input)
  const among = isReverse ? `range(i_, len(${list.sql}) + 1)` : 'range(1, i_ + 1)'
  const nearest = isReverse ? 'list_min' : 'list_max'
  const end = isReverse ? `len(${list.sql})` : '1'
  const sql = bound(input, flags, (known) =>
    ofShortList(
      input,
      known,
      `list_transform(${list.sql}, lambda e_, i_: list_extract(${list.sql}, coalesce(${nearest}(list_filter(${among}, lambda j_: list_extract(${known}, j_))), ${end})))`,
    ),
  )
  return value(sql, arrayOf(items(list, input)))
}

/** Parts of an array: a new one begins at (or after) each element for which the lambda holds. */
function parts(input: CallArguments, isReverse: boolean): Value {
  const { flags, list } = flagged(input)
  const shift = isReverse ? 1 : 0
  const sql = bound(input, flags, (known) =>
    bound(
      input,
      `list_filter(range(1, len(${known}) + 1), lambda i_: i_ = 1 OR list_extract(${known}, i_ - ${shift}))`,
      (starts) =>
        `list_transform(${ofShortList(input, known, starts)}, lambda s_, k_: list_slice(${list.sql}, s_, coalesce(list_extract(${starts}, k_ + 1), len(${known}) + 1) - 1))`,
    ),
  )
  return value(sql, arrayOf(arrayOf(items(list, input))))
}

/** Lists of one element type. */
function sameLists(input: CallArguments): { readonly lists: readonly string[]; readonly of: ReturnType<typeof items> } {
  const of = supertype(input.args.map((each) => items(each, input)))
  if (of === undefined) throw input.wrongType('takes arrays of one type')
  return { lists: input.args.map((each) => `CAST(${each.sql} AS ${duckType(of)}[])`), of }
}

/** Every element once, in the order of the first ones. */
function once(input: CallArguments, sql: string): string {
  return bound(input, sql, (list) => `list_filter(${list}, lambda e_, i_: list_position(${list}, e_) = i_)`)
}

function hasSubstr(input: CallArguments): Value {
  const { lists } = sameLists(input)
  const [list = '', part = ''] = lists
  return condition(
    `(len(list_filter(${ofShortList(input, list, `range(1, len(${list}) - len(${part}) + 2)`)}, lambda i_: list_slice(${list}, i_, i_ + len(${part}) - 1) = ${part})) > 0)`,
  )
}

function enumerated(input: CallArguments, isDense: boolean): Value {
  const first = input.arg(0)
  items(first, input)
  const sql = bound(input, first.sql, (list) =>
    isDense
      ? bound(
          input,
          `list_filter(${list}, lambda e_, i_: list_position(${list}, e_) = i_)`,
          (known) => `list_transform(${list}, lambda e_: list_position(${known}, e_))`,
        )
      : ofShortList(
          input,
          list,
          `list_transform(${list}, lambda e_, i_: len(list_filter(list_slice(${list}, 1, i_), lambda f_: f_ IS NOT DISTINCT FROM e_)))`,
        ),
  )
  return value(`CAST(${sql} AS UINTEGER[])`, arrayOf(UINT32))
}

const orNull = (name: string, place: 1 | -1): FunctionDefinition =>
  define(name, [2, 10], (input) => {
    const { sql, of } = filtered(input)
    return value(`list_extract(${sql}, ${place})`, nullable(of))
  })

export const ARRAY_POSITION_FUNCTIONS: readonly FunctionDefinition[] = [
  define('arrayEnumerateUniq', 1, (input) => enumerated(input, false)),
  define('arrayEnumerateDense', 1, (input) => enumerated(input, true)),
  define('arrayLastIndex', [2, 10], (input) => {
    const { flags } = flagged(input)
    return index(
      bound(
        input,
        flags,
        (known) => `list_max(list_filter(range(1, len(${known}) + 1), lambda i_: list_extract(${known}, i_)))`,
      ),
    )
  }),
  orNull('arrayFirstOrNull', 1),
  orNull('arrayLastOrNull', -1),
  define('arrayElementOrNull', 2, (input) =>
    value(`list_extract(${input.arg(0).sql}, ${indexSql(input.arg(1))})`, nullable(items(input.arg(0), input))),
  ),
  define('arrayCumSumNonNegative', [1, 10], (input) => {
    const { sql, of } = elements(input)
    const type = sumType(of)
    return value(
      bound(
        input,
        bound(input, sql, (list) =>
          ofShortList(
            input,
            list,
            `list_transform(range(1, len(${list}) + 1), lambda i_: list_sum(list_slice(${list}, 1, i_)))`,
          ),
        ),
        (known) =>
          `list_transform(${known}, lambda e_, i_: CAST(e_ - least(0, list_min(list_slice(${known}, 1, i_))) AS ${duckType(type)}))`,
      ),
      arrayOf(type),
    )
  }),
  define('arrayShiftLeft', [2, 3], (input) => shifted(input, 1)),
  define('arrayShiftRight', [2, 3], (input) => shifted(input, -1)),
  define('arrayRotateLeft', 2, (input) => rotated(input, 1)),
  define('arrayRotateRight', 2, (input) => rotated(input, -1)),
  define('arrayFill', [2, 10], (input) => filledArray(input, false)),
  define('arrayReverseFill', [2, 10], (input) => filledArray(input, true)),
  define('arraySplit', [2, 10], (input) => parts(input, false)),
  define('arrayReverseSplit', [2, 10], (input) => parts(input, true)),
  define('hasSubstr', 2, hasSubstr),
  define('arrayUnion', [1, 20], (input) => {
    const { lists, of } = sameLists(input)
    return value(
      once(
        input,
        lists.reduce((a, b) => `list_concat(${a}, ${b})`),
      ),
      arrayOf(of),
    )
  }),
  define('arrayExcept', 2, (input) => {
    const { lists, of } = sameLists(input)
    return value(`list_filter(${lists[0]}, lambda e_: NOT list_contains(${lists[1]}, e_))`, arrayOf(of))
  }),
  define('arraySymmetricDifference', 2, (input) => {
    const { lists, of } = sameLists(input)
    const [a = '', b = ''] = lists
    const without = (list: string, other: string): string =>
      `list_filter(${list}, lambda e_: NOT list_contains(${other}, e_))`
    return value(once(input, `list_concat(${without(a, b)}, ${without(b, a)})`), arrayOf(of))
  }),
  ...defineAll('arrayDotProduct', 2, (input) => {
    const { lists, of } = sameLists(input)
    const [a = '', b = ''] = lists
    const whole = asInt(of)
    const type = whole === undefined ? FLOAT64 : int(Math.min(64, whole.bits * 2), whole.isSigned)
    return value(
      `coalesce(CAST(list_sum(list_transform(${sameSizes(input, input.args, `range(1, len(${a}) + 1)`)}, lambda i_: CAST(list_extract(${a}, i_) AS ${duckType(type)}) * list_extract(${b}, i_))) AS ${duckType(type)}), 0)`,
      type,
    )
  }),
]
