import type { Compilation } from './compilation.ts'
import type { Scope } from './scope.ts'
import type { Value } from './value.ts'

/** Where an expression stands. */
export type Context = {
  readonly compilation: Compilation
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
