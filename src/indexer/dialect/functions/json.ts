import { parseType } from '../parse-type.ts'
import {
  arrayOf,
  asInt,
  BOOL,
  defaultOf,
  duckType,
  FLOAT64,
  INT64,
  isNumber,
  isTime,
  STRING,
  type Type,
  UINT64,
} from '../types.ts'
import { condition, constantNumber, constantText, plainSql, quoteText, toText, type Value, value } from '../value.ts'
import { arrayDepth } from './cast.ts'
import {
  type CallArguments,
  define,
  defineAll,
  type FunctionDefinition,
  stringValue,
  uint64Value,
} from './definition.ts'

/** The keys and indexes after the text, as a path of the engine. */
function pathOf(input: CallArguments, from: number, to = input.args.length): string {
  let path = '$'
  for (let at = from; at < to; at++) {
    const [name, index] = [constantText(input.arg(at)), constantNumber(input.arg(at))]
    if (name !== undefined) path += `."${name.replaceAll('"', '\\"')}"`
    else if (index !== undefined) path += index > 0 ? `[${index - 1}]` : `[#${index}]`
    else throw input.fail('takes constant keys and indexes')
  }
  return quoteText(path)
}

/** The text, or an empty one where it is not JSON: the engine would report an error. */
function document(input: CallArguments): string {
  const given = input.arg(0)
  if (given.type.kind !== 'string' && given.type.kind !== 'unknown') throw input.wrongType('takes a text')
  return `(CASE WHEN json_valid(${given.sql}) THEN ${given.sql} END)`
}

type Read = (text: string, path: string) => string

const typeAt: Read = (json, path) => `json_type(json_extract(${json}, ${path}))`
const asText: Read = (json, path) => `json_extract_string(${json}, ${path})`

/** A value of a type, or NULL where there is none of it. */
function readAs(type: Type, json: string, path: string): string {
  const found = typeAt(json, path)
  if (type.kind === 'string') return asText(json, path)
  if (type.kind === 'bool')
    return `(CASE WHEN ${found} IN ('BOOLEAN', 'BIGINT', 'UBIGINT') THEN ${asText(json, path)} NOT IN ('false', '0') END)`
  if (type.kind === 'array') {
    const item = `coalesce(${readAs(type.of, 'j_', "'$'")}, ${defaultOf(type.of)})`
    return `CAST(list_transform(json_extract(${json}, ${path.replace(/'$/, "[*]'")}), lambda j_: ${item}) AS ${duckType(type)})`
  }
  const kinds =
    asInt(type) === undefined
      ? "('BIGINT', 'UBIGINT', 'DOUBLE', 'HUGEINT', 'VARCHAR')"
      : "('BIGINT', 'UBIGINT', 'HUGEINT', 'VARCHAR')"
  // Fractions are cut off, where the engine would round them.
  const cut = `TRY_CAST(trunc(TRY_CAST(${asText(json, path)} AS DOUBLE)) AS ${duckType(type)})`
  const fraction = asInt(type) === undefined ? '' : `WHEN ${found} = 'DOUBLE' THEN ${cut} `
  return `(CASE ${fraction}WHEN ${found} IN ${kinds} THEN TRY_CAST(${asText(json, path)} AS ${duckType(type)}) END)`
}

const extract = (names: string, type: Type): FunctionDefinition[] =>
  defineAll(
    names,
    [1, 20],
    (input) => value(`coalesce(${readAs(type, document(input), pathOf(input, 1))}, ${defaultOf(type)})`, type),
    { lowCardinality: false },
  )

/** An object as entries of a key and a value of a type; a value of another type is left out. */
function entriesAs(type: Type, json: string, path: string): string {
  const at = (key: string): string =>
    `json_extract(json_extract(${json}, ${path}), concat('$."', replace(${key}, '"', '\\"'), '"'))`
  const made = `list_transform(coalesce(json_keys(${json}, ${path}), []), lambda k_: struct_pack(key := k_, value := ${readAs(type, at('k_'), "'$'")}))`
  return `list_filter(${made}, lambda e_: struct_extract(e_, 'value') IS NOT NULL)`
}

/** The keys of an object with their values as pairs. */
const pairs = (entries: string): string =>
  `list_transform(${entries}, lambda e_: struct_pack("1" := struct_extract(e_, 'key'), "2" := struct_extract(e_, 'value')))`

