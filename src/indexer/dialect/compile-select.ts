import { QueryError } from '../query/error.ts'
import type { Compilation } from './compilation.ts'
import { compile } from './compile-expression.ts'
import { compileSource } from './compile-source.ts'
import type { Context } from './context.ts'
import type { Column } from './expression/column-index.ts'
import { Resolving } from './expression/resolving.ts'
import { Aliases, CommonTables, type Compiled, collectAliases, type Scope } from './scope.ts'
import { isAggregating } from './select/aggregating.ts'
import { ArrayRows } from './select/array-rows.ts'
import { Grouping, type Output } from './select/grouping.ts'
import { compileItem, expandItem } from './select/items.ts'
import { finishRows, whereSql } from './select/rows.ts'
import type { Expression, Query, Select, SetOperation } from './syntax.ts'
import { duckType, supertype, type Type, typeName } from './types.ts'
import { conditionSql, convert, type Value, value } from './value.ts'

/** A SELECT of one constant takes as long as so many expressions. */
const STEPS_OF_SELECT = 4

/** Compiles a query. Names of `outer` are visible: its common table expressions and the expressions of its WITH. */
export function compileQuery(
  query: Query,
  outer: Scope | undefined,
  compilation: Compilation,
  isCorrelated = false,
): Compiled {
  return query.kind === 'set'
    ? compileSet(query, outer, compilation)
    : compileSelect(query, outer, compilation, isCorrelated)
}

/** Both sides in the common types of their columns. */
function compileSet(
  { operator, left, right, at }: SetOperation,
  outer: Scope | undefined,
  compilation: Compilation,
): Compiled {
  const [a, b] = [compileQuery(left, outer, compilation), compileQuery(right, outer, compilation)]
  if (a.columns.length !== b.columns.length)
    throw new QueryError(
      'UNION_ALL_RESULT_STRUCTURES_MISMATCH',
      `${operator} at position ${at} joins ${a.columns.length} columns with ${b.columns.length}.`,
    )
  const columns = a.columns.map((column, index) => {
    const other = b.columns[index] as Compiled['columns'][number]
    const type = supertype([column.type, other.type])
    if (type === undefined)
      throw new QueryError(
        'NO_COMMON_TYPE',
        `${operator} at position ${at}: column ${index + 1} is ${typeName(column.type)} on one side and ${typeName(other.type)} on the other.`,
      )
    return { ...column, type }
  })
  const side = ({ sql, columns: given }: Compiled): string => {
    const name = compilation.freshName('subquery')
    const list = columns.map(({ type }, index) => {
      const column = value(`${name}.o${index + 1}`, (given[index] as Compiled['columns'][number]).type)
      return `${converted(column, type)} AS o${index + 1}`
    })
    return `SELECT ${list.join(', ')} FROM (${sql}) AS ${name}`
  }
  return { sql: `${side(a)} ${operator} ${side(b)}`, columns }
}

/** A column in the common type of both sides. */
function converted(column: Value, type: Type): string {
  if (type.kind === 'unknown') return column.sql
  if (duckType(type).includes('BLOB')) return convert(column, type)
  return `CAST(${column.sql} AS ${duckType(type)})`
}

function compileSelect(
  select: Select,
  outer: Scope | undefined,
  compilation: Compilation,
  isCorrelated: boolean,
): Compiled {
  compilation.countStep(STEPS_OF_SELECT)
  const names = bindNames(select, outer, compilation)
  const source = resolveSource(select, names, isCorrelated ? outer : undefined, compilation)
  const grouping = isAggregating(select, source.items, names.aliases)
    ? new Grouping(select, source.items, source.context)
    : undefined
  const rows = renderSelect(select, source, grouping, 'rows')
  if (!select.hasTotals) return rows
  if (select.having !== undefined)
    throw new QueryError('NOT_IMPLEMENTED', 'Clause WITH TOTALS together with HAVING is not offered.')
  return { ...rows, totals: renderSelect(select, source, grouping, 'totals').sql }
}

