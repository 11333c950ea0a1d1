import { CATALOGUE_TABLES } from '../catalogue/catalogue.ts'
import type { CatalogueTable, CatalogueType, CatalogueValue } from '../catalogue/catalogue-table.ts'
import { NUMBERS_MAX } from '../catalogue/system-database.ts'
import { type ClickHouseDialect, createView } from './ddl.ts'

/**
 * Tools read `system` and `information_schema` when they connect. The server's own tables of these names describe the server and its users, so that
 * no customer may read them; statements get views with the rows of our own lists instead, as on the embedded engine.
 */

/** Names of the views, in the database of the customers' tables. */
export const CATALOGUE_VIEWS: ReadonlySet<string> = new Set(
  CATALOGUE_TABLES.map(({ database, name }) => viewName(database, name)),
)

function viewName(database: string, table: string): string {
  return `_${database}_${table}`
}

/** The view of a table, whose names are in lower case; undefined if there is no such table. */
export function catalogueView(database: string, table: string): string | undefined {
  const name = viewName(database, table)
  return CATALOGUE_VIEWS.has(name) ? name : undefined
}

/** Creates the views. They change with a release, so they are replaced, on old servers by a new one. */
export function catalogueViewDdl(views: string, dialect: ClickHouseDialect): readonly string[] {
  return CATALOGUE_TABLES.flatMap((table) => {
    const name = `${views}.${viewName(table.database, table.name)}`
    const view = createView(name, rowsSelect(table), dialect)
    return dialect === 'current' ? [view] : [`DROP TABLE IF EXISTS ${name}`, view]
  })
}

/** One array for each column whose values differ, joined row by row; the other columns are constants. */
function rowsSelect({ columns, rows }: CatalogueTable): string {
  if (rows === undefined) return `SELECT number FROM numbers(${NUMBERS_MAX})`
  const arrays: string[] = []
  const list = columns.map(({ name, type }, at) => {
    const values = rows.map((row) => row[at] ?? null)
    const isConstant = values.every((value) => literal(value) === literal(values[0] ?? null))
    if (isConstant) return `${converted(literal(values[0] ?? defaultOf(type)), type)} AS ${name}`
    arrays.push(`[${values.map(literal).join(', ')}] AS a${at}`)
    return `${converted(`a${at}`, type)} AS ${name}`
  })
  const joined = arrays.length === 0 ? '' : ` ARRAY JOIN ${arrays.join(', ')}`
  const isEmpty = rows.length === 0 ? ' WHERE one = 0' : ''
  return `SELECT ${list.join(', ')} FROM (SELECT 1 AS one)${joined}${isEmpty}`
}

function defaultOf(type: CatalogueType): CatalogueValue {
  if (type.startsWith('Nullable(')) return null
  return type === 'UInt8' || type === 'UInt64' ? 0 : type === 'Array(String)' ? [] : ''
}

function converted(sql: string, type: CatalogueType): string {
  return `CAST(${sql} AS ${type})`
}

function literal(value: CatalogueValue): string {
  if (value === null) return 'NULL'
  if (typeof value === 'number' || typeof value === 'boolean') return String(Number(value))
  if (typeof value !== 'string') return `[${value.map(literal).join(', ')}]`
  return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`
}
