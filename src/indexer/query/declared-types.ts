import { COVERAGE_COLUMNS } from '../duckdb/ddl.ts'
import { type Column, TABLES } from '../schema.ts'

/**
 * Types of ClickHouse that the embedded engine has no type of its own for: counts are unsigned there, and texts with few values say so. They are
 * found in the tree of the statement, by following each column of the answer to where it comes from.
 */
export type ReportedType = 'UInt64' | 'LowCardinality(String)' | 'Array(LowCardinality(String))' | undefined

/** A column of an answer by its name, and its type where the statement tells more than the engine does. */
export type ResponseColumn = { readonly name: string; readonly reported?: ReportedType }

type Json = { readonly [name: string]: unknown }
type Output = { readonly name: string; readonly type: ReportedType }
type Outputs = readonly Output[]
type Scope = ReadonlyMap<string, Outputs | undefined>

/** As the parser and the macros name them. */
const COUNTS = new Set([
  'count',
  'count_star',
  'count_if',
  'countif',
  'uniq',
  'uniqexact',
  'uniqexactif',
  'approx_count_distinct',
])
const PUBLISHED = new Map<string, Outputs>(
  [...TABLES, { name: 'coverage', columns: COVERAGE_COLUMNS }].map(({ name, columns }) => [
    name,
    columns.map(ofColumn),
  ]),
)

/** One for each column of the answer; undefined where the statement does not tell. `serialized` has passed the gate. */
export function reportedTypes(serialized: string, columnCount: number): readonly ReportedType[] {
  const [statement] = list((JSON.parse(serialized) as Json)['statements'])
  const found = outputsOf(object(object(statement)['node']), new Map())
  // A statement that is put together in a way not followed here tells nothing rather than something wrong.
  return found?.length === columnCount
    ? found.map(({ type }) => type)
    : Array<ReportedType>(columnCount).fill(undefined)
}

function outputsOf(node: Json, outer: Scope): Outputs | undefined {
  let scope = outer
  for (const entry of list(object(node['cte_map'])['map'])) {
    const { key, value } = object(entry)
    const columns = outputsOf(object(object(object(value)['query'])['node']), scope)
    scope = new Map(scope).set(String(key).toLowerCase(), renamed(columns, object(value)['aliases']))
  }
  if (node['type'] === 'SET_OPERATION_NODE') {
    const [left, right] = [outputsOf(object(node['left']), scope), outputsOf(object(node['right']), scope)]
    return left?.map((column, at) => (column.type === right?.[at]?.type ? column : { ...column, type: undefined }))
  }
  if (node['type'] !== 'SELECT_NODE') return undefined
  const sources = sourcesOf(object(node['from_table']), scope)
  const outputs: Output[] = []
  for (const each of list(node['select_list'])) {
    const expression = object(each)
    if (expression['class'] !== 'STAR') {
      outputs.push(outputOf(expression, sources))
      continue
    }
    const all = starOf(expression, sources)
    if (all === undefined) return undefined
    outputs.push(...all)
  }
  return outputs
}

/** What stands in FROM, by the names it goes by; undefined columns are those of something that is not followed. */
type Source = { readonly name: string; readonly columns: Outputs | undefined }

function sourcesOf(from: Json, scope: Scope): readonly Source[] {
  const alias = text(from['alias']).toLowerCase()
  switch (from['type']) {
    case 'BASE_TABLE': {
      const table = String(from['table_name']).toLowerCase()
      const columns = scope.has(table) && !from['schema_name'] ? scope.get(table) : PUBLISHED.get(table)
      return [{ name: alias || table, columns: renamed(columns, from['column_name_alias']) }]
    }
    case 'SUBQUERY': {
      const columns = outputsOf(object(object(from['subquery'])['node']), scope)
      return [{ name: alias, columns: renamed(columns, from['column_name_alias']) }]
    }
    case 'JOIN': {
      // Columns that are joined by name appear once, in an order that is not followed here.
      const isByName = list(from['using_columns']).length > 0 || from['ref_type'] === 'NATURAL'
      const both = [...sourcesOf(object(from['left']), scope), ...sourcesOf(object(from['right']), scope)]
      return isByName ? both.map(({ name }) => ({ name, columns: undefined })) : both
    }
    case 'EMPTY':
      return []
    default:
      return [{ name: alias, columns: undefined }]
  }
}

function outputOf(expression: Json, sources: readonly Source[]): Output {
  const alias = text(expression['alias'])
  if (expression['class'] === 'FUNCTION') {
    const isCount = COUNTS.has(String(expression['function_name']).toLowerCase())
    return { name: alias, type: isCount ? 'UInt64' : undefined }
  }
  if (expression['class'] !== 'COLUMN_REF') return { name: alias, type: undefined }
  const path = list(expression['column_names']).map((part) => String(part).toLowerCase())
  const name = path.at(-1) ?? ''
  const table = path.at(-2)
  const among = table === undefined ? sources : sources.filter((source) => source.name === table)
  // An unknown source might hold the column, too.
  const isClear = among.every(({ columns }) => columns !== undefined)
  const found = among.flatMap(({ columns }) => columns ?? []).filter((column) => column.name.toLowerCase() === name)
  return { name: alias || name, type: isClear && found.length === 1 ? found[0]?.type : undefined }
}

function starOf(star: Json, sources: readonly Source[]): Outputs | undefined {
  const isPlain = ['exclude_list', 'replace_list', 'rename_list', 'expr'].every(
    (part) => star[part] == null || list(star[part]).length === 0,
  )
  const table = text(star['relation_name']).toLowerCase()
  const among = table === '' ? sources : sources.filter(({ name }) => name === table)
  if (!isPlain || among.some(({ columns }) => columns === undefined)) return undefined
  return among.flatMap(({ columns }) => columns ?? [])
}

function renamed(columns: Outputs | undefined, aliases: unknown): Outputs | undefined {
  const names = list(aliases).map(String)
  return columns?.map((column, at) => ({ ...column, name: names[at] ?? column.name }))
}

function ofColumn({ name, type }: Column): Output {
  if (type === 'word') return { name, type: 'LowCardinality(String)' }
  return { name, type: type === 'words' ? 'Array(LowCardinality(String))' : undefined }
}

function object(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
