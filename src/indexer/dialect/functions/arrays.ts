import {
  arrayOf,
  asInt,
  defaultOf,
  duckType,
  FLOAT64,
  INT64,
  int,
  isNumber,
  plain,
  STRING,
  supertype,
  type Type,
  tupleOf,
  typeName,
  UINT32,
  UINT64,
  UNKNOWN,
} from '../types.ts'
import {
  condition,
  conditionSql,
  constantNumber,
  convert,
  isAnyNullable,
  numberSql,
  plainSql,
  toText,
  type Value,
  value,
} from '../value.ts'
import {
  type CallArguments,
  define,
  defineAll,
  type FunctionDefinition,
  stringValue,
  uint64Value,
  withNulls,
} from './definition.ts'
import { LIST_LENGTH_MAX, ofShortList } from './list-length.ts'
import { guarded } from './numbers.ts'

/** Functions whose first argument may be a lambda. */
export const LAMBDA_FUNCTIONS: ReadonlySet<string> = new Set(
  [
    ...'map filter exists all count first last firstindex sum avg min max product sort reversesort cumsum difference fold'.split(
      ' ',
    ),
    ...'lastindex firstornull lastornull cumsumnonnegative fill reversefill split reversesplit'.split(' '),
  ]
    .map((name) => `array${name}`)
    .concat('mapfilter mapapply mapexists mapall mapsort mapreversesort'.split(' ')),
)

export function items(given: Value, input: CallArguments): Type {
  if (given.type.kind === 'array') return plain(given.type.of)
  if (given.type.kind === 'unknown') return UNKNOWN
  throw input.wrongType('takes an array')
}

/** The lambda and the arrays of a call such as arrayMap(x -> …, a, b). */
type Mapped = {
  readonly list: string
  readonly body: Value
  readonly name: string
  readonly first: Value
  readonly of: Type
}

/** The body of the lambda for the elements of the arrays; several arrays are walked by their index. */
export function mapped(input: CallArguments, fromAt = 0): Mapped | undefined {
  const head = input.arg(fromAt)
  if (head.lambda === undefined) return undefined
  const arrays = input.args.slice(fromAt + 1)
  const [first] = arrays
  if (first === undefined) throw input.wrongType('takes a lambda and an array')
  const name = input.freshName()
  if (arrays.length === 1) {
    const of = items(first, input)
    return { list: first.sql, body: head.lambda([value(name, of)]), name, first, of }
  }
  const elements = arrays.map((array) => value(`list_extract(${array.sql}, ${name})`, items(array, input)))
  const list = sameSizes(input, arrays, `range(1, len(${first.sql}) + 1)`)
  return { list, body: head.lambda(elements), name, first, of: items(first, input) }
}

/** Positions in arrays that must have one length. */
export function sameSizes(input: CallArguments, arrays: readonly Value[], sql: string): string {
  const [first, ...rest] = arrays
  if (rest.length === 0) return sql
  const isOther = rest.map((each) => `len(${each.sql}) <> len(${first?.sql})`).join(' OR ')
  return `(CASE WHEN ${isOther} THEN error('sluice SIZES_OF_ARRAYS_DONT_MATCH: Arrays passed to ${input.name} must have equal size') ELSE ${sql} END)`
}

const transformed = ({ list, body, name }: Mapped): string =>
  `list_transform(${list}, lambda ${name}: ${plainSql(body)})`

/** The elements for which the lambda holds. */
export function filtered(input: CallArguments): { readonly sql: string; readonly of: Type } {
  const found = mapped(input)
  if (found === undefined) throw input.wrongType('takes a lambda and an array')
  const { list, body, name, first, of } = found
  if (input.args.length === 2) return { sql: `list_filter(${list}, lambda ${name}: ${conditionSql(body)})`, of }
  return {
    sql: `list_transform(list_filter(${list}, lambda ${name}: ${conditionSql(body)}), lambda i_: list_extract(${first.sql}, i_))`,
    of,
  }
}

/** An array, after its lambda if the call has one. */
export function elements(input: CallArguments): { readonly sql: string; readonly of: Type } {
  const found = mapped(input)
  if (found !== undefined) return { sql: transformed(found), of: plain(found.body.type) }
  return { sql: input.arg(0).sql, of: items(input.arg(0), input) }
}

