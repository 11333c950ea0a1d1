/** A ClickHouse type as the formats write it. `width` is the number of bytes of a value of fixed size, `interval` the unit of an interval, such as Day. */
export type ValueType = { readonly isNullable: boolean; readonly isLowCardinality?: boolean } & (
  | { readonly kind: 'int'; readonly width: number; readonly isSigned: boolean; readonly interval?: string }
  | { readonly kind: 'float'; readonly width: number }
  | { readonly kind: 'bool'; readonly width: 1 }
  /** Days since 1970: Date has two bytes, Date32 four. */
  | { readonly kind: 'date'; readonly width: number }
  /** Ticks since 1970, `scale` decimal digits after the second: DateTime has four bytes, DateTime64 eight. */
  | { readonly kind: 'time'; readonly width: number; readonly scale: number; readonly zone: string | undefined }
  | { readonly kind: 'decimal'; readonly width: number; readonly digits: number; readonly scale: number }
  | { readonly kind: 'uuid'; readonly width: 16 }
  /** A type without values; every value is NULL. */
  | { readonly kind: 'nothing'; readonly width: 1 }
  | { readonly kind: 'text' }
  | { readonly kind: 'list'; readonly items: ValueType }
  | { readonly kind: 'map'; readonly key: ValueType; readonly value: ValueType }
  | { readonly kind: 'tuple'; readonly fields: readonly TupleField[] }
)

export type TupleField = { readonly name: string | undefined; readonly type: ValueType }
/** A column of a result, by its ClickHouse type. */
export type TypedColumn = { readonly name: string; readonly type: ValueType }

export const STRING: ValueType = { kind: 'text', isNullable: false }

/** ClickHouse's name of the type. With `isPlain` LowCardinality is left out, for formats that write its values as they are. */
export function typeName(type: ValueType, { isPlain = false }: { readonly isPlain?: boolean } = {}): string {
  const inner = (of: ValueType): string => typeName(of, { isPlain })
  const nullable = (name: string): string => {
    const given = type.isNullable ? `Nullable(${name})` : name
    return type.isLowCardinality === true && !isPlain ? `LowCardinality(${given})` : given
  }
  switch (type.kind) {
    case 'int':
      if (type.interval !== undefined) return nullable(`Interval${type.interval}`)
      return nullable(`${type.isSigned ? 'Int' : 'UInt'}${type.width * 8}`)
    case 'float':
      return nullable(`Float${type.width * 8}`)
    case 'bool':
      return nullable('Bool')
    case 'date':
      return nullable(type.width === 2 ? 'Date' : 'Date32')
    case 'time': {
      const zone = type.zone === undefined ? [] : [`'${type.zone}'`]
      if (type.width === 8) return nullable(`DateTime64(${[type.scale, ...zone].join(', ')})`)
      return nullable(zone.length === 0 ? 'DateTime' : `DateTime(${zone[0]})`)
    }
    case 'decimal':
      return nullable(`Decimal(${type.digits}, ${type.scale})`)
    case 'uuid':
      return nullable('UUID')
    case 'nothing':
      return nullable('Nothing')
    case 'text':
      return nullable('String')
    case 'list':
      return `Array(${inner(type.items)})`
    case 'map':
      return `Map(${inner(type.key)}, ${inner(type.value)})`
    case 'tuple': {
      const fields = type.fields.map(
        ({ name, type: of }) => (name === undefined ? '' : `${quotedName(name)} `) + inner(of),
      )
      return `Tuple(${fields.join(', ')})`
    }
  }
}

function quotedName(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``
}

/**
 * Reads the name of a type. Undefined for a name that is not known here: a column with it is written with the type of the engine's values.
 */
export function parseTypeName(name: string): ValueType | undefined {
  const text = name.trim()
  const [, outer = '', inner] = /^(\w+)\s*(?:\((.*)\))?$/s.exec(text) ?? []
  if (outer === 'Nullable' && inner !== undefined) {
    const type = parseTypeName(inner)
    return type && { ...type, isNullable: true }
  }
  if (outer === 'LowCardinality' && inner !== undefined) {
    const type = parseTypeName(inner)
    return type && { ...type, isLowCardinality: true }
  }
  if (outer === 'Array' && inner !== undefined) {
    const items = parseTypeName(inner)
    return items && { kind: 'list', items, isNullable: false }
  }
  if (outer === 'Map' && inner !== undefined) {
    const [key, value] = splitArguments(inner).map(parseTypeName)
    return key && value && { kind: 'map', key, value, isNullable: false }
  }
  if (outer === 'Tuple' && inner !== undefined) return parseTuple(inner)
  return parseScalar(outer, inner)
}

function parseScalar(outer: string, inner: string | undefined): ValueType | undefined {
  const [, sign, bits] = /^(U?)Int(8|16|32|64|128)$/.exec(outer) ?? []
  if (bits !== undefined) return { kind: 'int', width: Number(bits) / 8, isSigned: sign === '', isNullable: false }
  const [, interval] = /^Interval([A-Z]\w+)$/.exec(outer) ?? []
  if (interval !== undefined) return { kind: 'int', width: 8, isSigned: true, interval, isNullable: false }
  switch (outer) {
    case 'Float32':
    case 'Float64':
      return { kind: 'float', width: outer === 'Float32' ? 4 : 8, isNullable: false }
    case 'Bool':
      return { kind: 'bool', width: 1, isNullable: false }
    case 'Date':
    case 'Date32':
      return { kind: 'date', width: outer === 'Date' ? 2 : 4, isNullable: false }
    case 'DateTime':
      return { kind: 'time', width: 4, scale: 0, zone: unquoted(inner), isNullable: false }
    case 'DateTime64': {
      const [scale, zone] = splitArguments(inner ?? '')
      return { kind: 'time', width: 8, scale: Number(scale), zone: unquoted(zone), isNullable: false }
    }
    case 'Decimal': {
      const [digits = 0, scale = 0] = splitArguments(inner ?? '').map(Number)
      return { kind: 'decimal', width: digits <= 9 ? 4 : digits <= 18 ? 8 : 16, digits, scale, isNullable: false }
    }
    case 'UUID':
      return { kind: 'uuid', width: 16, isNullable: false }
    case 'Nothing':
      return { kind: 'nothing', width: 1, isNullable: false }
    case 'String':
      return STRING
    default:
      return undefined
  }
}

function parseTuple(inner: string): ValueType | undefined {
  const fields: TupleField[] = []
  for (const part of splitArguments(inner)) {
    const [, name, rest] = /^(\w+|`(?:[^`\\]|\\.)*`)\s+(\S.*)$/s.exec(part) ?? []
    const type = parseTypeName(rest ?? part)
    if (type === undefined) return undefined
    fields.push({ name: name?.startsWith('`') ? name.slice(1, -1).replaceAll(/\\(.)/g, '$1') : name, type })
  }
  return { kind: 'tuple', fields, isNullable: false }
}

/** Splits at the commas outside of parentheses and quotes. */
function splitArguments(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let quote = ''
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string
    if (quote !== '') {
      if (char === '\\') at++
      else if (char === quote) quote = ''
    } else if (char === "'" || char === '`') quote = char
    else if (char === '(') depth++
    else if (char === ')') depth--
    else if (char === ',' && depth === 0) {
      parts.push(text.slice(start, at).trim())
      start = at + 1
    }
  }
  parts.push(text.slice(start).trim())
  return parts
}

function unquoted(text: string | undefined): string | undefined {
  return text === undefined ? undefined : text.trim().replaceAll(/^'|'$/g, '')
}
