import { QueryError } from '../query/error.ts'
import { foldName, shownName } from '../query/sql-tokens.ts'
import { columnPattern } from './column-pattern.ts'
import { compile } from './compile-expression.ts'
import type { Item } from './compile-fill.ts'
import { finishRows } from './compile-rows.ts'
import { compileSource, type SourceOptions } from './compile-source.ts'
import type { Context, Grouped, Statement } from './context.ts'
import { displayName } from './display-name.ts'
import { Resolving } from './expression/resolving.ts'
import { textOf } from './expression/text.ts'
import { aggregateNamed } from './offered.ts'
import {
  Aliases,
  type Column,
  CommonTables,
  type Compiled,
  collectAliases,
  columnDropped,
  columnsOf,
  type Scope,
} from './scope.ts'
import { type Call, call, type Expression, type Query, type Select, type SetOperation, type Star } from './syntax.ts'
import { defaultOf, duckType, supertype, type Type, typeName } from './types.ts'
import { conditionSql, convert, plainSql, type Value, value } from './value.ts'

export type SelectOptions = SourceOptions & {
  readonly statement: Statement
  /** Adds a common table expression to the statement. Returns its name. */
  addCommon(sql: string): string
}

/** Compiles a query. Names of `outer` are visible: its common table expressions and the expressions of its WITH. */
export function compileQuery(
  query: Query,
  outer: Scope | undefined,
  options: SelectOptions,
  isCorrelated = false,
): Compiled {
  return query.kind === 'set' ? compileSet(query, outer, options) : compileOne(query, outer, options, isCorrelated)
}

/** Both sides in the common types of their columns. */
function compileSet(
  { operator, left, right, at }: SetOperation,
  outer: Scope | undefined,
  options: SelectOptions,
): Compiled {
  const [a, b] = [compileQuery(left, outer, options), compileQuery(right, outer, options)]
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
    const name = options.statement.fresh('q')
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
  if (type.kind === 'string' && type.isBytes === true) return convert(column, type)
  return `CAST(${column.sql} AS ${duckType(type)})`
}

function compileOne(select: Select, outer: Scope | undefined, options: SelectOptions, isCorrelated: boolean): Compiled {
  const { statement } = options
  const aliases = new Aliases(outer?.aliases)
  const commons = new CommonTables(outer?.commons)
  const { windows, from: joined } = select
  const prefersLeft = joined?.kind === 'join' && joined.left.kind !== 'join' && joined.right.kind !== 'join'
  const scopeOf = (columns: readonly Column[], around?: Scope): Scope => ({
    columns,
    aliases,
    resolving: new Resolving(),
    commons,
    windows,
    outer: around,
    prefersLeft,
  })
  for (const each of select.with) {
    if (each.query === undefined) {
      if (each.of !== undefined) aliases.share(each.name, each.of)
    } else {
      const { sql, columns } = compileQuery(each.query, scopeOf([]), options)
      commons.add(each.name, { name: options.addCommon(sql), columns })
    }
  }
  const own = new Map<string, Expression>()
  collectAliases([...select.items, ...select.where, ...(select.groupBy?.keys ?? [])], own)
  for (const [name, of] of own) aliases.add(name, of)
  const laterals: Laterals = { before: [], after: [], found: new Map() }
  const contextOf = (columns: readonly Column[]): Context => ({
    statement,
    scope: scopeOf(columns, isCorrelated ? outer : undefined),
    lambdas: new Map(),
    lambdaDepth: 0,
    rowsOf: (array, key) => rowsOf(array, key, laterals, 'before', statement),
  })
  const from = select.from === undefined ? { sql: '', columns: [] } : compileSource(select.from, contextOf, options)
  const source = contextOf(from.columns)
  const items = select.items.flatMap((item) => expandStar(item, from.columns, source))
  const where = select.where.map((each) => conditionSql(compile(each, source)))
  const ordered = select.orderBy === 'all' ? [] : select.orderBy.map(({ of }) => of)
  const aggregated = new Map<string, boolean>()
  const isGrouped =
    select.groupBy !== undefined ||
    [...items, ...ordered, ...(select.having === undefined ? [] : [select.having])].some((each) =>
      hasAggregate(each, aliases, aggregated),
    )
  const state = isGrouped ? group(select, items, source) : undefined
  const context: Context =
    state === undefined
      ? source
      : { ...source, grouped: state.grouped, rowsOf: (array, key) => rowsOf(array, key, laterals, 'after', statement) }
  const build = (isTotals: boolean): { sql: string; columns: Compiled['columns'] } => {
    state?.setTotals(isTotals)
    const compiled = items.map(
      (item): Item => ({
        expression: item,
        name: nameOf(item, from.columns),
        value: compile(item, context),
        text: textOf(item, context),
      }),
    )
    const rows = finishRows(
      isTotals
        ? {
            ...select,
            orderBy: [],
            limit: undefined,
            offset: undefined,
            limitBy: undefined,
            isDistinct: false,
            distinctOn: undefined,
          }
        : select,
      compiled,
      context,
    )
    // Compiled first: it finds the aggregates and arrays that FROM has to compute.
    const base = baseSql(from.sql, where, laterals, state, isTotals)
    return {
      sql: rows.sql(base, state === undefined ? where : []),
      columns: compiled.map(({ name, value: of }) => ({ name, type: of.type })),
    }
  }
  const main = build(false)
  if (!select.hasTotals) return main
  if (select.having !== undefined)
    throw new QueryError('NOT_IMPLEMENTED', 'Clause WITH TOTALS together with HAVING is not offered.')
  return { ...main, totals: build(true).sql }
}