export function orDefault(sql: string, type: Type): Value {
  return value(type.kind === 'unknown' || type.isNullable === true ? sql : `coalesce(${sql}, ${defaultOf(type)})`, type)
}

export function sumType(of: Type): Type {
  const whole = asInt(of)
  return whole === undefined ? (of.kind === 'decimal' ? { ...of, precision: 38 } : FLOAT64) : int(64, whole.isSigned)
}

function arrayOfValues(input: CallArguments): Value {
  const of =
    input.args.length === 0 ? ({ kind: 'nothing' } as Type) : supertype(input.args.map(({ type }) => plain(type)))
  if (of === undefined) throw input.noCommonType('takes elements of one type')
  const isConstant = input.args.every((each) => each.isConstant === true)
  const sql = `[${input.args.map((each) => convert(each, of)).join(', ')}]`
  return { ...value(of.kind === 'nothing' ? 'CAST([] AS INTEGER[])' : sql, arrayOf(of)), isConstant }
}

function arrayElement(input: CallArguments): Value {
  const [of, at] = [input.arg(0), input.arg(1)]
  if (of.type.kind === 'map')
    return orDefault(`map_extract_value(${of.sql}, ${convert(at, of.type.key)})`, of.type.value)
  if (asInt(at.type) === undefined && at.type.kind !== 'unknown')
    throw input.wrongType(`takes a whole number as the index, not ${typeName(at.type)}`)
  const element = orDefault(`list_extract(${of.sql}, ${indexSql(at)})`, items(of, input))
  if (at.type.isNullable !== true) return element
  return value(`(CASE WHEN ${numberSql(at)} IS NOT NULL THEN ${element.sql} END)`, element.type)
}

/** An index as the engine takes it. Numbers that are too large for it are behind the end of every array. */
export function indexSql(at: Value): string {
  const bits = asInt(at.type)?.bits ?? 64
  return bits < 64 ? numberSql(at) : `TRY_CAST(${numberSql(at)} AS BIGINT)`
}

function slice(input: CallArguments): Value {
  const array = input.arg(0)
  const [from = '', count] = input.args.slice(1).map((given) => `CAST(${numberSql(given)} AS BIGINT)`)
  const length = `len(${array.sql})`
  // A slice that begins before the array has less elements of it, and one from 0 has none.
  const start = `(CASE WHEN ${from} < 0 THEN ${length} + ${from} + 1 ELSE ${from} END)`
  const end =
    count === undefined ? length : `(CASE WHEN ${count} < 0 THEN ${length} + ${count} ELSE ${start} + ${count} - 1 END)`
  const last = `CASE WHEN ${from} = 0 THEN 0 ELSE greatest(${end}, 0) END`
  return value(`list_slice(${array.sql}, greatest(${start}, 1), ${last})`, arrayOf(items(array, input)))
}

/** Sorted by the value of the lambda; equal ones keep their order. */
function sorted(input: CallArguments, isReverse: boolean): Value {
  const found = mapped(input)
  const direction = isReverse ? ", 'DESC'" : ", 'ASC'"
  if (found === undefined) {
    const array = input.arg(0)
    return value(`list_sort(${array.sql}${direction}, 'NULLS LAST')`, arrayOf(items(array, input)))
  }
  const { list, body, name, first, of } = found
  const item = input.args.length === 2 ? name : `list_extract(${first.sql}, ${name})`
  const keyed = `list_transform(${list}, lambda ${name}, i_: struct_pack(k := ${plainSql(body)}, i := ${isReverse ? '-i_' : 'i_'}, v := ${item}))`
  return value(`list_transform(list_sort(${keyed}${direction}), lambda s_: struct_extract(s_, 'v'))`, arrayOf(of))
}

/** Lists of one element type, for functions that compare them. */
function pair(input: CallArguments): readonly [string, string, Type] {
  const [a, b] = [input.arg(0), input.arg(1)]
  const of = supertype([items(a, input), items(b, input)])
  if (of === undefined) throw input.wrongType('takes arrays of one type')
  const cast = (given: Value): string => (isNumber(of) ? `CAST(${given.sql} AS ${duckType(of)}[])` : given.sql)
  return [cast(a), cast(b), of]
}

