import { QueryError } from '../query/error.ts'
import { nearNames } from '../query/near-names.ts'
import { foldName, shownName } from '../query/sql-tokens.ts'
import { type Column, columnsOf, matchColumn } from './expression/column-index.ts'
import type { Resolving } from './expression/resolving.ts'
import type { Expression, Identifier, Window } from './syntax.ts'
import type { Type } from './types.ts'

/** A compiled query: its rows are `sql`, its columns are named o1, o2 and so on there. */
export type Compiled = {
  readonly sql: string
  readonly columns: readonly { readonly name: string; readonly type: Type }[]
  /** The row of WITH TOTALS. */
  readonly totals?: string | undefined
}

export type CommonTable = { readonly name: string; readonly columns: Compiled['columns'] }

/** Common table expressions by name, with those of the SELECTs around; never copied, since a statement may have thousands. */
export class CommonTables {
  readonly #own = new Map<string, CommonTable>()
  readonly #outer: CommonTables | undefined

  constructor(outer: CommonTables | undefined) {
    this.#outer = outer
  }

  add(name: string, table: CommonTable): void {
    this.#own.set(name, table).set(foldName(name), table)
  }

  get(name: string): CommonTable | undefined {
    return this.#own.get(name) ?? this.#own.get(foldName(name)) ?? this.#outer?.get(name)
  }
}

/** Expressions by alias, with those of WITH of the SELECTs around; never copied, since a statement may have thousands. */
export class Aliases {
  readonly #own = new Map<string, Expression>()
  /** Those of WITH: they are visible in subqueries, other aliases are not. */
  readonly #shared = new Map<string, Expression>()
  readonly #outer: Aliases | undefined

  constructor(outer: Aliases | undefined) {
    this.#outer = outer
  }

  add(name: string, of: Expression): void {
    this.#own.set(name, of)
  }

  share(name: string, of: Expression): void {
    this.#shared.set(name, of)
  }

  get(name: string): Expression | undefined {
    return this.#own.get(name) ?? this.shared(name)
  }

  /** The names of this SELECT and its WITH. */
  names(): string[] {
    return [...this.#own.keys(), ...this.#shared.keys()]
  }

  shared(name: string): Expression | undefined {
    return this.#shared.get(name) ?? this.#outer?.shared(name)
  }
}

/** The names that one SELECT may use. */
export type Scope = {
  readonly columns: readonly Column[]
  /** Expressions by alias, anywhere in the SELECT and after its WITH. */
  readonly aliases: Aliases
  readonly resolving: Resolving
  readonly commons: CommonTables
  readonly windows: ReadonlyMap<string, Window>
  /** With one join a name that both sides have is the column of the left one, as in ClickHouse. */
  readonly prefersLeft?: boolean | undefined
  /** The SELECT around a subquery of an expression: its columns are visible, one value for each of its rows. */
  readonly outer?: Scope | undefined
}

export type Found =
  | { readonly column: Column; readonly isOuter?: boolean }
  | { readonly alias: string; readonly of: Expression }

/** A name that stands for nothing, and why. */
type Missing = { readonly missing: 'unknown' | 'ambiguous' | 'dropped' }

/** What an identifier stands for: an alias before a column, as in ClickHouse. */
export function lookUpName(scope: Scope, { path }: Pick<Identifier, 'path'>): Found | Missing {
  const [first = ''] = path
  if (path.length === 1) {
    const of = scope.aliases.get(first)
    if (of !== undefined && !scope.resolving.has(first)) return { alias: first, of }
  }
  for (let around: Scope | undefined = scope; around !== undefined; around = around.outer) {
    const match = around.columns.length === 0 ? undefined : matchColumn(around.columns, path)
    if (match === undefined) continue
    if (!match.isOnly && around.prefersLeft !== true) return { missing: 'ambiguous' }
    const isOuter = around !== scope
    if (match.column.isDropped === true && !isOuter) return { missing: 'dropped' }
    return { column: match.column, isOuter }
  }
  return { missing: 'unknown' }
}

/** The same. Throws QueryError, `withHint` with similar names, for a name that stands for nothing. */
export function findName(scope: Scope, { path, at }: Identifier, withHint = true): Found {
  const found = lookUpName(scope, { path })
  if (!('missing' in found)) return found
  const name = path.at(-1) ?? ''
  if (found.missing === 'ambiguous') throw ambiguousName(name, at)
  if (found.missing === 'dropped') throw columnDropped(matchColumn(scope.columns, path)?.column.name ?? name, at)
  const hint = withHint ? similarNames(scope, path) : ''
  throw new QueryError(
    'UNKNOWN_IDENTIFIER',
    `Unknown expression identifier ${path.map(shownName).join('.')} at position ${at}.${hint}`,
  )
}

/** Names compared for a hint: a statement may have thousands of columns. */
const HINT_NAMES_MAX = 500

function similarNames({ columns, aliases }: Scope, path: readonly string[]): string {
  const isOf = path.length > 1 ? columnsOf(columns, path.slice(0, -1)) : columns
  const names = [...(isOf.length > 0 ? isOf : columns).map(({ name }) => name), ...aliases.names()]
  const near = nearNames(path.at(-1) ?? '', names.slice(0, HINT_NAMES_MAX), 2)
  return near.length === 0 ? '' : ` Maybe you meant: ${near.map(shownName).join(', ')}.`
}

/** The column of this name. Throws QueryError where there are several. */
export function findColumn(columns: readonly Column[], name: string, at: number): Column | undefined {
  const match = matchColumn(columns, [name])
  if (match?.isOnly === false) throw ambiguousName(name, at)
  return match?.column
}

function ambiguousName(name: string, at: number): QueryError {
  return new QueryError(
    'AMBIGUOUS_IDENTIFIER',
    `Ambiguous identifier ${shownName(name)} at position ${at}: several tables have it; write the table before it.`,
  )
}

export function columnDropped(name: string, at: number): QueryError {
  return new QueryError(
    'NOT_IMPLEMENTED',
    `Column ${shownName(name)} of the other side of a SEMI JOIN is not offered, at position ${at}; use ANY JOIN.`,
  )
}

/** Every alias that is defined inside of these expressions. Subqueries have their own. */
export function collectAliases(expressions: readonly Expression[], into: Map<string, Expression>): void {
  for (const expression of expressions) visit(expression)
  function visit(expression: Expression): void {
    switch (expression.kind) {
      case 'alias':
        if (!into.has(expression.name)) into.set(expression.name, expression.of)
        visit(expression.of)
        break
      case 'call':
        expression.args.forEach(visit)
        break
      case 'cast':
        visit(expression.of)
        break
      case 'in':
        visit(expression.value)
        if (!('kind' in expression.set)) expression.set.forEach(visit)
        break
      default:
    }
  }
}
