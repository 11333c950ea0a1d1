import type { DuckColumnValues, DuckType } from '../../platform/db/duckdb-column.ts'
import type { DuckChunk } from '../../platform/db/duckdb-stream.ts'
import { createResultWriter, formatNamed } from '../formats/formats.ts'
import { observeTypes, type UntypedColumn } from '../formats/settle-types.ts'
import { CLICKHOUSE_TYPES, type Column, DATABASE, PUBLISHED, PUBLISHED_NAMES } from '../schema.ts'
import { resultTooLarge, unknownTable } from './error.ts'
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
  const { columns, chunk } = catalogueChunk(found)
  const engineTypes = columns.map(({ engine }) => engine)
  const writer = createResultWriter(observeTypes(columns).settle(true), engineTypes, { format, quote64 })
  const statistics = { elapsedSeconds: 0, rowsRead: chunk.rowCount, bytesRead: 0 }
  const pieces = [...writer.head(), ...writer.rows(chunk), ...writer.tail(statistics)]
  const body = Buffer.concat(pieces.map((piece) => Buffer.from(piece ?? '')))
  if (body.length > bytesMax) throw resultTooLarge(bytesMax)
  return {
    format,
    contentType,
    coverageSlot,
    end: { rows: chunk.rowCount, bytes: body.length, elapsedSeconds: 0 },
    async *parts() {
      yield body
    },
    [Symbol.dispose]() {},
  }
}

/** The rows as the engine would give them. Their columns are texts and numbers of one byte, and have no NULL. */
export function catalogueChunk({ columns, rows }: CatalogueRows): {
  readonly columns: readonly UntypedColumn[]
  readonly chunk: DuckChunk
} {
  const engineType = (type: string): DuckType =>
    type === 'VARCHAR' ? { kind: 'text', name: type } : { kind: 'fixed', name: type, width: 1 }
  return {
    columns: columns.map(({ name, type }) => ({ name, engine: engineType(type), isNullFree: true })),
    chunk: {
      rowCount: rows.length,
      row: (at) => rows[at] ?? [],
      column: (at) => columnValues(rows.map((row) => row[at])),
      textBytes: () => 0,
    },
  }
}

function columnValues(values: readonly unknown[]): DuckColumnValues {
  const texts = values.map((value) => Buffer.from(String(value)))
  const own: DuckColumnValues = {
    mayHaveNulls: false,
    isNull: () => false,
    bytes: Uint8Array.from(values, Number),
    text: (at) => texts[at] ?? Buffer.alloc(0),
    start: () => 0,
    length: () => 0,
    get items() {
      return own
    },
    field: () => own,
    value: (at) => values[at],
  }
  return own
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
