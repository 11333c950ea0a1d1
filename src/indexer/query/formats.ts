import { QueryError } from './error.ts'
import {
  type ColumnObserver,
  type FormatColumn,
  observeColumn,
  type ResultColumn,
  textOf,
  toJson,
  typedValue,
} from './format-values.ts'

/** Time that the query took and what it read, as the JSON formats state them. */
export type QueryStatistics = {
  readonly elapsedSeconds: number
  readonly rowsRead: number
  readonly bytesRead: number
  /** The row of WITH TOTALS. */
  readonly totals?: readonly unknown[] | undefined
}

/** Formats a result row by row. */
export type ResultFormatter = {
  readonly rows: number
  /** The text of the next row. */
  row(values: readonly unknown[]): string
  /** The text before the rows. Call it after the last row, because types depend on all values. */
  head(): string
  /** The text after the rows. */
  tail(statistics: QueryStatistics): string
}

type Format = {
  readonly contentType: string
  head?(columns: readonly FormatColumn[]): string
  row(values: readonly unknown[], columns: readonly ColumnObserver[], quote64: boolean): string
  /** Between two rows; without it each row ends with its own line break. */
  readonly separator?: string
  tail?(rows: number, statistics: QueryStatistics, totals: string | undefined): string
  /** The row of WITH TOTALS after the others; without it the format has none. */
  totals?(row: string): string
}

const JSON_TYPE = 'application/json; charset=UTF-8'
const LINES_TYPE = 'application/x-ndjson; charset=UTF-8'
const TABS_TYPE = 'text/tab-separated-values; charset=UTF-8'

const FORMATS: Readonly<Record<string, Format>> = {
  JSON: { contentType: JSON_TYPE, head: jsonHead, row: asObject, separator: ',', tail: jsonTail },
  JSONCompact: { contentType: JSON_TYPE, head: jsonHead, row: asArray, separator: ',', tail: jsonTail },
  JSONEachRow: { contentType: LINES_TYPE, row: line(asObject) },
  JSONCompactEachRow: { contentType: LINES_TYPE, row: line(asArray) },
  JSONCompactEachRowWithNames: { contentType: LINES_TYPE, head: namesLine, row: line(asArray) },
  JSONCompactEachRowWithNamesAndTypes: {
    contentType: LINES_TYPE,
    head: (columns) => namesLine(columns) + typesLine(columns),
    row: line(asArray),
  },
  TabSeparated: { contentType: TABS_TYPE, row: asTabs, totals: afterEmptyLine },
  TabSeparatedWithNames: {
    contentType: TABS_TYPE,
    head: (columns) => tabs(columns, 'name'),
    row: asTabs,
    totals: afterEmptyLine,
  },
  TabSeparatedWithNamesAndTypes: {
    contentType: TABS_TYPE,
    head: (columns) => tabs(columns, 'name') + tabs(columns, 'type'),
    row: asTabs,
  },
  CSV: { contentType: 'text/csv; charset=UTF-8; header=absent', row: asCsv },
  CSVWithNames: {
    contentType: 'text/csv; charset=UTF-8; header=present',
    head: (columns) => `${columns.map(({ name }) => csvQuoted(name)).join(',')}\n`,
    row: asCsv,
  },
  Null: { contentType: 'text/plain; charset=UTF-8', row: () => '' },
}
const ALIASES: Readonly<Record<string, string>> = {
  TSV: 'TabSeparated',
  TSVWithNames: 'TabSeparatedWithNames',
  TSVWithNamesAndTypes: 'TabSeparatedWithNamesAndTypes',
  NDJSON: 'JSONEachRow',
  JSONLines: 'JSONEachRow',
}

/** Formats that the embedded engine writes. */
export const FORMAT_NAMES: readonly string[] = Object.keys(FORMATS)

/** The format by its full name. Throws QueryError for one that the embedded engine does not write. */
export function formatNamed(name: string): { readonly name: string; readonly contentType: string } {
  const full = ALIASES[name] ?? name
  const format = Object.hasOwn(FORMATS, full) ? FORMATS[full] : undefined
  if (format === undefined)
    throw new QueryError(
      'UNKNOWN_FORMAT',
      `Format ${name.replaceAll(/\W/g, '?').slice(0, 60)} is not supported. Supported are: ${FORMAT_NAMES.join(', ')}.`,
    )
  return { name: full, contentType: format.contentType }
}

