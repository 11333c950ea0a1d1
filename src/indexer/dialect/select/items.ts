import { QueryError } from '../../query/error.ts'
import { foldName, shownName } from '../../query/sql-tokens.ts'
import { compile } from '../compile-expression.ts'
import type { Context } from '../context.ts'
import { displayName } from '../display-name.ts'
import { type Column, columnNamed, columnsOf, unmergedColumns } from '../expression/column-index.ts'
import { expressionKey } from '../expression/key.ts'
import { columnDropped } from '../scope.ts'
import { type Call, call, type Expression, type Star } from '../syntax.ts'
import type { Value } from '../value.ts'
import { columnPattern } from './column-pattern.ts'

/** A column of the SELECT list. */
export type Item = {
  readonly expression: Expression
  readonly name: string
  readonly value: Value
  readonly key: string
}

export function compileItem(expression: Expression, context: Context): Item {
  return {
    expression,
    name: nameOf(expression, context.scope.columns),
    value: compile(expression, context),
    key: expressionKey(expression, context),
  }
}

/** The alias, or the text of the expression; a column that an earlier table has, too, is shown with its table. */
function nameOf(item: Expression, columns: readonly Column[]): string {
  const name = displayName(item)
  if (item.kind !== 'identifier' || item.path.length < 2) return name
  const table = item.path.at(-2) ?? ''
  const first = columnNamed(columns, name)
  return first === undefined || first.table === table || first.table === '' ? name : `${table}.${name}`
}

/** The expressions that an item of the SELECT list stands for: of `*`, COLUMNS('…') and untuple(x) several. */
export function expandItem(item: Expression, source: Context): readonly Expression[] {
  if (item.kind === 'star') return expandStar(item, source)
  if (item.kind === 'call' && foldName(item.name) === 'untuple') return elementsOf(item, source)
  return [item]
}

/** `untuple(x)`: each element as a column. */
function elementsOf({ args, at }: Call, context: Context): readonly Expression[] {
  const [of] = args
  const type = of === undefined ? undefined : compile(of, context).type
  if (of === undefined || args.length !== 1 || type?.kind !== 'tuple')
    throw new QueryError('ILLEGAL_TYPE_OF_ARGUMENT', `Function untuple at position ${at} takes a tuple.`)
  context.compilation.countStep(type.items.length)
  return type.items.map((_, index) => call('tupleElement', [of, { kind: 'number', text: String(index + 1), at }], at))
}

/** `*`, `t.*` and COLUMNS('…') with EXCEPT, REPLACE and APPLY. */
function expandStar(star: Star, { compilation, scope: { columns } }: Context): readonly Expression[] {
  const among = star.table === undefined ? unmergedColumns(columns) : columnsOf(columns, [star.table])
  if (among.length === 0)
    throw new QueryError('UNKNOWN_IDENTIFIER', `There are no columns for * at position ${star.at}.`)
  const pattern = star.pattern === undefined ? undefined : columnPattern(star.pattern, star.at)
  compilation.countStep(among.length * (1 + star.apply.length))
  if (pattern !== undefined) compilation.countText(among.reduce((sum, { name }) => sum + pattern.lengthFor(name), 0))
  const known = new Set(among.map(({ name }) => name))
  const except = new Set(star.except)
  const replace = new Map(star.replace.toReversed().map((each) => [each.name, each]))
  for (const name of [...except, ...replace.keys()])
    if (!known.has(name))
      throw new QueryError(
        'UNKNOWN_IDENTIFIER',
        `Column ${shownName(name)} after * at position ${star.at} does not exist.`,
      )
  const chosen = among.filter((each) => !except.has(each.name) && (pattern === undefined || pattern.matches(each.name)))
  return chosen.map((column): Expression => {
    if (column.isDropped === true) throw columnDropped(column.name, star.at)
    const replaced = replace.get(column.name)
    const of: Expression =
      replaced === undefined
        ? { kind: 'resolved', name: column.name, value: column.value, at: star.at }
        : { ...replaced }
    return star.apply.reduce<Expression>((inner, name) => ({ kind: 'call', name, args: [inner], at: star.at }), of)
  })
}
