import { QueryError, unknownTable } from '../query/error.ts'
import { foldName, shownName } from '../query/sql-tokens.ts'
import { compile } from './compile-expression.ts'
import type { Context } from './context.ts'
import type { Column } from './expression/column-index.ts'
import { tableFunctionNotOffered } from './function-list.ts'
import { compileOtherTableFunction } from './functions/table-functions.ts'
import { withoutNaN } from './not-a-number.ts'
import { type CommonTable, findColumn } from './scope.ts'
import type { Expression, Join, Source } from './syntax.ts'
import { tablesOf } from './tables.ts'
import { defaultOf, duckType, notNull, nullable, plain, supertype, typeName, UINT8, UINT64 } from './types.ts'
import { conditionSql, constantNumber, convert, plainSql, quoteName, type Value, value } from './value.ts'

/** The SQL of a FROM clause and the columns that it offers. */
export type From = { readonly sql: string; readonly columns: readonly Column[] }

/** `context` of expressions over these columns. */
type ContextOf = (columns: readonly Column[]) => Context

export function compileSource(source: Source, contextOf: ContextOf): From {
  switch (source.kind) {
    case 'table':
      return compileTable(source, contextOf([]))
    case 'query': {
      const { compilation, scope } = contextOf([])
      const { sql, columns } = compilation.compileQuery(source.query, scope)
      const name = compilation.freshName('subquery')
      compilation.countEntries(columns.length)
      return { sql: `(${sql}) AS ${name}`, columns: outputs(name, columns, source.alias ?? '') }
    }
    case 'function':
      return compileTableFunction(source, contextOf([]))
    case 'join':
      return compileJoin(source, contextOf)
    case 'arrays':
      return compileArrays(source, contextOf)
  }
}

function outputs(name: string, columns: CommonTable['columns'], table: string): Column[] {
  return columns.map((each, at) => ({
    name: each.name,
    table,
    value: value(`${name}.o${at + 1}`, each.type),
  }))
}

function compileTable(source: Extract<Source, { kind: 'table' }>, { compilation, scope }: Context): From {
  const [given = ''] = source.path
  const path = given.startsWith('{') ? compilation.identifierParameter(given, source.at) : source.path
  const name = path.at(-1) ?? ''
  const database = path.length > 1 ? path.at(-2) : undefined
  const alias = compilation.freshName('table')
  const common = database === undefined ? scope.commons.get(name) : undefined
  if (common !== undefined) {
    compilation.countEntries(common.columns.length)
    return { sql: `${common.name} AS ${alias}`, columns: outputs(alias, common.columns, source.alias ?? name) }
  }
  if (path.length > 2) throw unknownTable(shownName(name))
  const inDatabase = database === undefined ? compilation.database : foldName(database)
  const tables = tablesOf(inDatabase)
  if (tables === undefined)
    throw new QueryError('UNKNOWN_DATABASE', `Database ${shownName(database ?? '')} does not exist.`)
  const known = /[^\x20-\x7e]/.test(name) ? undefined : tables.get(foldName(name))
  if (known === undefined) throw unknownTable(shownName(name))
  return {
    sql: `${known.schema}.${quoteName(foldName(name))} AS ${alias}`,
    columns: known.columns.map((each) => ({
      name: each.name,
      table: source.alias ?? name,
      origin: [inDatabase, foldName(name)],
      value: value(`${alias}.${quoteName(each.name)}`, each.type),
    })),
  }
}

/** numbers(n), numbers(from, n): rows are made one after another, never as a list. */
function compileTableFunction(source: Extract<Source, { kind: 'function' }>, context: Context): From {
  const name = foldName(source.name)
  const other = compileOtherTableFunction(source, context)
  if (other !== undefined) return other
  if (name !== 'numbers' && name !== 'zeros') throw tableFunctionNotOffered(source.name, source.at)
  const args = source.args.map((each) => constantNumber(compile(each, context)))
  const [from, count] = args.length > 1 ? args : [0, args[0]]
  const isValid =
    from !== undefined &&
    count !== undefined &&
    from >= 0 &&
    count >= 0 &&
    Number.isSafeInteger(from + count) &&
    args.length <= 2
  if (!isValid)
    throw new QueryError(
      'BAD_ARGUMENTS',
      `Table function ${shownName(source.name)} at position ${source.at} takes one or two constant numbers.`,
    )
  const alias = context.compilation.freshName('table')
  const column: Column =
    name === 'numbers'
      ? { name: 'number', table: source.alias ?? source.name, value: value(`CAST(${alias}.range AS UBIGINT)`, UINT64) }
      : {
          name: 'zero',
          table: source.alias ?? source.name,
          value: value(`CAST(0 * ${alias}.range AS UTINYINT)`, UINT8),
        }
  return { sql: `range(${from}, ${from + count}) AS ${alias}`, columns: [column] }
}

