import { QueryError } from '../query/error.ts'
import { compile } from './compile-expression.ts'
import { fillSql, type Item } from './compile-fill.ts'
import type { Context } from './context.ts'
import { textOf } from './expression/text.ts'
import type { Expression, OrderItem, Select } from './syntax.ts'
import { conditionSql, constantNumber, plainSql } from './value.ts'

/** The SQL for rows of `base`, of which `where` are the conditions. */
type Rows = { sql(base: string, where: readonly string[]): string }

/** Everything after the SELECT list: HAVING, QUALIFY, DISTINCT, LIMIT BY, ORDER BY, WITH FILL, LIMIT. */
export function finishRows(select: Select, items: readonly Item[], context: Context): Rows {
  const { statement } = context
  const extra: string[] = []
  /** The column of the inner SELECT that has the value of this expression. */
  const columnOf = (expression: Expression): string => {
    const place = position(expression, items)
    const text = textOf(expression, context)
    const at =
      place ??
      items.findIndex(
        (item) =>
          item.text === text ||
          (expression.kind === 'identifier' && expression.path.length === 1 && item.name === expression.path[0]),
      )
    if (at >= 0) return `o${at + 1}`
    if (select.isDistinct && select.distinctOn === undefined)
      throw new QueryError(
        'NOT_IMPLEMENTED',
        `ORDER BY after SELECT DISTINCT is offered for columns of the SELECT list, at position ${expression.at}.`,
      )
    extra.push(`${plainSql(compile(expression, context))} AS x${extra.length + 1}`)
    return `x${extra.length}`
  }
  const having = select.having === undefined ? '' : conditionSql(compile(select.having, context))
  const qualify = select.qualify === undefined ? '' : ` QUALIFY ${conditionSql(compile(select.qualify, context))}`
  const orderBy: readonly OrderItem[] =
    select.orderBy === 'all'
      ? items.map(({ expression }) => ({ of: expression, isDescending: false, nulls: 'LAST' }))
      : select.orderBy
  const order = orderBy.map((item, at) => ({
    item,
    column: select.orderBy === 'all' ? `o${at + 1}` : columnOf(item.of),
  }))
  const orderText = order
    .map(({ item, column }) => `${column} ${item.isDescending ? 'DESC' : 'ASC'} NULLS ${item.nulls}`)
    .join(', ')
  const by =
    select.limitBy === undefined
      ? undefined
      : {
          keys: select.limitBy.keys.map(columnOf),
          count: rowCount(select.limitBy.count, context),
          offset: select.limitBy.offset === undefined ? 0 : rowCount(select.limitBy.offset, context),
        }
  const on = select.distinctOn?.map(columnOf)
  const limit = select.limit === undefined ? undefined : rowCount(select.limit, context)
  const offset = select.offset === undefined ? 0 : rowCount(select.offset, context)
  const fill = fillSql(order, items, context)
  const names = items.map((_, at) => `o${at + 1}`).join(', ')
  return {
    sql(base, conditions) {
      const list = [...items.map((item, at) => `${plainSql(item.value)} AS o${at + 1}`), ...extra].join(', ')
      const all = having === '' ? conditions : [...conditions, having]
      const where = all.length === 0 ? '' : ` WHERE ${all.join(' AND ')}`
      let rows = `SELECT ${select.isDistinct && on === undefined ? 'DISTINCT ' : ''}${list} FROM ${base}${where}${qualify}`
      if (on !== undefined) rows = once(rows, on, 1, 0, orderText, statement.fresh('r'))
      if (by !== undefined) rows = once(rows, by.keys, by.count, by.offset, orderText, statement.fresh('r'))
      if (fill !== undefined) rows = fill(rows)
      const name = statement.fresh('r')
      const ties = select.isWithTies && limit !== undefined && orderText !== ''
      const end = ties ? ` QUALIFY rank() OVER (ORDER BY ${orderText}) <= ${limit + offset}` : ''
      const top = `${ties || limit === undefined ? '' : ` LIMIT ${limit}`}${offset === 0 ? '' : ` OFFSET ${offset}`}`
      if (
        extra.length === 0 &&
        orderText === '' &&
        top === '' &&
        end === '' &&
        by === undefined &&
        on === undefined &&
        fill === undefined
      )
        return rows
      return `SELECT ${names} FROM (${rows}) AS ${name}${end}${orderText === '' ? '' : ` ORDER BY ${orderText}`}${top}`
    },
  }
}

/** The first rows of each group, in the order of the result. */
function once(
  rows: string,
  keys: readonly string[],
  count: number,
  offset: number,
  order: string,
  name: string,
): string {
  const rank = `row_number() OVER (PARTITION BY ${keys.join(', ')}${order === '' ? '' : ` ORDER BY ${order}`})`
  return `SELECT * FROM (${rows}) AS ${name} QUALIFY ${rank} BETWEEN ${offset + 1} AND ${offset + count}`
}

function position(expression: Expression, items: readonly Item[]): number | undefined {
  if (expression.kind !== 'number' || !/^\d+$/.test(expression.text)) return undefined
  const at = Number(expression.text) - 1
  if (at < 0 || at >= items.length)
    throw new QueryError(
      'BAD_ARGUMENTS',
      `ORDER BY ${expression.text} at position ${expression.at} is not in the SELECT list.`,
    )
  return at
}

function rowCount(expression: Expression, context: Context): number {
  const count =
    expression.kind === 'parameter'
      ? context.statement.number(expression.name, expression.at)
      : constantNumber(compile(expression, context))
  if (count === undefined || !Number.isSafeInteger(count) || count < 0)
    throw new QueryError(
      'INVALID_LIMIT_EXPRESSION',
      `LIMIT and OFFSET take a whole number, at position ${expression.at}.`,
    )
  return count
}
