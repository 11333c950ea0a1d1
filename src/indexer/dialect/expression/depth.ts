import { TREE_DEPTH_MAX, treeTooDeep } from '../../query/tree-limits.ts'
import type { Call, Expression } from '../syntax.ts'

const depths = new WeakMap<Expression, number>()

/**
 * Returns the expression. Throws QueryError when it is deeper than the engine may get it. A chain of operators is deep without any parentheses, and
 * translating it takes time with its depth, so the parser calls this for each operator.
 */
export function limitDepth<Of extends Expression>(expression: Of): Of {
  if (depthOf(expression) > TREE_DEPTH_MAX) throw treeTooDeep()
  return expression
}

/** Each expression is visited once: those inside of it are known. */
function depthOf(expression: Expression): number {
  const known = depths.get(expression)
  if (known !== undefined) return known
  let depth = 0
  for (const each of partsOf(expression)) depth = Math.max(depth, depthOf(each))
  depths.set(expression, depth + 1)
  return depth + 1
}

const sizes = new WeakMap<Expression, number>()

/** Number of expressions inside, each use of a shared one counted. Those of subqueries do not count. */
export function sizeOf(expression: Expression): number {
  const known = sizes.get(expression)
  if (known !== undefined) return known
  const size = partsOf(expression).reduce((sum, each) => sum + sizeOf(each), 1)
  sizes.set(expression, size)
  return size
}

function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'call':
      return callParts(expression)
    case 'alias':
    case 'cast':
      return [expression.of]
    case 'lambda':
      return [expression.body]
    case 'in':
      return 'kind' in expression.set ? [expression.value] : [expression.value, ...expression.set]
    default:
      return []
  }
}

function callParts({ args, parameters, filter, over }: Call): readonly Expression[] {
  if (parameters === undefined && filter === undefined && typeof over !== 'object') return args
  const window = typeof over === 'object' ? [...over.partition, ...over.order.map(({ of }) => of)] : []
  return [...args, ...(parameters ?? []), ...(filter === undefined ? [] : [filter]), ...window]
}
