import type { TextStyle } from './cell-text.ts'
import { escaped } from './cell-text.ts'
import type { TimeStyle } from './scalar-text.ts'
import { type TextFormat, tabEscaped } from './text-rows.ts'
import { type TypedColumn, typeName, type ValueType } from './value-type.ts'
import type { QueryStatistics } from './writer.ts'

/** What a request can choose about text formats. */
export type TextOptions = {
  readonly quote64: boolean
  readonly times?: TimeStyle | undefined
  /** Revision of the protocol that blocks of Native are written in; 0 is that of files. */
  readonly revision?: number
}

/** Makes a row-wise text format for the columns of a result. */
export type MakeTextFormat = (columns: readonly TypedColumn[], options: TextOptions) => TextFormat

type Head = 'none' | 'names' | 'names-and-types'

const textStyle = ({ times }: TextOptions): TextStyle => ({ kind: 'text', times })
/** ClickHouse's text for NULL where every value is a string. */
export const NULL_SIGN = 'ᴺᵁᴸᴸ'

/** JSON and JSONCompact, with every value as a string for the Strings variants. */
export function jsonDocument(rows: 'objects' | 'arrays', values: 'json' | 'strings'): MakeTextFormat {
  return (columns, options) => ({
    ...jsonRow(rows, values, options),
    between: ',',
    head: () => `{"meta":[${metaOf(columns)}],"data":[`,
    beforeTotals: '],"totals":',
    tail: (count, statistics, hasTotals) =>
      `${hasTotals ? '' : ']'},"rows":${count},"statistics":${statisticsOf(statistics)}}\n`,
  })
}

/** JSONEachRow and JSONCompactEachRow, with their variants. */
export function jsonLines(rows: 'objects' | 'arrays', values: 'json' | 'strings', head: Head = 'none'): MakeTextFormat {
  return (columns, options) => {
    const row = jsonRow(rows, values, options)
    const line = (texts: readonly string[]): string => `[${texts.map((text) => JSON.stringify(text)).join(',')}]\n`
    return { ...row, close: `${row.close}\n`, head: () => headLines(columns, head, line) }
  }
}

export function tabSeparated(head: Head): MakeTextFormat {
  return (columns, options) => ({
    open: '',
    separator: '\t',
    close: '\n',
    style: textStyle(options),
    nullText: '\\N',
    transform: tabEscaped,
    beforeTotals: '\n',
    head: () => headLines(columns, head, (texts) => `${texts.map(escaped).join('\t')}\n`),
  })
}

/** Each cell as `name=value`. */
export const keyValueTabs: MakeTextFormat = (_columns, options) => ({
  open: '',
  separator: '\t',
  close: '\n',
  style: textStyle(options),
  nullText: '\\N',
  prefix: ({ name }) => `${escaped(name).replaceAll('=', '\\=')}=`,
  transform: tabEscaped,
})

