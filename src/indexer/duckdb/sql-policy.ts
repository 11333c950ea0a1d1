import { QueryError } from '../query/error.ts'
import { foldName, shownName } from '../query/names.ts'
import { ALLOWED_FUNCTIONS } from './functions.ts'

export type SqlPolicyOptions = {
  /** Tables and views a customer may name. */
  readonly tables: ReadonlySet<string>
  /** The one database name that may stand before them. */
  readonly database: string
}

/**
 * Caps before anything is planned: planning a deep expression cannot be interrupted, and a query of less than 2 KB can cost half a minute. The
 * sizes stay a hundred times below what hurts (indexer.md section 7.2, trap 5).
 */
const DEPTH_MAX = 100
const NODES_MAX = 5_000
/** Counted after expanding common table expressions: one counts as often as it is used. */
const TABLES_MAX = 20

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
])
const MODIFIERS = new Set(['ORDER_MODIFIER', 'LIMIT_MODIFIER', 'DISTINCT_MODIFIER'])

type Json = { readonly [name: string]: unknown }
/** Names of common table expressions in sight, with the number of tables each stands for. */
type Scope = ReadonlyMap<string, number>

/** What a statement that may run will read. */
export type Passed = { readonly tables: ReadonlySet<string>; readonly functions: ReadonlySet<string> }

/** Judges the tree that the engine's own parser made of a statement. Throws QueryError; whatever it does not know it refuses. */
export function applySqlPolicy(serialized: string, options: SqlPolicyOptions): Passed {
  const tree = parseTree(serialized)
  const tables = new Set<string>()
  const functions = new Set<string>()
  let nodes = 0

  function query(node: Json, scope: Scope, depth: number): number {
    if (!QUERY_NODES.has(String(node['type']))) throw notAllowed(String(node['type']))
    if (node['sample'] != null) throw new QueryError('NOT_IMPLEMENTED', 'SAMPLE is not supported here.')
    for (const modifier of list(node['modifiers'])) {
      const type = String(object(modifier)['type'])
      if (!MODIFIERS.has(type)) throw notAllowed(type)
    }
    const inSight = withCommonTables(list(object(node['cte_map'])['map']), scope, depth)
    let count = 0
    for (const [name, value] of Object.entries(node)) {
      if (name !== 'cte_map') count += walk(value, inSight, depth)
    }
    return limited(count)
  }

  function withCommonTables(entries: readonly unknown[], scope: Scope, depth: number): Scope {
    if (entries.length === 0) return scope
    const inSight = new Map(scope)
    for (const entry of entries) {
      const { key, value } = object(entry)
      // A name is known to what follows it in the same WITH, and not to itself.
      const size = query(object(object(object(value)['query'])['node']), inSight, depth + 1)
      inSight.set(foldName(ascii(String(key))), size)
    }
    return inSight
  }

  /** Whatever may stand in the tree. Returns how many tables it reads. */
  function walk(value: unknown, scope: Scope, depth: number): number {
    if (typeof value !== 'object' || value === null) return 0
    if (Array.isArray(value)) return limited(value.reduce<number>((sum, each) => sum + walk(each, scope, depth), 0))
    const node = value as Json
    nodes++
    if (nodes > NODES_MAX) throw new QueryError('TOO_BIG_AST', `The query is too big. Maximum: ${NODES_MAX} parts.`)
    if (depth > DEPTH_MAX)
      throw new QueryError('TOO_DEEP_AST', `The query is nested too deeply. Maximum: ${DEPTH_MAX} levels.`)
    if ('cte_map' in node) return query(node, scope, depth + 1)
    if ('class' in node) return expression(node, scope, depth + 1)
    if ('sample' in node) return table(node, scope, depth + 1)
    return inside(node, scope, depth)
  }

  function inside(node: Json, scope: Scope, depth: number): number {
    let count = 0
    for (const value of Object.values(node)) count += walk(value, scope, depth)
    return limited(count)
  }

  function expression(node: Json, scope: Scope, depth: number): number {
    const kind = String(node['class'])
    if (!EXPRESSIONS.has(kind)) throw notAllowed(kind)
    switch (kind) {
      case 'CONSTANT':
      case 'COLUMN_REF':
      case 'PARAMETER':
        return 0
      case 'FUNCTION':
      case 'WINDOW':
        callable(node)
        break
      case 'STAR':
        if (node['columns'] === true) throw notAllowed('COLUMNS')
    }
    return inside(node, scope, depth)
  }

  function callable(node: Json): void {
    const name = foldName(String(node['function_name']))
    const schema = word(node['schema'])
    if (node['catalog'] || (schema !== '' && schema !== 'main') || !ALLOWED_FUNCTIONS.has(name))
      throw new QueryError('UNKNOWN_FUNCTION', `Unknown function ${shownName(name)}.`)
    functions.add(name)
  }

  function table(node: Json, scope: Scope, depth: number): number {
    const kind = String(node['type'])
    if (!TABLE_REFS.has(kind)) throw notAllowed(kind)
    if (node['sample'] != null) throw new QueryError('NOT_IMPLEMENTED', 'SAMPLE is not supported here.')
    if (node['at_clause'] != null) throw notAllowed('AT')
    if (kind === 'TABLE_FUNCTION') {
      const call = object(node['function'])
      if (call['class'] !== 'FUNCTION' || foldName(String(call['function_name'])) !== 'unnest')
        throw new QueryError('UNKNOWN_FUNCTION', `Unknown table function ${shownName(String(call['function_name']))}.`)
    }
    if (kind !== 'BASE_TABLE') return limited(inside(node, scope, depth) + 1)
    return limited(baseTable(node, scope))
  }

  function baseTable(node: Json, scope: Scope): number {
    const name = foldName(String(node['table_name']))
    const schema = foldName(word(node['schema_name']))
    const isQualified = Boolean(node['catalog_name']) || schema !== ''
    // A qualified name is never a common table expression, whatever stands in the WITH.
    if (!isQualified && scope.has(name)) return Math.max(1, scope.get(name) ?? 1)
    if (node['catalog_name'] || (schema !== '' && schema !== options.database)) {
      if (!node['catalog_name'] && schema !== options.database)
        throw new QueryError('UNKNOWN_DATABASE', `Database ${shownName(schema)} does not exist.`)
      throw unknownTable(name)
    }
    if (!options.tables.has(name)) throw unknownTable(name)
    tables.add(name)
    return 1
  }

  const statements = list(tree['statements'])
  if (statements.length !== 1)
    throw new QueryError('SYNTAX_ERROR', statements.length === 0 ? 'Empty query.' : 'Multi-statements are not allowed.')
  query(object(object(statements[0])['node']), new Map(), 0)
  return { tables, functions }
}

