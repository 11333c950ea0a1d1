import { QueryError, unknownTable } from '../query/error.ts'
import { foldName, shownName } from '../query/sql-tokens.ts'
import { TABLES_MAX, TREE_DEPTH_MAX, tooManyTables, treeTooDeep } from '../query/tree-limits.ts'
import { ALLOWED_FUNCTIONS } from './allowed-functions.ts'
import { asList, asNode, asText, readParseTree, type TreeNode } from './parse-tree.ts'

export type SqlPolicyOptions = {
  /** Tables and views that a customer may name. */
  readonly tables: ReadonlySet<string>
  /** The database of names without one, which may qualify them, too. */
  readonly database: string
  /** Further schemas that may qualify a name, with their tables. */
  readonly schemas?: ReadonlyMap<string, ReadonlySet<string>> | undefined
}

const NODES_MAX = 10_000
/**
 * Planning an expression takes time with the square of its depth, so the depths of all parts below the first levels are limited together. At the limit
 * planning takes less than a second: texts joined in 235 levels, the slowest form that was found, take 0.6 s.
 */
const DEPTH_SUM_MAX = 100_000
const DEPTH_FREE = 25

const QUERY_NODES = new Set(['SELECT_NODE', 'SET_OPERATION_NODE'])
const TABLE_REFS = new Set([
  'BASE_TABLE',
  'SUBQUERY',
  'JOIN',
  'EMPTY',
  'EXPRESSION_LIST',
  'TABLE_FUNCTION',
  'EMPTY_FROM',
])
const EXPRESSIONS = new Set([
  'COLUMN_REF',
  'CONSTANT',
  'FUNCTION',
  'COMPARISON',
  'CONJUNCTION',
  'OPERATOR',
  'CAST',
  'CASE',
  'BETWEEN',
  'SUBQUERY',
  'STAR',
  'WINDOW',
  'PARAMETER',
  'LAMBDA',
])
const MODIFIERS = new Set(['ORDER_MODIFIER', 'LIMIT_MODIFIER', 'DISTINCT_MODIFIER'])

/** Names of the common table expressions in scope, with the number of tables that each reads. */
type Scope = ReadonlyMap<string, number>

/** The parse tree of a statement that may run, and what it reads. */
export type AllowedStatement = {
  readonly tree: TreeNode
  readonly tables: ReadonlySet<string>
  readonly functions: ReadonlySet<string>
}