/** Columns of a side that may have no row: NULL, or with join_use_nulls = 0 the default of the type. */
function optional(columns: readonly Column[], isOptional: boolean, usesNulls: boolean): readonly Column[] {
  if (!isOptional) return columns
  return columns.map((column) => ({ ...column, value: optionalValue(column.value, usesNulls) }))
}

/** Arrays and maps have no NULL, whatever join_use_nulls is: they are empty. The elements of a tuple are NULL. */
function optionalValue(given: Value, usesNulls: boolean): Value {
  const { sql, type } = given
  if (!usesNulls || type.kind === 'array' || type.kind === 'map')
    return { ...given, sql: `coalesce(${sql}, ${defaultOf(type)})` }
  if (type.kind !== 'tuple') return { ...given, type: nullable(type) }
  const before = type.items.map((item, at) => value(`struct_extract(${sql}, '${at + 1}')`, item))
  const items = before.map((each) => optionalValue(each, usesNulls))
  const isSame = items.every((each, at) => each.sql === before[at]?.sql)
  const packed = `struct_pack(${items.map((each, at) => `"${at + 1}" := ${each.sql}`).join(', ')})`
  return { ...given, sql: isSame ? sql : packed, type: { ...type, items: items.map((each) => each.type) } }
}

const KEYWORDS: Readonly<Record<Join['side'], string>> = {
  INNER: 'INNER JOIN',
  LEFT: 'LEFT JOIN',
  RIGHT: 'RIGHT JOIN',
  FULL: 'FULL JOIN',
  CROSS: 'CROSS JOIN',
}

function compileJoin(join: Join, contextOf: ContextOf): From {
  const left = compileSource(join.left, contextOf)
  const right = compileSource(join.right, contextOf)
  const context = contextOf([...left.columns, ...right.columns])
  context.compilation.countEntries(context.scope.columns.length)
  if (join.side === 'CROSS') return { sql: `${left.sql} CROSS JOIN ${right.sql}`, columns: context.scope.columns }
  const { joinUsesNulls } = context.compilation
  const pairs = (join.using ?? []).map((name) => usingPair(name, left, right, join.at))
  const on =
    pairs.length > 0 ? pairs.map(([a, b]) => sameKey(a.value, b.value)).join(' AND ') : conditionOf(join, context)
  if (join.strictness === 'SEMI' || join.strictness === 'ANTI')
    return halfJoin(join, left, right, on, pairs, joinUsesNulls)
  const sql =
    join.strictness === 'ANY'
      ? anyJoin(join, left, right, on, contextOf)
      : join.strictness === 'ASOF'
        ? asofJoin(join, left, right, on)
        : `${left.sql} ${KEYWORDS[join.side]} ${parenthesized(right)} ON ${on}`
  const isLeftOptional = join.side === 'RIGHT' || join.side === 'FULL'
  const isRightOptional = join.side === 'LEFT' || join.side === 'FULL'
  const leftColumns = optional(left.columns, isLeftOptional, joinUsesNulls)
  const rightColumns = optional(right.columns, isRightOptional, joinUsesNulls)
  const joined = new Set(pairs.map(([, b]) => placeOf(b)))
  const isMerged = (column: Column): boolean => joined.has(placeOf(column))
  return {
    sql,
    columns: [
      ...merged(leftColumns, pairs, join, joinUsesNulls),
      ...rightColumns.map((column) => (isMerged(column) ? { ...column, isMerged: true } : column)),
    ],
  }
}

/**
 * A name after USING stands for one column of the common type, after a RIGHT or FULL JOIN with the value of the side that has one. With the name of its
 * table each column keeps its own value.
 */
