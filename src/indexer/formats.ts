import type { DuckAnswer } from '../host/duckdb.ts'
import { clickhouseType, type FormatColumn, textOf, toJson } from './format-values.ts'
import { QueryError } from './query-error.ts'
import type { AnswerColumn } from './told-types.ts'

/** How long the engine took, and what it read: told in the answer of the JSON formats and in the summary of every answer. */
export type QueryStatistics = { readonly elapsedSeconds: number; readonly rowsRead: number; readonly bytesRead: number }

export type Formatted = { readonly body: Buffer; readonly rows: number }

type Writer = {
  readonly contentType: string
  write(table: FormatTable, out: Output): void
}

type FormatTable = {
  readonly columns: readonly FormatColumn[]
  /** Each row as values in column order. */
  rows(): Iterable<readonly unknown[]>
  readonly rowCount: number
  readonly quote64: boolean
  readonly statistics: QueryStatistics
}

const JSON_TYPE = 'application/json; charset=UTF-8'
const LINES_TYPE = 'application/x-ndjson; charset=UTF-8'
const TABS_TYPE = 'text/tab-separated-values; charset=UTF-8'

const FORMATS: Readonly<Record<string, Writer>> = {
  JSON: { contentType: JSON_TYPE, write: (table, out) => writeJson(table, out, asObject) },
  JSONCompact: { contentType: JSON_TYPE, write: (table, out) => writeJson(table, out, asArray) },
  JSONEachRow: { contentType: LINES_TYPE, write: (table, out) => writeLines(table, out, asObject) },
  JSONCompactEachRow: { contentType: LINES_TYPE, write: (table, out) => writeLines(table, out, asArray) },
  JSONCompactEachRowWithNames: { contentType: LINES_TYPE, write: (table, out) => writeLines(table, out, asArray, 1) },
  JSONCompactEachRowWithNamesAndTypes: {
    contentType: LINES_TYPE,
    write: (table, out) => writeLines(table, out, asArray, 2),
  },
  TabSeparated: { contentType: TABS_TYPE, write: (table, out) => writeTabs(table, out, 0) },
  TabSeparatedWithNames: { contentType: TABS_TYPE, write: (table, out) => writeTabs(table, out, 1) },
  TabSeparatedWithNamesAndTypes: { contentType: TABS_TYPE, write: (table, out) => writeTabs(table, out, 2) },
  CSV: { contentType: 'text/csv; charset=UTF-8; header=absent', write: (table, out) => writeCsv(table, out, 0) },
  CSVWithNames: {
    contentType: 'text/csv; charset=UTF-8; header=present',
    write: (table, out) => writeCsv(table, out, 1),
  },
  Null: { contentType: 'text/plain; charset=UTF-8', write: () => {} },
}
const ALIASES: Readonly<Record<string, string>> = {
  TSV: 'TabSeparated',
  TSVWithNames: 'TabSeparatedWithNames',
  TSVWithNamesAndTypes: 'TabSeparatedWithNamesAndTypes',
  NDJSON: 'JSONEachRow',
  JSONLines: 'JSONEachRow',
}

/** What the embedded engine writes. */
export const FORMAT_NAMES: readonly string[] = Object.keys(FORMATS)

/** The format by its full name. Throws QueryError for one that the embedded engine does not write. */
export function formatNamed(name: string): { readonly name: string; readonly contentType: string } {
  const full = ALIASES[name] ?? name
  const format = Object.hasOwn(FORMATS, full) ? FORMATS[full] : undefined
  if (format === undefined)
    throw new QueryError(
      'UNKNOWN_FORMAT',
      `Format ${name.replaceAll(/\W/g, '?').slice(0, 60)} is not offered here. There are: ${FORMAT_NAMES.join(', ')}.`,
    )
  return { name: full, contentType: format.contentType }
}