type Laterals = { readonly before: string[]; readonly after: string[]; readonly found: Map<string, Value> }

/** arrayJoin: the rows of an array, once for equal texts. */
function rowsOf(array: Value, key: string, laterals: Laterals, place: 'before' | 'after', statement: Statement): Value {
  const known = laterals.found.get(key)
  if (known !== undefined) return known
  const name = statement.fresh('j')
  laterals[place].push(` CROSS JOIN LATERAL (SELECT unnest(${array.sql}) AS c1) AS ${name}`)
  const type: Type = array.type.kind === 'array' ? array.type.of : array.type
  const made = value(`${name}.c1`, type)
  laterals.found.set(key, made)
  return made
}

function baseSql(
  from: string,
  where: readonly string[],
  laterals: Laterals,
  state: GroupState | undefined,
  isTotals: boolean,
): string {
  const start = from === '' ? '(SELECT 1 AS one) AS one' : from
  const source = `${start}${laterals.before.join('')}`
  if (state === undefined) return source
  return `(${state.sql(`${source}${where.length === 0 ? '' : ` WHERE ${where.join(' AND ')}`}`, isTotals)}) AS ${state.name}${laterals.after.join('')}`
}

type GroupState = {
  readonly name: string
  readonly grouped: Grouped
  setTotals(isTotals: boolean): void
  sql(source: string, isTotals: boolean): string
}

