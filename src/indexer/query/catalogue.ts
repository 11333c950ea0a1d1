import type { DuckResponse } from '../../platform/db/duckdb.ts'
import { COVERAGE_COLUMNS } from '../duckdb/ddl.ts'
import { type Column, type ColumnType, TABLES } from '../schema.ts'
import { QueryError } from './error.ts'
import { foldName, shownName } from './names.ts'
import { type Token, tokenize } from './sql-tokens.ts'

/** ClickHouse's names of the types, as DESCRIBE tells them. */
export const CLICKHOUSE_TYPES: Readonly<Record<ColumnType, string>> = {
  u64: 'UInt64',
  u32: 'UInt32',
  u16: 'UInt16',
  u8: 'UInt8',
  i64: 'Int64',
  i16: 'Int16',
  bool: 'Bool',
  time: "DateTime('UTC')",
  text: 'String',
  word: 'LowCardinality(String)',
  texts: 'Array(String)',
  words: 'Array(LowCardinality(String))',
}

const PUBLISHED: ReadonlyMap<string, { readonly help: string; readonly columns: readonly Column[] }> = new Map([
  ...TABLES.map(({ name, help, columns }) => [name, { help, columns }] as const),
  [
    'coverage',
    { help: 'What is complete, from where to where, and how far behind the chain.', columns: COVERAGE_COLUMNS },
  ],
])

/** What is asked about the tables themselves is answered from our own list; nothing of it reaches the engine. Undefined for any other statement. */
export function respondFromCatalogue(query: string, database: string): DuckResponse | undefined {
  const tokens = tokenize(query).filter(({ text }) => text !== ';')
  const words = tokens.map(({ upper }) => upper)
  const end = words.lastIndexOf('FORMAT') === words.length - 2 ? words.length - 2 : words.length
  const part = tokens.slice(0, end)
  switch (words.slice(0, 2).join(' ')) {
    case 'SHOW TABLES':
      return oneColumn('name', [...PUBLISHED.keys()].toSorted())
    case 'SHOW DATABASES':
      return oneColumn('name', [database])
    case 'SHOW CREATE': {
      const { name, columns } = tableIn(part.slice(words[2] === 'TABLE' || words[2] === 'VIEW' ? 3 : 2), database)
      const lines = columns.map((column) => `    \`${column.name}\` ${CLICKHOUSE_TYPES[column.type]}`)
      return oneColumn('statement', [`CREATE TABLE ${database}.${name}\n(\n${lines.join(',\n')}\n)`])
    }
    default:
  }
  if (words[0] === 'DESCRIBE' || words[0] === 'DESC')
    return describe(part.slice(words[1] === 'TABLE' ? 2 : 1), database)
  if (words[0] === 'EXISTS') {
    const name = foldName(part.at(-1)?.value ?? '')
    return table([{ name: 'result', type: 'UTINYINT' }], [[PUBLISHED.has(name) ? 1 : 0]])
  }
  return undefined
}

function describe(named: readonly Token[], database: string): DuckResponse {
  const { columns } = tableIn(named, database)
  const names = ['name', 'type', 'default_type', 'default_expression', 'comment', 'codec_expression', 'ttl_expression']
  return table(
    names.map((name) => ({ name, type: 'VARCHAR' })),
    columns.map(({ name, type, help }) => [name, CLICKHOUSE_TYPES[type], '', '', help, '', '']),
  )
}

function tableIn(named: readonly Token[], database: string): { name: string; columns: readonly Column[] } {
  const [first, dot, second] = named
  const isQualified = dot?.text === '.'
  const name = foldName((isQualified ? second : first)?.value ?? '')
  const isForeign = isQualified && foldName(first?.value ?? '') !== database
  const found = isForeign || named.length !== (isQualified ? 3 : 1) ? undefined : PUBLISHED.get(name)
  if (found === undefined) throw new QueryError('UNKNOWN_TABLE', `Table ${shownName(name)} does not exist.`)
  return { name, columns: found.columns }
}

function oneColumn(name: string, values: readonly string[]): DuckResponse {
  return table(
    [{ name, type: 'VARCHAR' }],
    values.map((value) => [value]),
  )
}

function table(columns: DuckResponse['columns'], rows: readonly (readonly unknown[])[]): DuckResponse {
  return {
    columns,
    rowCount: rows.length,
    *pieces() {
      yield columns.map((_, at) => rows.map((row) => row[at]))
    },
  }
}