/** The path of JSON_QUERY and JSON_EXISTS. */
function constantPath(input: CallArguments): string {
  const path = constantText(input.arg(1))
  if (path === undefined || !path.startsWith('$')) throw input.fail('takes a constant path that begins with $')
  return quoteText(path)
}

/** The last argument names the type of the result. */
function extractTyped(input: CallArguments): Value {
  const name = constantText(input.args.at(-1))
  if (name === undefined) throw input.fail('takes the name of a type as its last argument')
  const type = parseType(name)
  const [json, path] = [document(input), pathOf(input, 1, input.args.length - 1)]
  if (type.kind === 'map' && type.key.kind === 'string' && (type.value.kind === 'string' || isNumber(type.value)))
    return value(`map_from_entries(${entriesAs(type.value, json, path)})`, type)
  if (type.kind === 'tuple') return extractTuple(type, input, json, path)
  const isOffered =
    type.kind === 'string' ||
    type.kind === 'bool' ||
    isNumber(type) ||
    (type.kind === 'array' && (type.of.kind === 'string' || isNumber(type.of)))
  if (!isOffered) throw input.fail('takes String, Bool, a number, an array or a map of them, or a tuple')
  const sql = readAs(type, json, path)
  return value(type.isNullable === true ? sql : `coalesce(${sql}, ${defaultOf(type)})`, type)
}

