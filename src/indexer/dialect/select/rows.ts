import { QueryError } from '../../query/error.ts'
import { compile } from '../compile-expression.ts'
import type { Context } from '../context.ts'
import { expressionKey } from '../expression/key.ts'
import { orderSql } from '../not-a-number.ts'
import type { Expression, Select } from '../syntax.ts'
import { type Type, UNKNOWN } from '../types.ts'
import { conditionSql, plainSql, type Value } from '../value.ts'
import { fillSql, type Ordered } from './fill.ts'
import type { Item } from './items.ts'
import { rowCount } from './row-count.ts'

/** The SQL for rows of `base`, of which `where` are the conditions. */
type Rows = { sql(base: string, where: readonly string[]): string }

/** Everything after the SELECT list: HAVING, QUALIFY, DISTINCT, LIMIT BY, ORDER BY, WITH FILL, LIMIT. */
export function finishRows(select: Select, items: readonly Item[], context: Context): Rows {
  const { compilation } = context
  const columns = new InnerColumns(select, items, context)
  const having = select.having === undefined ? [] : [conditionSql(compile(select.having, context))]
  const qualify = select.qualify === undefined ? '' : ` QUALIFY ${conditionSql(compile(select.qualify, context))}`
  const ordered = orderedColumns(select, items, columns)
  const order = ordered.map(({ item, column }) => orderSql(column, columns.typeOf(column), item)).join(', ')
  const orderBy = order === '' ? '' : `ORDER BY ${order}`
  const limitBy =
    select.limitBy === undefined
      ? undefined
      : {
          keys: select.limitBy.keys.map((each) => columns.find(each)),
          count: rowCount(select.limitBy.count, context),
          offset: select.limitBy.offset === undefined ? 0 : rowCount(select.limitBy.offset, context),
          orderBy,
        }
  const distinctOn =
    select.distinctOn === undefined
      ? undefined
      : { keys: select.distinctOn.map((each) => columns.find(each)), count: 1, offset: 0, orderBy }
  const distinct = select.isDistinct && distinctOn === undefined ? 'DISTINCT ' : ''
  const limit = select.limit === undefined ? undefined : rowCount(select.limit, context)
  const offset = select.offset === undefined ? 0 : rowCount(select.offset, context)
  const hasTies = select.isWithTies && limit !== undefined && orderBy !== ''
  const ties = hasTies ? ` QUALIFY rank() OVER (${orderBy}) <= ${limit + offset}` : ''
  const top = `${hasTies || limit === undefined ? '' : ` LIMIT ${limit}`}${offset === 0 ? '' : ` OFFSET ${offset}`}`
  const fill = fillSql(ordered, items, context)
  return {
    sql(base, where) {
      let rows = `SELECT ${distinct}${columns.sql()} FROM ${base}${whereSql([...where, ...having])}${qualify}`
      if (distinctOn !== undefined) rows = firstPerGroup(rows, { ...distinctOn, alias: compilation.freshName('rows') })
      if (limitBy !== undefined) rows = firstPerGroup(rows, { ...limitBy, alias: compilation.freshName('rows') })
      if (fill !== undefined) rows = fill(rows)
      const alias = compilation.freshName('rows')
      const isChosen = distinctOn !== undefined || limitBy !== undefined || fill !== undefined
      if (!isChosen && !columns.hasExtra && orderBy === '' && ties === '' && top === '') return rows
      const names = items.map((_, at) => `o${at + 1}`).join(', ')
      return `SELECT ${names} FROM (${rows}) AS ${alias}${ties}${orderBy === '' ? '' : ` ${orderBy}`}${top}`
    },
  }
}

/** The columns of the inner SELECT: those of the SELECT list, and extra ones for expressions of other clauses. */
class InnerColumns {
  readonly #select: Select
  readonly #items: readonly Item[]
  readonly #context: Context
  readonly #extra: Value[] = []
  /** Places in the SELECT list; of equal ones the first. */
  readonly #byKey: ReadonlyMap<string, number>
  readonly #byName: ReadonlyMap<string, number>

  constructor(select: Select, items: readonly Item[], context: Context) {
    this.#select = select
    this.#items = items
    this.#context = context
    const places = [...items.entries()].toReversed()
    this.#byKey = new Map(places.map(([at, { key }]) => [key, at]))
    this.#byName = new Map(places.map(([at, { name }]) => [name, at]))
  }

  get hasExtra(): boolean {
    return this.#extra.length > 0
  }

  sql(): string {
    const own = this.#items.map((item, at) => `${plainSql(item.value)} AS o${at + 1}`)
    return [...own, ...this.#extra.map((each, at) => `${plainSql(each)} AS x${at + 1}`)].join(', ')
  }

  /** The name of the column that has the value of this expression. Adds one where there is none. */
  find(expression: Expression): string {
    const place = position(expression, this.#items)
    const key = expressionKey(expression, this.#context)
    const [name = '', ...rest] = expression.kind === 'identifier' ? expression.path : []
    const named = expression.kind === 'identifier' && rest.length === 0 ? this.#byName.get(name) : undefined
    const at = place ?? Math.min(this.#byKey.get(key) ?? Infinity, named ?? Infinity)
    if (Number.isFinite(at)) return `o${at + 1}`
    if (this.#select.isDistinct && this.#select.distinctOn === undefined)
      throw new QueryError(
        'NOT_IMPLEMENTED',
        `ORDER BY after SELECT DISTINCT is offered for columns of the SELECT list, at position ${expression.at}.`,
      )
    this.#extra.push(compile(expression, this.#context))
    return `x${this.#extra.length}`
  }

  /** The type of a column, by its name. */
  typeOf(name: string): Type {
    const at = Number(name.slice(1)) - 1
    return (name.startsWith('o') ? this.#items[at]?.value : this.#extra[at])?.type ?? UNKNOWN
  }
}

/** ORDER BY, of ALL every column of the SELECT list. */
function orderedColumns({ orderBy }: Select, items: readonly Item[], columns: InnerColumns): readonly Ordered[] {
  if (orderBy !== 'all') return orderBy.map((item) => ({ item, column: columns.find(item.of) }))
  return items.map(({ expression }, at) => ({
    item: { of: expression, isDescending: false, nulls: 'LAST' },
    column: `o${at + 1}`,
  }))
}

export function whereSql(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
}

type GroupRows = {
  /** Columns whose values make a group. */
  readonly keys: readonly string[]
  readonly count: number
  readonly offset: number
  /** The order of the result, which decides what the first rows are. */
  readonly orderBy: string
  /** The name of `rows` here. */
  readonly alias: string
}

/** The first rows of each group, for DISTINCT ON and LIMIT BY. */
function firstPerGroup(rows: string, { keys, count, offset, orderBy, alias }: GroupRows): string {
  const rank = `row_number() OVER (PARTITION BY ${keys.join(', ')}${orderBy === '' ? '' : ` ${orderBy}`})`
  return `SELECT * FROM (${rows}) AS ${alias} QUALIFY ${rank} BETWEEN ${offset + 1} AND ${offset + count}`
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