function group(select: Select, items: readonly Expression[], source: Context): GroupState {
  const { statement } = source
  const name = statement.fresh('g')
  const expressions = keysOf(select, items, source)
  const kind = select.groupBy?.kind ?? 'list'
  const isSubtotal = kind === 'rollup' || kind === 'cube' || kind === 'sets'
  const keys = expressions.map((each, at) => {
    const of = compile(each, source)
    const column = `${name}.k${at + 1}`
    // A subtotal has NULL in the engine and the default of the type in ClickHouse.
    const sql = isSubtotal && of.type.isNullable !== true ? `coalesce(${column}, ${defaultOf(of.type)})` : column
    return {
      text: textOf(each, source),
      sql: plainSql(of),
      value: value(sql, of.type),
    }
  })
  // Of equal keys the first one counts.
  const byText = new Map(keys.toReversed().map((key) => [key.text, key]))
  const aggregates = new Map<string, { readonly sql: string; readonly value: Value }>()
  let isTotals = false
  const grouped: Grouped = {
    inner: source,
    mayBeEmpty: keys.length === 0 || isSubtotal,
    key(text) {
      const found = byText.get(text)
      return found === undefined
        ? undefined
        : isTotals
          ? { ...found.value, sql: `CAST(${defaultOf(found.value.type)} AS ${duckType(found.value.type)})` }
          : found.value
    },
    keySql: (text) => byText.get(text)?.sql,
    aggregate(text, make) {
      const known = aggregates.get(text)
      if (known !== undefined) return known.value
      const made = make()
      const column = {
        ...made,
        sql: `${name}.a${aggregates.size + 1}`,
        isCondition: false,
        isConstant: false,
        constant: undefined,
      }
      aggregates.set(text, { sql: plainSql(made), value: column })
      return column
    },
  }
  const indexes = (set: readonly Expression[]): string =>
    `(${set.map((each) => byText.get(textOf(each, source))?.sql ?? '').join(', ')})`
  return {
    name,
    grouped,
    setTotals(flag) {
      isTotals = flag
    },
    sql(from, totals) {
      const list = [
        ...(totals ? [] : keys.map((key, at) => `${key.sql} AS k${at + 1}`)),
        ...[...aggregates.values()].map((each, at) => `${each.sql} AS a${at + 1}`),
      ]
      const columns = list.length === 0 ? 'count(*) AS a0' : list.join(', ')
      if (totals || keys.length === 0) return `SELECT ${columns} FROM ${from}`
      const texts = keys.map((key) => key.sql).join(', ')
      const by =
        kind === 'rollup'
          ? `ROLLUP (${texts})`
          : kind === 'cube'
            ? `CUBE (${texts})`
            : kind === 'sets'
              ? `GROUPING SETS (${(select.groupBy?.sets ?? []).map(indexes).join(', ')})`
              : texts
      return `SELECT ${columns} FROM ${from} GROUP BY ${by}`
    },
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

/** `GROUP BY 1` and `ORDER BY 2` name columns of the SELECT list. */
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

/** Whether an aggregate is computed here: not inside of a subquery, nor as a window function. */
export function hasAggregate(
  expression: Expression,
  aliases: Pick<Aliases, 'get'>,
  /** Results of aliases, so that each is visited once. */
  known = new Map<string, boolean>(),
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

/** The alias, or the text of the expression; a column that an earlier table has, too, is shown with its table. */
function nameOf(item: Expression, columns: readonly Column[]): string {
  const name = displayName(item)
  if (item.kind !== 'identifier' || item.path.length < 2) return name
  const table = item.path.at(-2) ?? ''
  const first = columns.find((column) => column.name === name)
  return first === undefined || first.table === table || first.table === '' ? name : `${table}.${name}`
}

/** `untuple(x)`: each element as a column. */
function elementsOf({ args, at }: Call, context: Context): readonly Expression[] {
  const [of] = args
  const type = of === undefined ? undefined : compile(of, context).type
  if (of === undefined || args.length !== 1 || type?.kind !== 'tuple')
    throw new QueryError('ILLEGAL_TYPE_OF_ARGUMENT', `Function untuple at position ${at} takes a tuple.`)
  return type.items.map((_, index) => call('tupleElement', [of, { kind: 'number', text: String(index + 1), at }], at))
}

/** `*`, `t.*` and COLUMNS('…') with EXCEPT, REPLACE and APPLY. */
function expandStar(item: Expression, columns: readonly Column[], context: Context): readonly Expression[] {
  if (item.kind === 'call' && foldName(item.name) === 'untuple') return elementsOf(item, context)
  const star: Star | undefined = item.kind === 'star' ? item : undefined
  if (star === undefined) return [item]
  const among =
    star.table === undefined ? columns.filter((each) => each.isMerged !== true) : columnsOf(columns, [star.table])
  if (among.length === 0)
    throw new QueryError('UNKNOWN_IDENTIFIER', `There are no columns for * at position ${star.at}.`)
  const pattern = star.pattern === undefined ? undefined : columnPattern(star.pattern, star.at)
  for (const name of [...star.except, ...star.replace.map((each) => each.name)])
    if (!among.some((each) => each.name === name))
      throw new QueryError(
        'UNKNOWN_IDENTIFIER',
        `Column ${shownName(name)} after * at position ${star.at} does not exist.`,
      )
  const chosen = among.filter(
    (each) => !star.except.includes(each.name) && (pattern === undefined || pattern(each.name)),
  )
  return chosen.map((column): Expression => {
    if (column.isDropped === true) throw columnDropped(column.name, star.at)
    const replaced = star.replace.find((each) => each.name === column.name)
    const of: Expression =
      replaced === undefined
        ? { kind: 'resolved', name: column.name, value: column.value, at: star.at }
        : { ...replaced }
    if (star.apply.length === 0) {
      // Inside of a SELECT with GROUP BY the column is looked up by its name.
      return of.kind === 'resolved' && context.grouped !== undefined
        ? { kind: 'identifier', path: [column.name], at: star.at }
        : of
    }
    return star.apply.reduce<Expression>((inner, name) => ({ kind: 'call', name, args: [inner], at: star.at }), of)
  })
}