/** Checks the parse tree that the engine's own parser made of a statement. Throws QueryError; node types that are not listed are refused. */
export function applySqlPolicy(serialized: string, options: SqlPolicyOptions): AllowedStatement {
  const tree = readParseTree(serialized)
  const tables = new Set<string>()
  const functions = new Set<string>()
  let nodes = 0
  let depthSum = 0

  function checkQuery(node: TreeNode, scope: Scope, depth: number): number {
    if (!QUERY_NODES.has(String(node['type']))) throw notAllowed(String(node['type']))
    if (node['sample'] != null) throw new QueryError('NOT_IMPLEMENTED', 'SAMPLE is not supported here.')
    for (const modifier of asList(node['modifiers'])) {
      const type = String(asNode(modifier)['type'])
      if (!MODIFIERS.has(type)) throw notAllowed(type)
    }
    const inScope = withCommonTables(asList(asNode(node['cte_map'])['map']), scope, depth)
    let count = 0
    for (const [name, value] of Object.entries(node)) {
      if (name !== 'cte_map') count += check(value, inScope, depth)
    }
    return limited(count)
  }

  function withCommonTables(entries: readonly unknown[], scope: Scope, depth: number): Scope {
    if (entries.length === 0) return scope
    const inScope = new Map(scope)
    for (const entry of entries) {
      const { key, value } = asNode(entry)
      // A common table expression is in scope for those after it in the same WITH, and not for itself.
      const size = checkQuery(asNode(asNode(asNode(value)['query'])['node']), inScope, depth + 1)
      inScope.set(foldName(ascii(String(key))), size)
    }
    return inScope
  }

  /** Checks any value of the tree. Returns the number of tables that it reads. */
  function check(value: unknown, scope: Scope, depth: number): number {
    if (typeof value !== 'object' || value === null) return 0
    if (Array.isArray(value)) return limited(value.reduce<number>((sum, each) => sum + check(each, scope, depth), 0))
    const node = value as TreeNode
    nodes++
    if (nodes > NODES_MAX) throw new QueryError('TOO_BIG_AST', `The query is too big. Maximum: ${NODES_MAX} parts.`)
    if (depth > TREE_DEPTH_MAX) throw treeTooDeep()
    depthSum += Math.max(0, depth - DEPTH_FREE)
    if (depthSum > DEPTH_SUM_MAX)
      throw new QueryError(
        'TOO_DEEP_AST',
        `The query has too many deeply nested parts. Maximum: ${DEPTH_SUM_MAX}, the sum of their levels beyond ${DEPTH_FREE} (depth_sum).`,
      )
    if ('cte_map' in node) return checkQuery(node, scope, depth + 1)
    if ('class' in node) return checkExpression(node, scope, depth + 1)
    if ('sample' in node) return checkTable(node, scope, depth + 1)
    return checkChildren(node, scope, depth)
  }

  function checkChildren(node: TreeNode, scope: Scope, depth: number): number {
    let count = 0
    for (const value of Object.values(node)) count += check(value, scope, depth)
    return limited(count)
  }

  function checkExpression(node: TreeNode, scope: Scope, depth: number): number {
    const kind = String(node['class'])
    if (!EXPRESSIONS.has(kind)) throw notAllowed(kind)
    switch (kind) {
      case 'CONSTANT':
      case 'COLUMN_REF':
      case 'PARAMETER':
        return 0
      case 'FUNCTION':
      case 'WINDOW':
        checkFunction(node)
        break
      case 'STAR':
        if (node['columns'] === true) throw notAllowed('COLUMNS')
    }
    return checkChildren(node, scope, depth)
  }

  function checkFunction(node: TreeNode): void {
    const name = foldName(String(node['function_name']))
    const schema = asText(node['schema'])
    if (node['catalog'] || (schema !== '' && schema !== 'main') || !ALLOWED_FUNCTIONS.has(name))
      throw new QueryError('UNKNOWN_FUNCTION', `Unknown function ${shownName(name)}.`)
    functions.add(name)
  }

  function checkTable(node: TreeNode, scope: Scope, depth: number): number {
    const kind = String(node['type'])
    if (!TABLE_REFS.has(kind)) throw notAllowed(kind)
    if (node['sample'] != null) throw new QueryError('NOT_IMPLEMENTED', 'SAMPLE is not supported here.')
    if (node['at_clause'] != null) throw notAllowed('AT')
    if (kind === 'TABLE_FUNCTION') {
      const call = asNode(node['function'])
      const name = foldName(String(call['function_name']))
      // `range` makes one row after another and needs no memory.
      if (call['class'] !== 'FUNCTION' || (name !== 'unnest' && name !== 'range'))
        throw new QueryError('UNKNOWN_FUNCTION', `Unknown table function ${shownName(String(call['function_name']))}.`)
    }
    if (kind !== 'BASE_TABLE') return limited(checkChildren(node, scope, depth) + (kind === 'TABLE_FUNCTION' ? 1 : 0))
    return limited(checkBaseTable(node, scope))
  }

  function checkBaseTable(node: TreeNode, scope: Scope): number {
    const name = foldName(String(node['table_name']))
    const schema = foldName(asText(node['schema_name']))
    const isQualified = Boolean(node['catalog_name']) || schema !== ''
    // A qualified name is never a common table expression.
    if (!isQualified && scope.has(name)) return Math.max(1, scope.get(name) ?? 1)
    if (node['catalog_name']) throw unknownTable(shownName(name))
    const isCurrent = schema === '' || schema === options.database
    const published = isCurrent ? options.tables : options.schemas?.get(schema)
    if (published === undefined)
      throw new QueryError('UNKNOWN_DATABASE', `Database ${shownName(schema)} does not exist.`)
    if (!published.has(name)) throw unknownTable(shownName(name))
    tables.add(isCurrent ? name : `${schema}.${name}`)
    return 1
  }

  const statements = asList(tree['statements'])
  if (statements.length !== 1)
    throw new QueryError('SYNTAX_ERROR', statements.length === 0 ? 'Empty query.' : 'Multi-statements are not allowed.')
  checkQuery(asNode(asNode(statements[0])['node']), new Map(), 0)
  return { tree, tables, functions }
}

function limited(count: number): number {
  if (count > TABLES_MAX) throw tooManyTables()
  return count
}

function notAllowed(construct: string): QueryError {
  return new QueryError(
    'NOT_IMPLEMENTED',
    `${shownName(construct.replaceAll('_', ' ').toLowerCase())} is not supported here.`,
  )
}

/** Table names are ASCII, so a name with any other letter cannot match one. */
function ascii(name: string): string {
  if (/[^\x20-\x7e]/.test(name)) throw unknownTable(shownName(name))
  return name
}