export function commaSeparated(head: Head): MakeTextFormat {
  return (columns, options) => ({
    open: '',
    separator: ',',
    close: '\n',
    style: textStyle(options),
    nullText: '\\N',
    beforeTotals: '\n',
    around: (type) => (isNumber(type) ? '' : '"'),
    areTuplesSplit: true,
    transform: (text, type) => (isNumber(type) ? text : text.replaceAll('"', '""')),
    head: () =>
      headLines(columns, head, (texts) => `${texts.map((text) => `"${text.replaceAll('"', '""')}"`).join(',')}\n`),
  })
}

/** The list of rows that follows VALUES in an INSERT statement. */
export const insertValues: MakeTextFormat = (_columns, { times }) => ({
  open: '(',
  separator: ',',
  close: ')',
  between: ',',
  style: { kind: 'quoted', times },
})

export const markdown: MakeTextFormat = (columns, options) => ({
  open: '| ',
  separator: ' | ',
  close: ' |\n',
  style: textStyle(options),
  nullText: '\\N',
  // A bar in a cell would end it.
  transform: (text, type) => tabEscaped(text, type).replaceAll('|', '\\|'),
  head() {
    const names = columns.map(({ name }) => escaped(name).replaceAll('|', '\\|'))
    const lines = columns.map(({ type }) => (isRightAligned(type) ? '-:' : ':-'))
    return `| ${names.join(' | ')} |\n|${lines.join('|')}|\n`
  },
})

export const vertical: MakeTextFormat = (columns, options) => {
  const width = Math.max(0, ...columns.map(({ name }) => name.length))
  let row = 0
  return {
    get open() {
      const title = `Row ${++row}:`
      return `${title}\n${'─'.repeat(title.length)}\n`
    },
    separator: '\n',
    close: '\n\n',
    style: textStyle(options),
    nullText: NULL_SIGN,
    prefix: ({ name }) => `${name}:${' '.repeat(width - name.length + 1)}`,
  }
}

export const xml: MakeTextFormat = (columns, options) => {
  const tags = new Map(columns.map(({ name }) => [name, xmlTag(name)]))
  const meta = columns.map(
    ({ name, type }) =>
      `\t\t\t<column>\n\t\t\t\t<name>${xmlEscaped(name)}</name>\n\t\t\t\t<type>${xmlEscaped(typeName(type))}</type>\n\t\t\t</column>\n`,
  )
  return {
    open: '\t\t<row>\n',
    separator: '',
    close: '\t\t</row>\n',
    style: textStyle(options),
    nullText: '\\N',
    transform: xmlEscaped,
    prefix: ({ name }) => `\t\t\t<${tags.get(name)}>`,
    suffix: ({ name }) => `</${tags.get(name)}>\n`,
    head: () =>
      `<?xml version='1.0' encoding='UTF-8' ?>\n<result>\n\t<meta>\n\t\t<columns>\n${meta.join('')}\t\t</columns>\n\t</meta>\n\t<data>\n`,
    tail: (rows, { elapsedSeconds, rowsRead, bytesRead }) =>
      `\t</data>\n\t<rows>${rows}</rows>\n\t<statistics>\n\t\t<elapsed>${elapsedSeconds}</elapsed>\n\t\t<rows_read>${rowsRead}</rows_read>\n\t\t<bytes_read>${bytesRead}</bytes_read>\n\t</statistics>\n</result>\n`,
  }
}

function jsonRow(rows: 'objects' | 'arrays', values: 'json' | 'strings', options: TextOptions): TextFormat {
  const isObject = rows === 'objects'
  const prefix = ({ name }: TypedColumn): string => (isObject ? `${JSON.stringify(name)}:` : '')
  const row = { open: isObject ? '{' : '[', separator: ',', close: isObject ? '}' : ']', prefix }
  if (values === 'json') return { ...row, style: { kind: 'json', ...options } }
  const quoted = (text: string): string => JSON.stringify(text).slice(1, -1)
  return { ...row, style: textStyle(options), nullText: `"${NULL_SIGN}"`, around: () => '"', transform: quoted }
}

function headLines(columns: readonly TypedColumn[], head: Head, line: (texts: readonly string[]) => string): string {
  if (head === 'none') return ''
  const names = line(columns.map(({ name }) => name))
  return head === 'names' ? names : names + line(columns.map(({ type }) => typeName(type)))
}

export function metaOf(columns: readonly TypedColumn[]): string {
  return columns
    .map(({ name, type }) => `{"name":${JSON.stringify(name)},"type":${JSON.stringify(typeName(type))}}`)
    .join(',')
}

export function statisticsOf({ elapsedSeconds, rowsRead, bytesRead }: QueryStatistics): string {
  return JSON.stringify({ elapsed: elapsedSeconds, rows_read: rowsRead, bytes_read: bytesRead })
}

function isNumber({ kind }: ValueType): boolean {
  return kind === 'int' || kind === 'float' || kind === 'bool' || kind === 'decimal'
}

/** Numbers and times. */
export function isRightAligned({ kind }: ValueType): boolean {
  return kind === 'int' || kind === 'float' || kind === 'decimal' || kind === 'date' || kind === 'time'
}

/** A name that XML does not allow for an element is written as `field`, as ClickHouse does. */
function xmlTag(name: string): string {
  return /^[A-Za-z_][\w.-]*$/.test(name) ? name : 'field'
}

function xmlEscaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
