import { type ColumnBatch, startOf } from './column-batch.ts'
import { dateText, floatText, numberAt, PLAIN_TIMES, type TimeStyle, timeText, uuidText } from './scalar-text.ts'

/** The text of value `at` of a batch. */
export type CellText = (at: number) => string

/** How values are printed: `text` at the top level, `quoted` inside of lists and in Values, `json` in the JSON formats. */
export type TextStyle = { readonly times?: TimeStyle | undefined } & (
  | { readonly kind: 'text' | 'quoted' }
  | { readonly kind: 'json'; readonly quote64: boolean }
)

/** Prints the values of a batch as ClickHouse does. The printer is valid until the batch changes. */
export function cellTexts(batch: ColumnBatch, style: TextStyle): CellText {
  const print = valueTexts(batch, style)
  if (!batch.type.isNullable) return print
  const nulls = batch.nulls.view()
  const nullText = style.kind === 'json' ? 'null' : 'NULL'
  return (at) => (nulls[at] === 1 ? nullText : print(at))
}

function valueTexts(batch: ColumnBatch, style: TextStyle): CellText {
  const { type } = batch
  const values = batch.values.view()
  switch (type.kind) {
    case 'text': {
      const read: CellText = (at) => values.toString('utf8', startOf(batch, at), batch.ends[at])
      return quote(read, style)
    }
    case 'int': {
      const read = numberAt(values, type)
      const isQuoted = style.kind === 'json' && style.quote64 && type.width >= 8
      return isQuoted ? (at) => `"${read(at)}"` : (at) => String(read(at))
    }
    case 'bool':
      return (at) => (values[at] === 0 ? 'false' : 'true')
    case 'float': {
      const read = floatText(values, type.width)
      if (style.kind !== 'json') return read
      // As ClickHouse does: numbers that JSON does not have are null.
      return (at) => {
        const text = read(at)
        return text.endsWith('nan') || text.endsWith('inf') ? 'null' : text
      }
    }
    case 'decimal': {
      const read = numberAt(values, { width: type.width, isSigned: true })
      return (at) => decimalText(read(at), type.scale)
    }
    case 'date':
      return quote(dateText(values, type), style)
    case 'time':
      return quote(timeText(values, type, style.times ?? PLAIN_TIMES), style)
    case 'uuid':
      return quote(uuidText(values), style)
    case 'nothing':
      return () => (style.kind === 'json' ? 'null' : 'NULL')
    default:
      return nestedTexts(batch, style)
  }
}

/** Values inside of lists, maps and tuples are quoted. */
function nestedTexts(batch: ColumnBatch, style: TextStyle): CellText {
  const { type } = batch
  const inner: TextStyle = style.kind === 'json' ? style : { ...style, kind: 'quoted' }
  const [first = () => '', second = () => ''] = batch.parts.map((part) => cellTexts(part, inner))
  const range = (at: number): number[] => {
    const start = startOf(batch, at)
    return Array.from({ length: (batch.ends[at] as number) - start }, (_, item) => start + item)
  }
  if (type.kind === 'list') return (at) => `[${range(at).map(first).join(',')}]`
  if (type.kind === 'map') {
    // The keys of JSON objects are strings.
    const key: CellText = style.kind === 'json' ? (at) => asJsonKey(first(at)) : first
    return (at) =>
      `{${range(at)
        .map((item) => `${key(item)}:${second(item)}`)
        .join(',')}}`
  }
  const fields = batch.parts.map((part) => cellTexts(part, inner))
  if (style.kind !== 'json' || type.kind !== 'tuple') return (at) => `(${fields.map((field) => field(at)).join(',')})`
  const names = type.fields.map(({ name }) => name)
  if (names.includes(undefined)) return (at) => `[${fields.map((field) => field(at)).join(',')}]`
  return (at) => `{${fields.map((field, index) => `${JSON.stringify(names[index])}:${field(at)}`).join(',')}}`
}

function asJsonKey(text: string): string {
  return text.startsWith('"') ? text : JSON.stringify(text)
}

function quote(read: CellText, { kind }: TextStyle): CellText {
  if (kind === 'json') return (at) => JSON.stringify(read(at))
  return kind === 'quoted' ? (at) => `'${escaped(read(at))}'` : read
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  "'": "\\'",
  '\b': '\\b',
  '\f': '\\f',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
}

/** ClickHouse's escapes of the tab-separated formats and of quoted texts. */
export function escaped(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that ClickHouse escapes.
  return /[\\'\b\f\t\n\r\0]/.test(text)
    ? text.replaceAll(/[\\'\b\f\t\n\r\0]/g, (char) => ESCAPES[char] as string)
    : text
}

/** Without trailing zeros, as ClickHouse prints it. */
function decimalText(value: number | bigint, scale: number): string {
  const isNegative = value < 0
  const digits = String(isNegative ? -value : value).padStart(scale + 1, '0')
  const whole = digits.slice(0, digits.length - scale)
  let end = digits.length
  while (end > whole.length && digits[end - 1] === '0') end--
  const fraction = digits.slice(whole.length, end)
  return `${isNegative ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

/** Items of lists below this count are printed in one step. */
export const ITEMS_PER_STEP = 1024

/** Number of single values in rows `from` to `to`. */
export function leafCount(batch: ColumnBatch, from: number, to: number): number {
  if (batch.type.kind === 'tuple') return batch.parts.reduce((sum, part) => sum + leafCount(part, from, to), 0)
  if (batch.type.kind !== 'list' && batch.type.kind !== 'map') return to - from
  if (from === to) return 0
  const [start, end] = [startOf(batch, from), batch.ends[to - 1] as number]
  return batch.parts.reduce((sum, part) => sum + leafCount(part, start, end), 0)
}

/** The same text as `cellTexts`, in short pieces, for a list or map with many items. */
export function* longCellText(batch: ColumnBatch, style: TextStyle, at: number): Generator<string> {
  const { type, parts } = batch
  if ((type.kind !== 'list' && type.kind !== 'map') || leafCount(batch, at, at + 1) <= ITEMS_PER_STEP) {
    yield cellTexts(batch, style)(at)
    return
  }
  const inner: TextStyle = style.kind === 'json' ? style : { ...style, kind: 'quoted' }
  const prints = parts.map((part) => cellTexts(part, inner))
  const start = startOf(batch, at)
  const end = batch.ends[at] as number
  const isMap = type.kind === 'map'
  yield isMap ? '{' : '['
  for (let item = start; item < end; item++) {
    if (item > start) yield ','
    for (const [index, part] of parts.entries()) {
      if (index > 0) yield ':'
      if (leafCount(part, item, item + 1) > ITEMS_PER_STEP) yield* longCellText(part, inner, item)
      else {
        const text = prints[index]?.(item) ?? ''
        yield isMap && index === 0 && style.kind === 'json' ? asJsonKey(text) : text
      }
    }
  }
  yield isMap ? '}' : ']'
}

/** The same text as `cellTexts`, with pauses; it may end when it has `charsMax` characters. */
export function* pausingCellText(
  batch: ColumnBatch,
  style: TextStyle,
  at: number,
  charsMax: number = Number.POSITIVE_INFINITY,
): Generator<undefined, string> {
  let text = ''
  let pieces = 0
  for (const piece of longCellText(batch, style, at)) {
    text += piece
    if (text.length >= charsMax) break
    if (++pieces % ITEMS_PER_STEP === 0) yield undefined
  }
  return text
}