function merged(
  columns: readonly Column[],
  pairs: readonly (readonly [Column, Column])[],
  { side }: Join,
  usesNulls: boolean,
): readonly Column[] {
  const byPlace = new Map(pairs.toReversed().map((pair) => [placeOf(pair[0]), pair]))
  return columns.flatMap((column): readonly Column[] => {
    const pair = byPlace.get(placeOf(column))
    if (pair === undefined) return [column]
    const [a, b] = [pair[0].value, pair[1].value]
    const common = supertype([plain(a.type), plain(b.type)]) ?? plain(a.type)
    const isSame = typeName(notNull(common)) === typeName(notNull(plain(a.type)))
    const isEither = side === 'RIGHT' || side === 'FULL'
    if (!isEither && isSame) return [column]
    const both = isSame ? a.type : common
    const type = isEither
      ? side === 'FULL' && usesNulls
        ? nullable(both)
        : both
      : a.type.isNullable === true
        ? common
        : notNull(common)
    const shared = value(isEither ? `coalesce(${convert(a, common)}, ${convert(b, common)})` : convert(a, type), type)
    return [
      { ...column, isMerged: true },
      { name: column.name, table: '', value: shared },
    ]
  })
}

/** No name contains a NUL. */
function placeOf({ table, name }: Column): string {
  return `${table}\0${name}`
}

function parenthesized({ sql }: From): string {
  return / JOIN /.test(sql) && !sql.startsWith('(') ? `(${sql})` : sql
}

function usingPair(name: string, left: From, right: From, at: number): readonly [Column, Column] {
  const [a, b] = [findColumn(left.columns, name, at), findColumn(right.columns, name, at)]
  if (a === undefined || b === undefined)
    throw new QueryError(
      'UNKNOWN_IDENTIFIER',
      `USING at position ${at}: column ${shownName(name)} is not on both sides.`,
    )
  return [a, b]
}

function sameKey(a: Value, b: Value): string {
  const isFloat = a.type.kind === 'float' && b.type.kind === 'float'
  return isFloat ? `${withoutNaN(a.sql)} = ${b.sql}` : `${plainSql(a)} = ${plainSql(b)}`
}

function conditionOf({ on, at }: Join, context: Context): string {
  if (on === undefined)
    throw new QueryError('SYNTAX_ERROR', `Syntax error at position ${at}: a join needs ON or USING.`)
  return partsOf(on)
    .map((part) => compile(part, context))
    .map((part) => part.matchSql ?? conditionSql(part))
    .join(' AND ')
}

/** The conditions that AND joins. */
function partsOf(on: Expression): readonly Expression[] {
  return on.kind === 'call' && on.name === 'and' ? on.args.flatMap(partsOf) : [on]
}

/** Rows of one side with, or without, a match on the other. */
function halfJoin(
  { side, strictness }: Join,
  left: From,
  right: From,
  on: string,
  pairs: readonly (readonly [Column, Column])[],
  joinUsesNulls: boolean,
): From {
  const [kept, other] = side === 'RIGHT' ? [right, left] : [left, right]
  const sql = `${kept.sql} ${strictness === 'SEMI' ? 'SEMI' : 'ANTI'} JOIN ${parenthesized(other)} ON ${on}`
  const joined = new Set(pairs.flat())
  // Columns of the other side have no value here.
  const gone = other.columns.map((column): Column => {
    const { type } = optionalValue(column.value, joinUsesNulls)
    return {
      ...column,
      isMerged: joined.has(column),
      isDropped: strictness === 'SEMI',
      value: value(`CAST(${defaultOf(type)} AS ${duckType(type)})`, type),
    }
  })
  return { sql, columns: side === 'RIGHT' ? [...gone, ...kept.columns] : [...kept.columns, ...gone] }
}

/** At most one match for each row: the first of the equal keys on the side that may repeat, of INNER JOIN on both. */
function anyJoin({ side, on, using }: Join, left: From, right: From, condition: string, contextOf: ContextOf): string {
  const keysOf = (from: From): readonly string[] =>
    (using ?? []).map((name) => plainSql((findColumn(from.columns, name, 0) as Column).value))
  const keys =
    using === undefined ? equalKeys(on, left, right, contextOf) : { left: keysOf(left), right: keysOf(right) }
  const once = (from: From, list: readonly string[]): string =>
    `(SELECT * FROM ${from.sql} QUALIFY row_number() OVER (PARTITION BY ${list.join(', ')}) = 1)`
  const renamed = (from: From, list: readonly string[]): string => `${once(from, list)} AS ${aliasOf(from)}`
  if (side === 'RIGHT') return `${renamed(left, keys.left)} RIGHT JOIN ${right.sql} ON ${condition}`
  if (side === 'INNER') return `${renamed(left, keys.left)} INNER JOIN ${renamed(right, keys.right)} ON ${condition}`
  return `${left.sql} ${KEYWORDS[side]} ${renamed(right, keys.right)} ON ${condition}`
}