/** The names of one SELECT, besides its columns. */
type Names = Pick<Scope, 'aliases' | 'commons' | 'windows' | 'prefersLeft'>

function scopeOf(names: Names, columns: readonly Column[], outer?: Scope): Scope {
  return { ...names, columns, resolving: new Resolving(), outer }
}

/** WITH in its order, so that a common table may use those before it; then the aliases of the SELECT itself. */
function bindNames(select: Select, outer: Scope | undefined, compilation: Compilation): Names {
  const { from, windows } = select
  const aliases = new Aliases(outer?.aliases)
  const commons = new CommonTables(outer?.commons)
  const prefersLeft = from?.kind === 'join' && from.left.kind !== 'join' && from.right.kind !== 'join'
  const names = { aliases, commons, windows, prefersLeft }
  compilation.countEntries(select.with.length)
  for (const { name, of, query } of select.with) {
    if (query !== undefined) {
      const { sql, columns } = compileQuery(query, scopeOf(names, []), compilation)
      commons.add(name, { name: compilation.addCommonTable(sql), columns })
    } else if (of !== undefined) aliases.share(name, of)
  }
  const own = new Map<string, Expression>()
  collectAliases([...select.items, ...select.where, ...(select.groupBy?.keys ?? [])], own)
  for (const [name, of] of own) aliases.add(name, of)
  return names
}

/** The rows of a SELECT before they are grouped. */
type ResolvedSource = {
  readonly from: string
  readonly where: readonly string[]
  /** The SELECT list, without `*`. */
  readonly items: readonly Expression[]
  /** What expressions over these rows are compiled in. */
  readonly context: Context
  readonly arrayRows: ArrayRows
}

function resolveSource(
  select: Select,
  names: Names,
  outer: Scope | undefined,
  compilation: Compilation,
): ResolvedSource {
  const arrayRows = new ArrayRows(compilation)
  const contextOf = (columns: readonly Column[]): Context => ({
    compilation,
    scope: scopeOf(names, columns, outer),
    lambdas: new Map(),
    lambdaDepth: 0,
    rowsOf: (array, text) => arrayRows.elementOf(array, text, 'beforeGroups'),
  })
  const from =
    select.from === undefined ? { sql: '(SELECT 1 AS one) AS one', columns: [] } : compileSource(select.from, contextOf)
  const context = contextOf(from.columns)
  const items = select.items.flatMap((item) => expandItem(item, context))
  const where = select.where.map((each) => conditionSql(compile(each, context)))
  return { from: from.sql, where, items, context, arrayRows }
}

function renderSelect(
  select: Select,
  { from, where, items, context: source, arrayRows }: ResolvedSource,
  grouping: Grouping | undefined,
  output: Output,
): Compiled {
  const context: Context =
    grouping === undefined
      ? source
      : {
          ...source,
          grouped: grouping.columnsFor(output),
          rowsOf: (array, text) => arrayRows.elementOf(array, text, 'afterGroups'),
        }
  const compiled = items.map((item) => compileItem(item, context))
  const rows = finishRows(output === 'totals' ? asSingleRow(select) : select, compiled, context)
  // Only now is it known which aggregates and arrays FROM has to compute: the expressions above add them.
  const { beforeGroups, afterGroups } = arrayRows.joins
  const joined = `${from}${beforeGroups}`
  const sql =
    grouping === undefined
      ? rows.sql(joined, where)
      : rows.sql(`(${grouping.sql(`${joined}${whereSql(where)}`, output)}) AS ${grouping.alias}${afterGroups}`, [])
  return { sql, columns: compiled.map(({ name, value: { type } }) => ({ name, type })) }
}

/** Without the clauses that order and choose rows. */
function asSingleRow(select: Select): Select {
  return {
    ...select,
    orderBy: [],
    limit: undefined,
    offset: undefined,
    limitBy: undefined,
    isDistinct: false,
    distinctOn: undefined,
  }
}
