import type { Token } from '../query/sql-tokens.ts'
import { parseSelect } from './parse-select.ts'
import { collectAliases } from './scope.ts'
import { isAggregating } from './select/aggregating.ts'
import type { Expression, Query, Select, Source, With } from './syntax.ts'

/**
 * The steps of a statement as the customer wrote it, one line each, in the words of ClickHouse's plans. The engine's own plan is not shown: it names
 * tables that customers do not have.
 */
export function explainPlan(tokens: readonly Token[]): readonly string[] {
  const lines: string[] = []
  const shown = new Set<With>()
  const add = (depth: number, line: string): void => void lines.push(`${'  '.repeat(depth)}${line}`)

  function query(node: Query, depth: number): void {
    if (node.kind === 'set') {
      add(depth, node.operator.startsWith('UNION') ? 'Union' : 'IntersectOrExcept')
      query(node.left, depth + 1)
      query(node.right, depth + 1)
      return
    }
    const steps = stepsOf(node)
    for (const [at, step] of steps.entries()) add(depth + at, step)
    source(node.from, depth + steps.length)
    for (const each of node.with) {
      // The SELECTs of a UNION share the tables of the first one.
      if (each.query === undefined || shown.has(each)) continue
      shown.add(each)
      add(depth, `CommonTable (${each.name})`)
      query(each.query, depth + 1)
    }
  }

  function source(from: Source | undefined, depth: number): void {
    switch (from?.kind) {
      case undefined:
        return add(depth, 'ReadFromOneRow')
      case 'table':
        return add(depth, `ReadFromTable (${from.path.join('.')})`)
      case 'function':
        return add(depth, `ReadFromTableFunction (${from.name})`)
      case 'query':
        return query(from.query, depth)
      case 'arrays':
        add(depth, 'ArrayJoin')
        return source(from.left, depth + 1)
      case 'join':
        add(depth, `Join (${from.strictness === 'ALL' ? '' : `${from.strictness} `}${from.side})`)
        source(from.left, depth + 1)
        source(from.right, depth + 1)
    }
  }

  query(parseSelect(tokens.slice(0, tokens.findLastIndex(({ text }) => text !== ';') + 1)), 0)
  return lines
}

/** The steps of one SELECT, the last one first. */
function stepsOf(select: Select): readonly string[] {
  const { items, orderBy } = select
  const aliases = new Map<string, Expression>()
  collectAliases(items, aliases)
  const steps: readonly (readonly [step: string, isTaken: boolean])[] = [
    ['Limit', select.limit !== undefined],
    ['Offset', select.limit === undefined && select.offset !== undefined],
    ['LimitBy', select.limitBy !== undefined],
    ['Filling', orderBy !== 'all' && orderBy.some(({ fill }) => fill !== undefined)],
    ['Sorting', orderBy === 'all' || orderBy.length > 0],
    ['Distinct', select.isDistinct],
    ['Expression (Projection)', true],
    ['Filter (QUALIFY)', select.qualify !== undefined],
    ['Filter (HAVING)', select.having !== undefined],
    ['TotalsHaving', select.hasTotals],
    ['Aggregating', isAggregating(select, items, aliases)],
    ['Filter (WHERE)', select.where.length > 0],
  ]
  return steps.filter(([, isTaken]) => isTaken).map(([step]) => step)
}
