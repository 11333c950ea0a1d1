import { asList, asNode, asText, type TreeNode } from './parse-tree.ts'

/**
 * The steps of a statement from its parse tree, one line each, in the words of ClickHouse's plans. The engine's own plan is not shown: it names tables
 * that customers do not have. `tree` has passed the SQL policy.
 */
export function explainPlan(tree: TreeNode, databaseOf: (schema: string) => string): readonly string[] {
  const lines: string[] = []
  const add = (depth: number, line: string): void => void lines.push(`${'  '.repeat(depth)}${line}`)

  function query(node: TreeNode, outer: number): void {
    let depth = outer
    const step = (line: string): void => add(depth++, line)
    const modifiers = asList(node['modifiers']).map((each) => asText(asNode(each)['type']))
    if (modifiers.includes('LIMIT_MODIFIER')) step('Limit')
    if (modifiers.includes('ORDER_MODIFIER')) step('Sorting')
    if (modifiers.includes('DISTINCT_MODIFIER')) step('Distinct')
    if (node['type'] === 'SET_OPERATION_NODE') {
      step(asText(node['setop_type']) === 'UNION' ? 'Union' : 'IntersectOrExcept')
      query(asNode(node['left']), depth)
      query(asNode(node['right']), depth)
    } else {
      step('Expression (Projection)')
      if (node['qualify'] != null) step('Filter (QUALIFY)')
      if (node['having'] != null) step('Filter (HAVING)')
      if (asList(node['group_expressions']).length > 0) step('Aggregating')
      if (node['where_clause'] != null) step('Filter (WHERE)')
      source(asNode(node['from_table']), depth)
    }
    for (const entry of asList(asNode(node['cte_map'])['map'])) {
      const { key, value } = asNode(entry)
      add(outer, `CommonTable (${String(key)})`)
      query(asNode(asNode(asNode(value)['query'])['node']), outer + 1)
    }
  }

  function source(from: TreeNode, depth: number): void {
    switch (from['type']) {
      case 'BASE_TABLE': {
        const schema = asText(from['schema_name'])
        const name = String(from['table_name'])
        return add(depth, `ReadFromTable (${schema === '' ? name : `${databaseOf(schema)}.${name}`})`)
      }
      case 'JOIN':
        add(depth, `Join (${asText(from['join_type']) || 'INNER'})`)
        source(asNode(from['left']), depth + 1)
        return source(asNode(from['right']), depth + 1)
      case 'SUBQUERY':
        return query(asNode(asNode(from['subquery'])['node']), depth)
      case 'EMPTY':
      case 'EMPTY_FROM':
        return add(depth, 'ReadFromOneRow')
      default:
        return add(depth, 'ReadFromValues')
    }
  }

  query(asNode(asNode(asList(tree['statements'])[0])['node']), 0)
  return lines
}
