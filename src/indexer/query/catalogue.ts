import { CLICKHOUSE_TYPES, type Column, DATABASE, PUBLISHED, PUBLISHED_NAMES } from '../schema.ts'
import { resultTooLarge, unknownTable } from './error.ts'
import { createFormatter, formatNamed } from './formats.ts'
import { type QueryLimits, type QueryRequest, readSettings } from './request.ts'
import type { QueryResult } from './result.ts'
import { foldName, shownName, type Token } from './sql-tokens.ts'
import type { Statement } from './statement.ts'

export type CatalogueRows = {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly (readonly unknown[])[]
}

/** The rows of SHOW, DESCRIBE and EXISTS, from the schema and without an engine; undefined for every other statement. */
export function readCatalogue({ tokens }: Pick<Statement, 'tokens'>): CatalogueRows | undefined {
  const part = tokens.filter(({ text }) => text !== ';')
  const [first, second, third] = part.map(({ upper }) => upper)
  switch (first) {
    case 'SHOW':
      if (second === 'TABLES') return oneColumn('name', [...PUBLISHED_NAMES].toSorted())
      if (second === 'DATABASES') return oneColumn('name', [DATABASE])
      if (second === 'CREATE') return showCreate(part.slice(third === 'TABLE' || third === 'VIEW' ? 3 : 2))
      return undefined
    case 'DESCRIBE':
    case 'DESC':
      return describe(part.slice(second === 'TABLE' ? 2 : 1))
    case 'EXISTS': {
      const isPublished = PUBLISHED_NAMES.has(foldName(part.at(-1)?.value ?? ''))
      return { columns: [{ name: 'result', type: 'UTINYINT' }], rows: [[isPublished ? 1 : 0]] }
    }
    default:
      return undefined
  }
}

/** The formatted result of a statement that `readCatalogue` can read; undefined for every other statement. */
export function catalogueResult(
  statement: Statement,
  request: Pick<QueryRequest, 'defaultFormat' | 'settings'>,
  { bytesMax }: Pick<QueryLimits, 'bytesMax'>,
  coverageSlot: number,
): QueryResult | undefined {
  const found = readCatalogue(statement)
  if (found === undefined) return undefined
  const { quote64 } = readSettings([...Object.entries(request.settings), ...statement.settings])
  const { name: format, contentType } = formatNamed(statement.format ?? request.defaultFormat)
  const types = found.columns.map(({ type }) => type)
  const formatter = createFormatter(found.columns, types, { format, quote64 })
  const rows = found.rows.map((values) => formatter.row(values)).join('')
  const tail = formatter.tail({ elapsedSeconds: 0, rowsRead: formatter.rows, bytesRead: 0 })
  const body = Buffer.from(formatter.head() + rows + tail)
  if (body.length > bytesMax) throw resultTooLarge(bytesMax)
  return {
    format,
    contentType,
    rows: formatter.rows,
    elapsedSeconds: 0,
    coverageSlot,
    bytes: body.length,
    async *parts() {
      yield body
    },
    [Symbol.dispose]() {},
  }
}

function showCreate(named: readonly Token[]): CatalogueRows {
  const { name, columns } = tableNamed(named)
  const lines = columns.map((column) => `    \`${column.name}\` ${CLICKHOUSE_TYPES[column.type]}`)
  return oneColumn('statement', [`CREATE TABLE ${DATABASE}.${name}\n(\n${lines.join(',\n')}\n)`])
}

function describe(named: readonly Token[]): CatalogueRows {
  const { columns } = tableNamed(named)
  const names = ['name', 'type', 'default_type', 'default_expression', 'comment', 'codec_expression', 'ttl_expression']
  return {
    columns: names.map((name) => ({ name, type: 'VARCHAR' })),
    rows: columns.map(({ name, type, help }) => [name, CLICKHOUSE_TYPES[type], '', '', help, '', '']),
  }
}

/** A table name, qualified or not. Throws QueryError when the tokens are anything else or the table is not published. */
function tableNamed(named: readonly Token[]): { readonly name: string; readonly columns: readonly Column[] } {
  const [first, dot, second] = named
  const isQualified = dot?.text === '.'
  const name = foldName((isQualified ? second : first)?.value ?? '')
  const isOtherDatabase = isQualified && foldName(first?.value ?? '') !== DATABASE
  const isOneName = named.length === (isQualified ? 3 : 1)
  const found = isOtherDatabase || !isOneName ? undefined : PUBLISHED.find((table) => table.name === name)
  if (found === undefined) throw unknownTable(shownName(name))
  return found
}

function oneColumn(name: string, values: readonly string[]): CatalogueRows {
  return { columns: [{ name, type: 'VARCHAR' }], rows: values.map((value) => [value]) }
}
