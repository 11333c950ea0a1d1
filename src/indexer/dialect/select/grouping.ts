import { QueryError } from '../../query/error.ts'
import { shownName } from '../../query/sql-tokens.ts'
import { compile } from '../compile-expression.ts'
import type { Context, Grouped } from '../context.ts'
import { expressionKey } from '../expression/key.ts'
import type { Expression, Select } from '../syntax.ts'
import { defaultOf, duckType } from '../types.ts'
import { plainSql, type Value, value } from '../value.ts'
import { hasAggregate } from './aggregating.ts'

/** What a SELECT is rendered for: its rows, or the row of WITH TOTALS, which is one group of all rows. */
export type Output = 'rows' | 'totals'

/** `sql` computes it before the rows are grouped; `value` is its column after that. */
type Computed = { readonly sql: string; readonly value: Value }

/** GROUP BY of one SELECT. The keys are known from the start; aggregates are added by the expressions that use them. */
export class Grouping {
  readonly alias: string
  readonly #source: Context
  readonly #groupBy: Select['groupBy']
  readonly #hasSubtotals: boolean
  readonly #keys: readonly Computed[]
  readonly #keysByExpression: ReadonlyMap<string, Computed>
  readonly #aggregates = new Map<string, Computed>()

  constructor(select: Select, items: readonly Expression[], source: Context) {
    this.alias = source.compilation.freshName('groups')
    this.#source = source
    this.#groupBy = select.groupBy
    const kind = select.groupBy?.kind
    this.#hasSubtotals = kind === 'rollup' || kind === 'cube' || kind === 'sets'
    const keys = keysOf(select, items, source).map((each, at) => this.#compileKey(each, `${this.alias}.k${at + 1}`))
    this.#keys = keys
    // The first of equal keys counts.
    this.#keysByExpression = new Map(keys.toReversed().map((key) => [key.expression, key]))
  }

  #compileKey(key: Expression, column: string): Computed & { readonly expression: string } {
    const of = compile(key, this.#source)
    // A subtotal has NULL in the engine and the default of the type in ClickHouse.
    const isFilled = this.#hasSubtotals && of.type.isNullable !== true
    return {
      expression: expressionKey(key, this.#source),
      sql: plainSql(of),
      value: value(isFilled ? `coalesce(${column}, ${defaultOf(of.type)})` : column, of.type),
    }
  }

  /** The keys and aggregates as the expressions after GROUP BY see them. */
  columnsFor(output: Output): Grouped {
    return {
      inner: this.#source,
      mayBeEmpty: this.#keys.length === 0 || this.#hasSubtotals,
      key: (expression) => {
        const column = this.#keysByExpression.get(expression)?.value
        if (column === undefined || output === 'rows') return column
        return { ...column, sql: `CAST(${defaultOf(column.type)} AS ${duckType(column.type)})` }
      },
      keySql: (expression) => this.#keysByExpression.get(expression)?.sql,
      aggregate: (expression, make) =>
        this.#aggregates.get(expression)?.value ?? this.#addAggregate(expression, make()),
    }
  }

  #addAggregate(expression: string, made: Value): Value {
    const column = {
      ...made,
      sql: `${this.alias}.a${this.#aggregates.size + 1}`,
      isCondition: false,
      isConstant: false,
      constant: undefined,
    }
    this.#aggregates.set(expression, { sql: plainSql(made), value: column })
    return column
  }

  /** The SELECT that groups the rows of `from`. It has the aggregates of the expressions that are compiled so far. */
  sql(from: string, output: Output): string {
    const keys = output === 'totals' ? [] : this.#keys
    const list = [
      ...keys.map(({ sql }, at) => `${sql} AS k${at + 1}`),
      ...[...this.#aggregates.values()].map(({ sql }, at) => `${sql} AS a${at + 1}`),
    ]
    const rows = `SELECT ${list.length === 0 ? 'count(*) AS a0' : list.join(', ')} FROM ${from}`
    return keys.length === 0 ? rows : `${rows} GROUP BY ${this.#groupBySql()}`
  }

  #groupBySql(): string {
    const keys = this.#keys.map(({ sql }) => sql).join(', ')
    switch (this.#groupBy?.kind) {
      case 'rollup':
        return `ROLLUP (${keys})`
      case 'cube':
        return `CUBE (${keys})`
      case 'sets':
        return `GROUPING SETS (${(this.#groupBy.sets ?? []).map((set) => this.#setSql(set)).join(', ')})`
      default:
        return keys
    }
  }

  #setSql(set: readonly Expression[]): string {
    return `(${set.map((each) => this.#keysByExpression.get(expressionKey(each, this.#source))?.sql ?? '').join(', ')})`
  }
}

/** The expressions of GROUP BY: numbers are positions of the SELECT list, ALL is everything without an aggregate. */
function keysOf({ groupBy }: Select, items: readonly Expression[], { scope }: Context): readonly Expression[] {
  if (groupBy === undefined) return []
  const known = new Map<string, boolean>()
  if (groupBy.kind === 'all') return items.filter((item) => !hasAggregate(item, scope.aliases, known))
  const unique = new Map<Expression, Expression>()
  for (const key of groupBy.keys) unique.set(key, positioned(key, items))
  return [...unique.values()]
}

/** `GROUP BY 1` names a column of the SELECT list. */
function positioned(expression: Expression, items: readonly Expression[]): Expression {
  if (expression.kind !== 'number' || !/^\d+$/.test(expression.text)) return expression
  const item = items[Number(expression.text) - 1]
  if (item === undefined)
    throw new QueryError(
      'BAD_ARGUMENTS',
      `Position ${shownName(expression.text)} at position ${expression.at} is not in the SELECT list.`,
    )
  return item
}
