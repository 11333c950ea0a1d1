import type { Compiled, Scope } from './scope.ts'
import type { Query } from './syntax.ts'
import type { Type } from './types.ts'
import type { Value } from './value.ts'

/** The state of compiling one statement. */
export type Statement = {
  fresh(prefix?: string): string
  /** A subquery. With `isCorrelated` it may use the columns of the scope. */
  query(query: Query, scope: Scope, isCorrelated?: boolean): Compiled
  /** The SQL of a query parameter. */
  parameter(name: string, type: string): Value
  /** The value of a parameter that must be known before the statement runs, such as that of LIMIT. */
  number(name: string, at: number): number
  /** Counts a step of the translation. Throws QueryError when there are too many. */
  step(): void
  /** A text of a few characters in the place of this one: the same for equal texts. */
  shortText(text: string): string
  /** Throws QueryError for a time whose zone would be that of the session. */
  checkZone(type: Type): void
  /** Throws QueryError when the SQL becomes too long. */
  measure(sql: string): void
}

/** Where an expression stands. */
export type Context = {
  readonly statement: Statement
  readonly scope: Scope
  readonly lambdas: ReadonlyMap<string, Value>
  /** After GROUP BY: finds a key or an aggregate by its text; undefined before it. */
  readonly grouped?: Grouped | undefined
  /** Makes rows out of an array, for arrayJoin. */
  rowsOf(array: Value, key: string): Value
  /** Levels of lambdas inside each other. */
  readonly lambdaDepth: number
}

export type Grouped = {
  /** The key with this text. */
  key(text: string): Value | undefined
  /** The SQL of the key with this text, before the rows are grouped. */
  keySql(text: string): string | undefined
  /** The column of an aggregate, computed once for equal texts. */
  aggregate(text: string, compile: () => Value): Value
  /** The context in which keys and arguments of aggregates stand. */
  readonly inner: Context
  readonly mayBeEmpty: boolean
}