/** A tuple: its fields by name out of an object, by place out of an array. */
function extractTuple(type: Extract<Type, { kind: 'tuple' }>, input: CallArguments, json: string, path: string): Value {
  const fields = type.items.map((item, at) => {
    if (item.kind !== 'string' && !isNumber(item)) throw input.wrongType('takes tuples of String, Bool and numbers')
    const field = type.names === undefined ? `[${at}]` : `."${(type.names[at] ?? '').replaceAll('"', '\\"')}"`
    const read = readAs(item, json, path.replace(/'$/, `${field.replaceAll("'", "''")}'`))
    return `"${at + 1}" := coalesce(${read}, ${defaultOf(item)})`
  })
  return value(`struct_pack(${fields.join(', ')})`, type)
}

const raw = (input: CallArguments): Value =>
  stringValue(`coalesce(CAST(json_extract(${document(input)}, ${pathOf(input, 1)}) AS VARCHAR), '')`)

function length(input: CallArguments): Value {
  const [json, path] = [document(input), pathOf(input, 1)]
  return uint64Value(
    `coalesce(CASE ${typeAt(json, path)} WHEN 'ARRAY' THEN json_array_length(${json}, ${path}) WHEN 'OBJECT' THEN len(json_keys(${json}, ${path})) END, 0)`,
  )
}

/** A value as JSON: a tuple is an array, a time a text. */
function jsonOf(given: Value): string {
  const { type, sql } = given
  if (isTime(type)) return `CAST(to_json(${toText(given)}) AS VARCHAR)`
  if (type.kind === 'float') return `(CASE WHEN isfinite(${sql}) THEN ${toText(given)} ELSE 'null' END)`
  if (type.kind === 'tuple') {
    const parts = type.items.map((item, at) => jsonOf(value(`struct_extract(${sql}, '${at + 1}')`, item)))
    if (type.names === undefined) return `concat('[', concat_ws(',', ${parts.join(', ')}), ']')`
    const fields = parts.map((part, at) => `${quoteText(`${JSON.stringify(type.names?.[at])}:`)} || ${part}`)
    return `concat('{', concat_ws(',', ${fields.join(', ')}), '}')`
  }
  if (type.kind === 'array' && isWrittenByElement(type.of)) {
    // Arrays inside of each other have elements of their own.
    const name = `j${arrayDepth(type)}_`
    return `concat('[', array_to_string(list_transform(${sql}, lambda ${name}: ${jsonOf(value(name, type.of))}), ','), ']')`
  }
  return `CAST(to_json(${plainSql(given)}) AS VARCHAR)`
}

const isWrittenByElement = (of: Type): boolean =>
  of.kind === 'tuple' || of.kind === 'float' || isTime(of) || (of.kind === 'array' && isWrittenByElement(of.of))

const TYPE_NAMES: Readonly<Record<string, string>> = {
  OBJECT: 'Object',
  ARRAY: 'Array',
  VARCHAR: 'String',
  BIGINT: 'Int64',
  UBIGINT: 'Int64',
  HUGEINT: 'UInt64',
  DOUBLE: 'Double',
  BOOLEAN: 'Bool',
  NULL: 'Null',
}

export const JSON_FUNCTIONS: readonly FunctionDefinition[] = [
  ...extract('JSONExtractString simpleJSONExtractString visitParamExtractString', STRING),
  ...extract('JSONExtractInt simpleJSONExtractInt visitParamExtractInt', INT64),
  ...extract('JSONExtractUInt simpleJSONExtractUInt visitParamExtractUInt', UINT64),
  ...extract('JSONExtractFloat simpleJSONExtractFloat visitParamExtractFloat', FLOAT64),
  ...defineAll(
    'JSONExtractBool simpleJSONExtractBool visitParamExtractBool',
    [1, 20],
    (input) => condition(`coalesce(${readAs(BOOL, document(input), pathOf(input, 1))}, false)`),
    { lowCardinality: false },
  ),
  ...defineAll('JSONExtractRaw simpleJSONExtractRaw visitParamExtractRaw', [1, 20], raw),
  define('JSONExtractArrayRaw', [1, 20], (input) =>
    value(
      `CAST(coalesce(json_extract(${document(input)}, ${pathOf(input, 1).replace(/'$/, "[*]'")}), []) AS VARCHAR[])`,
      arrayOf(STRING),
    ),
  ),
  define('JSONExtractKeys', [1, 20], (input) =>
    value(`coalesce(json_keys(${document(input)}, ${pathOf(input, 1)}), [])`, arrayOf(STRING)),
  ),
  define('JSONExtract', [2, 20], extractTyped),
  define('JSONExtractKeysAndValues', [2, 20], (input) => {
    const name = constantText(input.args.at(-1))
    const type = name === undefined ? undefined : parseType(name)
    if (type === undefined || (type.kind !== 'string' && !isNumber(type)))
      throw input.fail('takes String, Bool or a number as the type of the values')
    const entries = entriesAs(type, document(input), pathOf(input, 1, input.args.length - 1))
    return value(pairs(entries), arrayOf({ kind: 'tuple', items: [STRING, type] }))
  }),
  define('JSONExtractKeysAndValuesRaw', [1, 20], (input) => {
    const [json, path] = [document(input), pathOf(input, 1)]
    const at = `json_extract(json_extract(${json}, ${path}), concat('$."', replace(k_, '"', '\\"'), '"'))`
    return value(
      `list_transform(coalesce(json_keys(${json}, ${path}), []), lambda k_: struct_pack("1" := k_, "2" := CAST(${at} AS VARCHAR)))`,
      arrayOf({ kind: 'tuple', items: [STRING, STRING] }),
    )
  }),
  define('JSON_QUERY', 2, (input) =>
    stringValue(
      `coalesce('[' || CAST(json_extract(${document(input)}, ${constantPath(input)}) AS VARCHAR) || ']', '')`,
    ),
  ),
  define('JSON_EXISTS', 2, (input) =>
    condition(`(json_extract(${document(input)}, ${constantPath(input)}) IS NOT NULL)`),
  ),
  define('JSONArrayLength', 1, (input) =>
    value(
      `(CASE WHEN ${typeAt(document(input), "'$'")} = 'ARRAY' THEN CAST(json_array_length(${document(input)}, '$') AS UBIGINT) END)`,
      { ...UINT64, isNullable: true },
    ),
  ),
  ...defineAll('JSONHas simpleJSONHas visitParamHas', [1, 20], (input) =>
    condition(`(json_extract(${document(input)}, ${pathOf(input, 1)}) IS NOT NULL)`),
  ),
  define('JSONLength', [1, 20], length),
  define('JSONType', [1, 20], (input) => {
    const cases = Object.entries(TYPE_NAMES).map(([from, to]) => `WHEN '${from}' THEN '${to}'`)
    return stringValue(`(CASE ${typeAt(document(input), pathOf(input, 1))} ${cases.join(' ')} ELSE 'Null' END)`)
  }),
  define('isValidJSON', 1, (input) => condition(`json_valid(${input.arg(0).sql})`)),
  define('JSON_VALUE', 2, (input) => {
    const path = constantText(input.arg(1))
    if (path === undefined || !path.startsWith('$')) throw input.fail('takes a constant path that begins with $')
    const [json, at] = [document(input), quoteText(path)]
    return stringValue(
      `coalesce(CASE WHEN ${typeAt(json, at)} IN ('OBJECT', 'ARRAY') THEN '' ELSE ${asText(json, at)} END, '')`,
    )
  }),
  define('toJSONString', 1, (input) => {
    return stringValue(jsonOf(input.arg(0)))
  }),
]