function twoLists(name: string, input: CallArguments): string {
  const [a, b] = pair(input)
  return `${name}(${a}, ${b})`
}

/** A list and a value of its element type. */
function listAndValue(input: CallArguments): readonly [string, string] {
  const [list, x] = [input.arg(0), input.arg(1)]
  const of = supertype([items(list, input), plain(x.type)])
  if (of === undefined || !isNumber(of)) return [list.sql, plainSql(x)]
  return [`CAST(${list.sql} AS ${duckType(of)}[])`, `CAST(${numberSql(x)} AS ${duckType(of)})`]
}

function range(input: CallArguments): Value {
  const isShort = input.args.length === 1
  const [from, to, step] = [
    isShort ? '0' : numberSql(input.arg(0)),
    numberSql(input.arg(isShort ? 0 : 1)),
    input.args.length > 2 ? numberSql(input.arg(2)) : '1',
  ]
  const parts = input.args.map(({ type }) => asInt(type))
  const of = supertype(parts.map((part) => (part === undefined ? UINT64 : part))) ?? INT64
  const bounds = [from, to, step].map((each) => `CAST(${each} AS BIGINT)`)
  const wide = `abs((CAST(${to} AS HUGEINT) - CAST(${from} AS HUGEINT)) // greatest(abs(CAST(${step} AS HUGEINT)), 1)) > ${LIST_LENGTH_MAX}`
  return value(
    `CAST(${guarded(`range(${bounds.join(', ')})`, wide, `range makes at most ${LIST_LENGTH_MAX} elements (list_length)`)} AS ${duckType(of)}[])`,
    arrayOf(of),
  )
}

export function index(sql: string): Value {
  return value(`CAST(coalesce(${sql}, 0) AS UINTEGER)`, UINT32)
}

const array = (sql: string, of: Type): Value => value(sql, arrayOf(of))
const own = (input: CallArguments): Type => items(input.arg(0), input)

