import { TABLES } from '../schema.ts'
import { asList, asNode, asText, type TreeNode } from './parse-tree.ts'

/**
 * Which columns of a result cannot contain NULL, by the statement alone. A result that is sent before all of its rows are known declares every other
 * column as Nullable. `tree` has passed the SQL policy; constructs that are not followed here count as nullable.
 */
export function nullFreeColumns(tree: TreeNode, columnCount: number): readonly boolean[] {
  const [statement] = asList(tree['statements'])
  const found = outputsOf(asNode(asNode(statement)['node']), new Map())
  return found?.length === columnCount
    ? found.map(({ isNullFree }) => isNullFree)
    : Array<boolean>(columnCount).fill(false)
}

type Output = { readonly name: string; readonly isNullFree: boolean }
type Outputs = readonly Output[] | undefined
type Scope = ReadonlyMap<string, Outputs>
/** A table or subquery in FROM; `columns` is undefined for one that is not followed. */
type Source = { readonly name: string; readonly columns: Outputs }

/** Every column of the tables is NOT NULL; the view `coverage` is not in this list. */
const TABLE_OUTPUTS = new Map<string, Outputs>(
  TABLES.map(({ name, columns }) => [name, columns.map((column) => ({ name: column.name, isNullFree: true }))]),
)
/** Functions that return NULL only if an argument is NULL. Division is not among them: by zero it returns NULL. */
const STRICT = new Set([
  ...[
    '+',
    '-',
    '*',
    '||',
    'abs',
    'lower',
    'upper',
    'length',
    'strlen',
    'concat',
    'round',
    'floor',
    'ceil',
    'greatest',
    'least',
  ],
  ...[
    'substring',
    'substr',
    'starts_with',
    'startswith',
    'endswith',
    'has',
    'list_contains',
    'date_trunc',
    'tostartofminute',
  ],
  ...[
    'tostartofhour',
    'tostartofday',
    'tostartofmonth',
    'todate',
    'todatetime',
    'tounixtimestamp',
    'touint8',
    'touint16',
  ],
  ...[
    'touint32',
    'touint64',
    'toint32',
    'toint64',
    'tofloat64',
    'tostring',
    'empty',
    'notempty',
    'plus',
    'minus',
    'equals',
    'notequals',
  ],
])
/** Aggregates that return a value for no rows, too. */
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
const WINDOW_NUMBERS = new Set(['row_number', 'rank', 'dense_rank', 'ntile'])

function outputsOf(node: TreeNode, outer: Scope): Outputs {
  let scope = outer
  for (const entry of asList(asNode(node['cte_map'])['map'])) {
    const { key, value } = asNode(entry)
    const columns = outputsOf(asNode(asNode(asNode(value)['query'])['node']), scope)
    scope = new Map(scope).set(String(key).toLowerCase(), renamed(columns, asNode(value)['aliases']))
  }
  if (node['type'] === 'SET_OPERATION_NODE') {
    const [left, right] = [outputsOf(asNode(node['left']), scope), outputsOf(asNode(node['right']), scope)]
    return left?.map((column, at) => ({ ...column, isNullFree: column.isNullFree && right?.[at]?.isNullFree === true }))
  }
  if (node['type'] !== 'SELECT_NODE' || hasSeveralGroupings(node)) return undefined
  const sources = sourcesOf(asNode(node['from_table']), scope)
  const outputs: Output[] = []
  for (const each of asList(node['select_list'])) {
    const expression = asNode(each)
    if (expression['class'] !== 'STAR') {
      const path = asList(expression['column_names'])
      const name = asText(expression['alias']) || asText(path.at(-1))
      outputs.push({ name, isNullFree: isNullFree(expression, sources) })
      continue
    }
    const all = starOf(expression, sources)
    if (all === undefined) return undefined
    outputs.push(...all)
  }
  return outputs
}

/** ROLLUP and CUBE add rows with NULL in place of a key. */
function hasSeveralGroupings(node: TreeNode): boolean {
  return asList(node['group_sets']).length > 1
}

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
      const both = [...sourcesOf(asNode(from['left']), scope), ...sourcesOf(asNode(from['right']), scope)]
      const isByName = asList(from['using_columns']).length > 0
      // Only an inner join adds no rows with NULL, and columns joined by name appear once.
      const isInner = from['join_type'] === 'INNER' && (from['ref_type'] === 'REGULAR' || from['ref_type'] === 'CROSS')
      return isInner && !isByName ? both : both.map(({ name }) => ({ name, columns: undefined }))
    }
    case 'EMPTY':
      return []
    default:
      return [{ name: alias, columns: undefined }]
  }
}

function isNullFree(expression: TreeNode, sources: readonly Source[]): boolean {
  const all = (list: unknown): boolean => asList(list).every((each) => isNullFree(asNode(each), sources))
  switch (expression['class']) {
    case 'COLUMN_REF':
      return isNullFreeColumn(expression, sources)
    case 'CONSTANT':
      return asNode(expression['value'])['is_null'] === false
    case 'FUNCTION': {
      const name = String(expression['function_name']).toLowerCase()
      if (COUNTS.has(name)) return true
      return STRICT.has(name) && all(expression['children'])
    }
    case 'WINDOW':
      return WINDOW_NUMBERS.has(String(expression['function_name']).toLowerCase())
    case 'CAST':
      return expression['try_cast'] === false && isNullFree(asNode(expression['child']), sources)
    case 'COMPARISON':
      return isNullFree(asNode(expression['left']), sources) && isNullFree(asNode(expression['right']), sources)
    case 'CONJUNCTION':
      return all(expression['children'])
    case 'CASE': {
      const results = asList(expression['case_checks']).map((check) => asNode(check)['then_expr'])
      return all([...results, expression['else_expr']])
    }
    default:
      return false
  }
}

function isNullFreeColumn(expression: TreeNode, sources: readonly Source[]): boolean {
  const path = asList(expression['column_names']).map((part) => String(part).toLowerCase())
  const name = path.at(-1)
  const table = path.at(-2)
  const among = table === undefined ? sources : sources.filter((source) => source.name === table)
  // A source with unknown columns may contain the column, too.
  if (among.length === 0 || among.some(({ columns }) => columns === undefined)) return false
  const found = among.flatMap(({ columns }) => columns ?? []).filter((column) => column.name.toLowerCase() === name)
  return found.length === 1 && found[0]?.isNullFree === true
}

function starOf(star: TreeNode, sources: readonly Source[]): Outputs {
  const isPlain = ['exclude_list', 'replace_list', 'rename_list', 'expr'].every(
    (part) => star[part] == null || asList(star[part]).length === 0,
  )
  const table = asText(star['relation_name']).toLowerCase()
  const among = table === '' ? sources : sources.filter(({ name }) => name === table)
  if (!isPlain || among.some(({ columns }) => columns === undefined)) return undefined
  return among.flatMap(({ columns }) => columns ?? [])
}

function renamed(columns: Outputs, aliases: unknown): Outputs {
  const names = asList(aliases).map(String)
  return columns?.map((column, at) => ({ ...column, name: names[at] ?? column.name }))
}