function parseTree(serialized: string): Json {
  let tree: Json
  try {
    tree = object(JSON.parse(serialized))
  } catch {
    // The engine prints infinities as words, which no JSON has.
    throw new QueryError('SYNTAX_ERROR', 'Syntax error: a number is out of range.')
  }
  if (tree['error'] !== true) return tree
  if (tree['error_type'] === 'not implemented')
    throw new QueryError('READONLY', 'Cannot execute query in readonly mode: only SELECT is allowed.')
  const position = tree['position'] === undefined ? '' : ` at position ${Number(tree['position'])}`
  throw new QueryError('SYNTAX_ERROR', `Syntax error${position}.`)
}

function limited(count: number): number {
  if (count > TABLES_MAX)
    throw new QueryError('TOO_BIG_AST', `The query reads too many tables. Maximum: ${TABLES_MAX}, each use counted.`)
  return count
}

function notAllowed(what: string): QueryError {
  return new QueryError(
    'NOT_IMPLEMENTED',
    `${shownName(what.replaceAll('_', ' ').toLowerCase())} is not supported here.`,
  )
}

function unknownTable(name: string): QueryError {
  return new QueryError('UNKNOWN_TABLE', `Table ${shownName(name)} does not exist.`)
}

/** Names of tables are in ASCII: no other letters can be taken for theirs. */
function ascii(name: string): string {
  if (/[^\x20-\x7e]/.test(name)) throw unknownTable(name)
  return name
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function object(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