/** The alias of a side that is one table or subquery. */
function aliasOf({ sql, columns }: From): string {
  const alias = /^[a-z]+\d+(?=\.)/.exec(columns[0]?.value.sql ?? '')?.[0]
  if (alias === undefined || !sql.endsWith(` AS ${alias}`))
    throw new QueryError(
      'NOT_IMPLEMENTED',
      'ANY JOIN is offered between tables and subqueries; put the other joins into a subquery.',
    )
  return alias
}

function equalKeys(
  on: Expression | undefined,
  left: From,
  right: From,
  contextOf: ContextOf,
): { left: string[]; right: string[] } {
  const keys: { left: string[]; right: string[] } = { left: [], right: [] }
  const [inLeft, inRight] = [contextOf(left.columns), contextOf(right.columns)]
  for (const part of on === undefined ? [] : partsOf(on)) {
    if (part.kind !== 'call' || part.name !== 'equals')
      throw new QueryError('NOT_IMPLEMENTED', 'ANY JOIN is offered with equal columns, joined by AND.')
    const sides = part.args.map((each) => ({
      left: tryCompile(each, inLeft),
      right: tryCompile(each, inRight),
    }))
    const [a, b] = sides
    const straight = a?.left !== undefined && b?.right !== undefined
    const [left_, right_] = straight ? [a.left, b.right] : [b?.left, a?.right]
    if (left_ === undefined || right_ === undefined) continue
    keys.left.push(plainSql(left_))
    keys.right.push(plainSql(right_))
  }
  if (keys.left.length === 0)
    throw new QueryError('NOT_IMPLEMENTED', 'ANY JOIN is offered with equal columns, joined by AND.')
  return keys
}

function tryCompile(expression: Expression, context: Context): Value | undefined {
  return context.compilation.attempt(() => compile(expression, context))
}

function asofJoin({ side }: Join, left: From, right: From, on: string): string {
  return `${left.sql} ASOF ${side === 'LEFT' ? 'LEFT ' : ''}JOIN ${right.sql} ON ${on}`
}

/** The engine would walk the shorter list with NULL behind its end. */
function asLongAs(first: string, list: string): string {
  return `(CASE WHEN len(${list}) <> len(${first}) THEN error('sluice SIZES_OF_ARRAYS_DONT_MATCH: Arrays of ARRAY JOIN must have equal size') ELSE ${list} END)`
}

/** ARRAY JOIN: one row for each element; several arrays are walked together. */
function compileArrays(source: Extract<Source, { kind: 'arrays' }>, contextOf: ContextOf): From {
  const left: From = source.left === undefined ? { sql: '', columns: [] } : compileSource(source.left, contextOf)
  const context = contextOf(left.columns)
  const name = context.compilation.freshName('lateral')
  const lists: string[] = []
  const columns: Column[] = []
  const replaced = new Set<string>()
  for (const [at, each] of source.arrays.entries()) {
    const array = compile(each, context)
    if (array.type.kind !== 'array')
      throw new QueryError('TYPE_MISMATCH', `ARRAY JOIN at position ${each.at} takes arrays.`)
    const of = array.type.of
    const list = source.isLeft
      ? `CASE WHEN len(${array.sql}) = 0 THEN [${defaultOf(plain(of))}] ELSE ${array.sql} END`
      : array.sql
    lists.push(list)
    const shown = each.kind === 'alias' ? each.name : each.kind === 'identifier' ? (each.path.at(-1) ?? '') : ''
    if (each.kind === 'identifier') replaced.add(shown)
    columns.push({ name: shown, table: '', value: value(`${name}.c${at + 1}`, of) })
  }
  const kept = left.columns.filter((column) => !replaced.has(column.name))
  // The first list is written beside each of the others.
  for (const list of lists) context.compilation.checkLength(`${lists[0]}${list}`)
  const parts = lists.map((list, at) => `unnest(${at === 0 ? list : asLongAs(lists[0] as string, list)}) AS c${at + 1}`)
  const lateral = `(SELECT ${parts.join(', ')}) AS ${name}`
  return {
    sql: left.sql === '' ? lateral : `${left.sql} CROSS JOIN LATERAL ${lateral}`,
    columns: [...kept, ...columns],
  }
}
