import type { Compilation } from './compilation.ts'
import type { Scope } from './scope.ts'
import type { Value } from './value.ts'

/** Where an expression stands. */
export type Context = {
  readonly compilation: Compilation
  readonly scope: Scope
  readonly lambdas: ReadonlyMap<string, Value>
  /** After GROUP BY: finds a key or an aggregate by the key of its expression; undefined before it. */
  readonly grouped?: Grouped | undefined
  /** Makes rows out of an array, for arrayJoin. */
  rowsOf(array: Value, expressionKey: string): Value
  /** Levels of lambdas inside each other. */
  readonly lambdaDepth: number
}

export type Grouped = {
  /** The GROUP BY key of this expression. */
  key(expressionKey: string): Value | undefined
  /** The SQL of the GROUP BY key, before the rows are grouped. */
  keySql(expressionKey: string): string | undefined
  /** The column of an aggregate, computed once for equal expressions. */
  aggregate(expressionKey: string, compile: () => Value): Value
  /** The context in which keys and arguments of aggregates stand. */
  readonly inner: Context
  readonly mayBeEmpty: boolean
}
