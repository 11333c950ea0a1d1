import { type Column, PUBLISHED } from '../schema.ts'
import { asList, asNode, asText, type TreeNode } from './parse-tree.ts'

/**
 * ClickHouse types that the embedded engine does not have: unsigned counts and LowCardinality strings. They are found in the parse tree of the
 * statement, by following each column of the result to its source.
 */
export type ReportedType = 'UInt64' | 'LowCardinality(String)' | 'Array(LowCardinality(String))' | undefined

type Output = { readonly name: string; readonly type: ReportedType }
type Outputs = readonly Output[]
type Scope = ReadonlyMap<string, Outputs | undefined>

/** Functions that count, by the names of the parser and the macros. */
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
const TABLE_OUTPUTS = new Map<string, Outputs>(PUBLISHED.map(({ name, columns }) => [name, columns.map(ofColumn)]))

/** One type for each column of the result; undefined where the engine's own type holds. `tree` has passed the SQL policy. */
export function reportedTypes(tree: TreeNode, columnCount: number): readonly ReportedType[] {
  const [statement] = asList(tree['statements'])
  const found = outputsOf(asNode(asNode(statement)['node']), new Map())
  // Of a statement with constructs that are not followed here, no type is reported rather than a wrong one.
  return found?.length === columnCount
    ? found.map(({ type }) => type)
    : Array<ReportedType>(columnCount).fill(undefined)
}

function outputsOf(node: TreeNode, outer: Scope): Outputs | undefined {
  let scope = outer
  for (const entry of asList(asNode(node['cte_map'])['map'])) {
    const { key, value } = asNode(entry)
    const columns = outputsOf(asNode(asNode(asNode(value)['query'])['node']), scope)
    scope = new Map(scope).set(String(key).toLowerCase(), renamed(columns, asNode(value)['aliases']))
  }
  if (node['type'] === 'SET_OPERATION_NODE') {
    const [left, right] = [outputsOf(asNode(node['left']), scope), outputsOf(asNode(node['right']), scope)]
    return left?.map((column, at) => (column.type === right?.[at]?.type ? column : { ...column, type: undefined }))
  }
  if (node['type'] !== 'SELECT_NODE') return undefined
  const sources = sourcesOf(asNode(node['from_table']), scope)
  const outputs: Output[] = []
  for (const each of asList(node['select_list'])) {
    const expression = asNode(each)
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

/** A table or subquery in FROM, by its alias or name; `columns` is undefined for a source that is not followed. */
type Source = { readonly name: string; readonly columns: Outputs | undefined }

function sourcesOf(from: TreeNode, scope: Scope): readonly Source[] {
  const alias = asText(from['alias']).toLowerCase()
  switch (from['type']) {
    case 'BASE_TABLE': {
      const table = String(from['table_name']).toLowerCase()
      const columns = scope.has(table) && !from['schema_name'] ? scope.get(table) : TABLE_OUTPUTS.get(table)
      return [{ name: alias || table, columns: renamed(columns, from['column_name_alias']) }]
    }
    case 'SUBQUERY': {
      const columns = outputsOf(asNode(asNode(from['subquery'])['node']), scope)
      return [{ name: alias, columns: renamed(columns, from['column_name_alias']) }]
    }
    case 'JOIN': {
      // Columns joined by name appear once, in an order that is not followed here.
      const isByName = asList(from['using_columns']).length > 0 || from['ref_type'] === 'NATURAL'
      const both = [...sourcesOf(asNode(from['left']), scope), ...sourcesOf(asNode(from['right']), scope)]
      return isByName ? both.map(({ name }) => ({ name, columns: undefined })) : both
    }
    case 'EMPTY':
      return []
    default:
      return [{ name: alias, columns: undefined }]
  }
}

function outputOf(expression: TreeNode, sources: readonly Source[]): Output {
  const alias = asText(expression['alias'])
  if (expression['class'] === 'FUNCTION') {
    const isCount = COUNTS.has(String(expression['function_name']).toLowerCase())
    return { name: alias, type: isCount ? 'UInt64' : undefined }
  }
  if (expression['class'] !== 'COLUMN_REF') return { name: alias, type: undefined }
  const path = asList(expression['column_names']).map((part) => String(part).toLowerCase())
  const name = path.at(-1) ?? ''
  const table = path.at(-2)
  const among = table === undefined ? sources : sources.filter((source) => source.name === table)
  // A source with unknown columns may contain the column, too.
  const isClear = among.every(({ columns }) => columns !== undefined)
  const found = among.flatMap(({ columns }) => columns ?? []).filter((column) => column.name.toLowerCase() === name)
  return { name: alias || name, type: isClear && found.length === 1 ? found[0]?.type : undefined }
}

function starOf(star: TreeNode, sources: readonly Source[]): Outputs | undefined {
  const isPlain = ['exclude_list', 'replace_list', 'rename_list', 'expr'].every(
    (part) => star[part] == null || asList(star[part]).length === 0,
  )
  const table = asText(star['relation_name']).toLowerCase()
  const among = table === '' ? sources : sources.filter(({ name }) => name === table)
  if (!isPlain || among.some(({ columns }) => columns === undefined)) return undefined
  return among.flatMap(({ columns }) => columns ?? [])
}

function renamed(columns: Outputs | undefined, aliases: unknown): Outputs | undefined {
  const names = asList(aliases).map(String)
  return columns?.map((column, at) => ({ ...column, name: names[at] ?? column.name }))
}

function ofColumn({ name, type }: Column): Output {
  if (type === 'word') return { name, type: 'LowCardinality(String)' }
  return { name, type: type === 'words' ? 'Array(LowCardinality(String))' : undefined }
}
