import { notReading, QueryError } from '../query/error.ts'

/** A node of the parse tree that the engine's `json_serialize_sql` writes. */
export type TreeNode = { readonly [name: string]: unknown }

/** Reads the serialized parse tree of a statement. Throws QueryError for a statement that the engine could not parse. */
export function readParseTree(serialized: string): TreeNode {
  let tree: TreeNode
  try {
    tree = asNode(JSON.parse(serialized))
  } catch {
    // The engine writes infinities as bare words, which are not valid JSON.
    throw new QueryError('SYNTAX_ERROR', 'Syntax error: a number is out of range.')
  }
  if (tree['error'] !== true) return tree
  if (tree['error_type'] === 'not implemented') throw notReading()
  // The parser of the engine has its own limit of nesting.
  if (String(tree['error_message']).includes('expression depth'))
    throw new QueryError(
      'TOO_DEEP_AST',
      'The query is nested too deeply: use fewer operators in one expression (expression_depth).',
    )
  const position = tree['position'] === undefined ? '' : ` at position ${Number(tree['position'])}`
  throw new QueryError('SYNTAX_ERROR', `Syntax error${position}.`)
}

export function asNode(value: unknown): TreeNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as TreeNode) : {}
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