/** Writes a whole answer. Throws QueryError when it grows beyond `bytesMax`: a shorter answer would look like a whole one. */
export function formatAnswer(
  answer: DuckAnswer,
  given: readonly AnswerColumn[],
  options: { format: string; quote64: boolean; bytesMax: number; statistics: QueryStatistics },
): Formatted {
  const out = new Output(options.bytesMax)
  const pieces = [...answer.pieces()]
  const columns = answer.columns.map(({ type }, at) =>
    clickhouseType(given[at] ?? { name: '' }, type, () => pieces.values().flatMap((piece) => piece[at] ?? [])),
  )
  const table: FormatTable = {
    columns,
    *rows() {
      for (const piece of pieces) {
        const count = piece[0]?.length ?? 0
        for (let at = 0; at < count; at++) yield piece.map((column) => column[at])
      }
    },
    rowCount: answer.rowCount,
    quote64: options.quote64,
    statistics: options.statistics,
  }
  FORMATS[options.format]?.write(table, out)
  return { body: out.finish(), rows: answer.rowCount }
}

type RowText = (row: readonly unknown[], table: FormatTable) => string

const asArray: RowText = (row, { columns, quote64 }) =>
  `[${row.map((value, at) => toJson(value, columns[at] as FormatColumn, quote64)).join(',')}]`
const asObject: RowText = (row, { columns, quote64 }) =>
  `{${row.map((value, at) => `${(columns[at] as FormatColumn).nameJson}:${toJson(value, columns[at] as FormatColumn, quote64)}`).join(',')}}`

function writeJson(table: FormatTable, out: Output, rowText: RowText): void {
  const { columns, rowCount, statistics } = table
  out.add('{"meta":[')
  out.add(columns.map(({ nameJson, type }) => `{"name":${nameJson},"type":${JSON.stringify(type)}}`).join(','))
  out.add('],"data":[')
  let isFirst = true
  for (const row of table.rows()) {
    out.add(isFirst ? rowText(row, table) : `,${rowText(row, table)}`)
    isFirst = false
  }
  const { elapsedSeconds, rowsRead, bytesRead } = statistics
  const told = { elapsed: elapsedSeconds, rows_read: rowsRead, bytes_read: bytesRead }
  out.add(`],"rows":${rowCount},"statistics":${JSON.stringify(told)}}\n`)
}

function writeLines(table: FormatTable, out: Output, rowText: RowText, headLines = 0): void {
  if (headLines > 0) out.add(`[${table.columns.map(({ nameJson }) => nameJson).join(',')}]\n`)
  if (headLines > 1) out.add(`[${table.columns.map(({ type }) => JSON.stringify(type)).join(',')}]\n`)
  for (const row of table.rows()) out.add(`${rowText(row, table)}\n`)
}

const TAB_ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
}

function writeTabs(table: FormatTable, out: Output, headLines: number): void {
  const escape = (text: string): string => text.replaceAll(/[\\\t\n\r\0]/g, (char) => TAB_ESCAPES[char] as string)
  const { columns } = table
  if (headLines > 0) out.add(`${columns.map(({ name }) => escape(name)).join('\t')}\n`)
  if (headLines > 1) out.add(`${columns.map(({ type }) => escape(type)).join('\t')}\n`)
  for (const row of table.rows()) {
    out.add(
      `${row.map((value, at) => (value === null ? '\\N' : escape(textOf(value, columns[at] as FormatColumn)))).join('\t')}\n`,
    )
  }
}

function writeCsv(table: FormatTable, out: Output, headLines: number): void {
  const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`
  const { columns } = table
  if (headLines > 0) out.add(`${columns.map(({ name }) => quote(name)).join(',')}\n`)
  for (const row of table.rows()) {
    const cells = row.map((value, at) => {
      if (value === null) return '\\N'
      const text = textOf(value, columns[at] as FormatColumn)
      return (columns[at] as FormatColumn).isBare ? text : quote(text)
    })
    out.add(`${cells.join(',')}\n`)
  }
}

/** Text that grows piece by piece up to a bound. */
class Output {
  readonly #bytesMax: number
  readonly #parts: Buffer[] = []
  #text = ''
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  add(text: string): void {
    this.#text += text
    if (this.#text.length > 256 * 1024) this.#flush()
  }

  finish(): Buffer {
    this.#flush()
    return Buffer.concat(this.#parts)
  }

  #flush(): void {
    const part = Buffer.from(this.#text)
    this.#text = ''
    this.#bytes += part.length
    if (this.#bytes > this.#bytesMax)
      throw new QueryError(
        'TOO_MANY_BYTES',
        `Limit for result exceeded: more than ${this.#bytesMax} bytes. Add LIMIT, or ask for fewer columns.`,
      )
    this.#parts.push(part)
  }
}