/** `format` is a full name; `types` are the engine's types of the columns. */
export function createFormatter(
  named: readonly ResultColumn[],
  types: readonly string[],
  options: { readonly format: string; readonly quote64: boolean },
): ResultFormatter {
  const format = FORMATS[options.format] as Format
  const columns = types.map((type, at) => observeColumn(named[at] ?? { name: '' }, type))
  const fixed = named.map(({ reported }) => reported ?? '')
  const isTyped = fixed.some((type) => type.includes('DateTime64'))
  const typed = (values: readonly unknown[]): readonly unknown[] =>
    isTyped ? values.map((value, at) => typedValue(value, fixed[at] ?? '')) : values
  let rows = 0
  return {
    get rows() {
      return rows
    },
    row(given) {
      const values = typed(given)
      for (let at = 0; at < columns.length; at++) columns[at]?.observe(values[at])
      const text = format.row(values, columns, options.quote64)
      return rows++ > 0 && format.separator !== undefined ? format.separator + text : text
    },
    head: () => format.head?.(columns.map((column) => column.column())) ?? '',
    tail(statistics) {
      const totals =
        statistics.totals === undefined ? undefined : format.row(typed(statistics.totals), columns, options.quote64)
      return format.tail?.(rows, statistics, totals) ?? (totals === undefined ? '' : (format.totals?.(totals) ?? ''))
    },
  }
}

type RowText = Format['row']

/** As ClickHouse writes it: an empty line before the row. */
function afterEmptyLine(row: string): string {
  return `\n${row}`
}

function asArray(values: readonly unknown[], _columns: readonly ColumnObserver[], quote64: boolean): string {
  return `[${values.map((value) => toJson(value, quote64)).join(',')}]`
}

function asObject(values: readonly unknown[], columns: readonly ColumnObserver[], quote64: boolean): string {
  return `{${values.map((value, at) => `${columns[at]?.nameJson}:${toJson(value, quote64)}`).join(',')}}`
}

function line(text: RowText): RowText {
  return (values, columns, quote64) => `${text(values, columns, quote64)}\n`
}

function jsonHead(columns: readonly FormatColumn[]): string {
  const meta = columns.map(({ nameJson, type }) => `{"name":${nameJson},"type":${JSON.stringify(type)}}`)
  return `{"meta":[${meta.join(',')}],"data":[`
}

function jsonTail(
  rows: number,
  { elapsedSeconds, rowsRead, bytesRead }: QueryStatistics,
  totals: string | undefined,
): string {
  const reported = { elapsed: elapsedSeconds, rows_read: rowsRead, bytes_read: bytesRead }
  return `]${totals === undefined ? '' : `,"totals":${totals}`},"rows":${rows},"statistics":${JSON.stringify(reported)}}\n`
}

function namesLine(columns: readonly FormatColumn[]): string {
  return `[${columns.map(({ nameJson }) => nameJson).join(',')}]\n`
}

function typesLine(columns: readonly FormatColumn[]): string {
  return `[${columns.map(({ type }) => JSON.stringify(type)).join(',')}]\n`
}

const TAB_ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
}

function tabEscaped(text: string): string {
  return text.replaceAll(/[\\\t\n\r\0]/g, (char) => TAB_ESCAPES[char] as string)
}

function tabs(columns: readonly FormatColumn[], field: 'name' | 'type'): string {
  return `${columns.map((column) => tabEscaped(column[field])).join('\t')}\n`
}

function asTabs(values: readonly unknown[]): string {
  return `${values.map((value) => (value === null ? '\\N' : tabEscaped(textOf(value)))).join('\t')}\n`
}

function csvQuoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}

function asCsv(values: readonly unknown[], columns: readonly ColumnObserver[]): string {
  const cells = values.map((value, at) => {
    if (value === null) return '\\N'
    return columns[at]?.isUnquoted ? textOf(value) : csvQuoted(textOf(value))
  })
  return `${cells.join(',')}\n`
}
