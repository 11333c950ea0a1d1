import { aggregateNamed } from '../function-list.ts'
import type { Aliases } from '../scope.ts'
import type { Expression, Select } from '../syntax.ts'

/** Whether a SELECT groups its rows: it has GROUP BY, or an aggregate in a clause that may have one. */
export function isAggregating(
  { groupBy, orderBy, having }: Select,
  items: readonly Expression[],
  aliases: Pick<Aliases, 'get'>,
): boolean {
  if (groupBy !== undefined) return true
  const ordered = orderBy === 'all' ? [] : orderBy.map(({ of }) => of)
  const known = new Map<string, boolean>()
  return [...items, ...ordered, ...(having === undefined ? [] : [having])].some((each) =>
    hasAggregate(each, aliases, known),
  )
}

/** Whether an aggregate is computed here: not inside of a subquery, nor as a window function. */
export function hasAggregate(
  expression: Expression,
  aliases: Pick<Aliases, 'get'>,
  /** Results of aliases, so that each is visited once. */
  known: Map<string, boolean>,
): boolean {
  const any = (items: readonly Expression[]): boolean => items.some((each) => hasAggregate(each, aliases, known))
  switch (expression.kind) {
    case 'alias':
    case 'cast':
      return hasAggregate(expression.of, aliases, known)
    case 'identifier': {
      const [name = ''] = expression.path
      const of = expression.path.length === 1 ? aliases.get(name) : undefined
      if (of === undefined) return false
      // Inside of its own definition an alias is a column.
      if (!known.has(name)) known.set(name, false).set(name, hasAggregate(of, aliases, known))
      return known.get(name) === true
    }
    case 'lambda':
      return hasAggregate(expression.body, aliases, known)
    case 'in':
      return hasAggregate(expression.value, aliases, known) || (!('kind' in expression.set) && any(expression.set))
    case 'call': {
      if (expression.over === undefined && aggregateNamed(expression.name) !== undefined) return true
      const window =
        typeof expression.over === 'object'
          ? [...expression.over.partition, ...expression.over.order.map(({ of }) => of)]
          : []
      return any(expression.args) || any(window)
    }
    default:
      return false
  }
}