export const ARRAY_FUNCTIONS: readonly FunctionDefinition[] = [
  define('array', [0, 1000], arrayOfValues),
  define('arrayElement', 2, arrayElement),
  define('arrayMap', [2, 10], (input) => {
    const found = mapped(input)
    if (found === undefined) throw input.wrongType('takes a lambda and an array')
    return array(transformed(found), plain(found.body.type))
  }),
  define('arrayFilter', [2, 10], (input) => array(filtered(input).sql, filtered(input).of)),
  define('arrayExists', [1, 10], (input) =>
    condition(
      `(len(${input.arg(0).lambda === undefined ? `list_filter(${input.arg(0).sql}, lambda e_: e_ <> 0)` : filtered(input).sql}) > 0)`,
    ),
  ),
  define('arrayAll', [2, 10], (input) => condition(`(len(${filtered(input).sql}) = len(${input.arg(1).sql}))`)),
  define('arrayCount', [1, 10], (input) =>
    value(
      `CAST(len(${input.arg(0).lambda === undefined ? `list_filter(${input.arg(0).sql}, lambda e_: e_ <> 0)` : filtered(input).sql}) AS UINTEGER)`,
      UINT32,
    ),
  ),
  define('arrayFirst', [2, 10], (input) => orDefault(`list_extract(${filtered(input).sql}, 1)`, filtered(input).of)),
  define('arrayLast', [2, 10], (input) => orDefault(`list_extract(${filtered(input).sql}, -1)`, filtered(input).of)),
  define('arrayFirstIndex', [2, 10], (input) => {
    const found = mapped(input)
    if (found === undefined) throw input.wrongType('takes a lambda and an array')
    return index(
      `list_position(list_transform(${found.list}, lambda ${found.name}: ${conditionSql(found.body)}), true)`,
    )
  }),
  define('arraySum', [1, 10], (input) => {
    const { sql, of } = elements(input)
    return orDefault(`CAST(list_sum(${sql}) AS ${duckType(sumType(of))})`, sumType(of))
  }),
  define('arrayAvg', [1, 10], (input) =>
    value(`coalesce(CAST(list_avg(${elements(input).sql}) AS DOUBLE), CAST('nan' AS DOUBLE))`, FLOAT64),
  ),
  define('arrayMin', [1, 10], (input) => orDefault(`list_min(${elements(input).sql})`, elements(input).of)),
  define('arrayMax', [1, 10], (input) => orDefault(`list_max(${elements(input).sql})`, elements(input).of)),
  define('arrayProduct', [1, 10], (input) =>
    value(`coalesce(CAST(list_product(${elements(input).sql}) AS DOUBLE), CAST(1 AS DOUBLE))`, FLOAT64),
  ),
  define('arraySort', [1, 10], (input) => sorted(input, false)),
  define('arrayReverseSort', [1, 10], (input) => sorted(input, true)),
  define('arrayReverse', 1, (input) => array(`list_reverse(${input.arg(0).sql})`, own(input))),
  define('arrayDistinct', 1, (input) =>
    array(`list_filter(${input.arg(0).sql}, lambda e_, i_: list_position(${input.arg(0).sql}, e_) = i_)`, own(input)),
  ),
  define('arrayCompact', 1, (input) =>
    array(
      `list_filter(${input.arg(0).sql}, lambda e_, i_: i_ = 1 OR e_ IS DISTINCT FROM list_extract(${input.arg(0).sql}, i_ - 1))`,
      own(input),
    ),
  ),
  define('arrayUniq', [1, 10], (input) => {
    const rows = input.args.map((each, at) => `"${at + 1}" := list_extract(${each.sql}, i_)`).join(', ')
    const list =
      input.args.length === 1
        ? input.arg(0).sql
        : `list_transform(${sameSizes(input, input.args, `range(1, len(${input.arg(0).sql}) + 1)`)}, lambda i_: struct_pack(${rows}))`
    return value(`CAST(list_unique(${list}) AS UINTEGER)`, UINT32)
  }),
  define('arrayConcat', [1, 20], (input) => {
    const of = supertype(input.args.map((each) => items(each, input)))
    if (of === undefined) throw input.wrongType('takes arrays of one type')
    return array(
      input.args
        .map((each) => `CAST(${each.sql} AS ${duckType(of)}[])`)
        .reduce((left, right) => `list_concat(${left}, ${right})`),
      of,
    )
  }),
  define('arraySlice', [2, 3], slice),
  define('arrayStringConcat', [1, 2], (input) => {
    const list = input.arg(0)
    const of = items(list, input)
    const texts =
      of.kind === 'string' || of.kind === 'unknown'
        ? list.sql
        : `list_transform(${list.sql}, lambda e_: ${toText(value('e_', of))})`
    return stringValue(`array_to_string(${texts}, ${input.args.length > 1 ? input.arg(1).sql : "''"})`)
  }),
  define('arrayEnumerate', 1, (input) =>
    array(`CAST(list_transform(${input.arg(0).sql}, lambda e_, i_: i_) AS UINTEGER[])`, UINT32),
  ),
  define('arrayZip', [2, 10], (input) => {
    const fields = input.args.map((each, at) => `"${at + 1}" := list_extract(${each.sql}, i_)`)
    return array(
      `list_transform(${sameSizes(input, input.args, `range(1, len(${input.arg(0).sql}) + 1)`)}, lambda i_: struct_pack(${fields.join(', ')}))`,
      tupleOf(input.args.map((each) => items(each, input))),
    )
  }),
  define('range', [1, 3], range),
  define('arrayCumSum', [1, 10], (input) => {
    const { sql, of } = elements(input)
    const sums = `list_transform(range(1, len(${sql}) + 1), lambda i_: CAST(list_sum(list_slice(${sql}, 1, i_)) AS ${duckType(sumType(of))}))`
    return array(ofShortList(input, sql, sums), sumType(of))
  }),
  define('arrayDifference', [1, 10], (input) => {
    const { sql, of } = elements(input)
    const whole = asInt(of)
    const type = whole === undefined ? FLOAT64 : int(Math.min(64, whole.bits * 2), true)
    const wide = whole === undefined ? 'DOUBLE' : 'HUGEINT'
    return array(
      `list_transform(range(1, len(${sql}) + 1), lambda i_: CAST(CASE WHEN i_ = 1 THEN 0 ELSE CAST(list_extract(${sql}, i_) AS ${wide}) - CAST(list_extract(${sql}, i_ - 1) AS ${wide}) END AS ${duckType(type)}))`,
      type,
    )
  }),
  ...defineAll('arrayFlatten flatten', 1, (input) => {
    const of = own(input)
    return of.kind === 'array' ? array(`flatten(${input.arg(0).sql})`, of.of) : input.arg(0)
  }),
  define('arrayPushBack', 2, (input) =>
    array(`list_append(${input.arg(0).sql}, ${convert(input.arg(1), own(input))})`, own(input)),
  ),
  define('arrayPushFront', 2, (input) =>
    array(`list_prepend(${convert(input.arg(1), own(input))}, ${input.arg(0).sql})`, own(input)),
  ),
  define('arrayPopBack', 1, (input) =>
    array(`list_slice(${input.arg(0).sql}, 1, len(${input.arg(0).sql}) - 1)`, own(input)),
  ),
  define('arrayPopFront', 1, (input) =>
    array(`list_slice(${input.arg(0).sql}, 2, len(${input.arg(0).sql}))`, own(input)),
  ),
  define(
    'has',
    2,
    (input) => {
      if (input.arg(0).type.kind === 'map')
        return withNulls(
          condition(`list_contains(map_keys(${input.arg(0).sql}), ${plainSql(input.arg(1))})`),
          input.args,
        )
      // Only the position of NULL is found by the engine.
      return isAnyNullable([input.arg(1)])
        ? condition(`(list_position(${listAndValue(input).join(', ')}) IS NOT NULL)`)
        : condition(`list_contains(${listAndValue(input).join(', ')})`)
    },
    { nulls: false },
  ),
  define('hasAny', 2, (input) => condition(twoLists('list_has_any', input))),
  define('hasAll', 2, (input) => condition(twoLists('list_has_all', input))),
  define('arrayIntersect', [1, 20], (input) => {
    const of = supertype(input.args.map((each) => items(each, input)))
    if (of === undefined) throw input.wrongType('takes arrays of one type')
    const [first = '', ...rest] = input.args.map((each) => `CAST(${each.sql} AS ${duckType(of)}[])`)
    const isIn = rest.map((each) => `list_contains(${each}, e_) AND `).join('')
    return array(`list_filter(${first}, lambda e_, i_: ${isIn}list_position(${first}, e_) = i_)`, of)
  }),
  define('indexOf', 2, (input) => uint64Value(`coalesce(list_position(${listAndValue(input).join(', ')}), 0)`), {
    nulls: false,
  }),
  define('countEqual', 2, (input) => {
    const [list, x] = listAndValue(input)
    return uint64Value(`len(list_filter(${list}, lambda e_: e_ = ${x}))`)
  }),
  define('arrayResize', [2, 3], (input) => {
    const count = constantNumber(input.arg(1))
    if (count === undefined || count < 0 || count > LIST_LENGTH_MAX)
      throw input.fail(`takes a constant length up to ${LIST_LENGTH_MAX} (list_length)`)
    const fill = input.args.length > 2 ? convert(input.arg(2), own(input)) : defaultOf(own(input))
    return array(
      `list_transform(range(1, ${count} + 1), lambda i_: CASE WHEN i_ <= len(${input.arg(0).sql}) THEN list_extract(${input.arg(0).sql}, i_) ELSE ${fill} END)`,
      own(input),
    )
  }),
  define('arrayWithConstant', 2, (input) => {
    const count = constantNumber(input.arg(0))
    if (count === undefined || count < 0 || count > LIST_LENGTH_MAX)
      throw input.fail(`takes a constant length up to ${LIST_LENGTH_MAX} (list_length)`)
    return array(`list_transform(range(0, ${count}), lambda i_: ${plainSql(input.arg(1))})`, plain(input.arg(1).type))
  }),
  define('emptyArrayString', 0, () => array('CAST([] AS VARCHAR[])', STRING)),
  define('emptyArrayUInt64', 0, () => array('CAST([] AS UBIGINT[])', UINT64)),
]
