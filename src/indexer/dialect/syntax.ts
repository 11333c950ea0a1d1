import type { Value } from './value.ts'

/** A SELECT of ClickHouse as the parser reads it. Operators are calls of the functions that ClickHouse writes for them. */

/** `at` is the offset in the statement, for errors. */
type At = { readonly at: number }

export type Literal = At & { readonly kind: 'number' | 'string' | 'null' | 'bool'; readonly text: string }
export type Identifier = At & { readonly kind: 'identifier'; readonly path: readonly string[] }
export type Call = At & {
  readonly kind: 'call'
  readonly name: string
  /** The first pair of parentheses of `quantile(0.5)(x)`. */
  readonly parameters?: readonly Expression[] | undefined
  readonly args: readonly Expression[]
  readonly isDistinct?: boolean
  readonly filter?: Expression | undefined
  /** A window, or the name of one. */
  readonly over?: Window | string | undefined
}
export type Lambda = At & { readonly kind: 'lambda'; readonly names: readonly string[]; readonly body: Expression }
export type Star = At & {
  readonly kind: 'star'
  readonly table?: string | undefined
  /** `COLUMNS('regular expression')`. */
  readonly pattern?: string | undefined
  readonly except: readonly string[]
  readonly replace: readonly Alias[]
  readonly apply: readonly string[]
}
export type Alias = At & { readonly kind: 'alias'; readonly name: string; readonly of: Expression }
export type Cast = At & { readonly kind: 'cast'; readonly of: Expression; readonly type: string }
export type InSet = At & {
  readonly kind: 'in'
  readonly value: Expression
  readonly isNot: boolean
  readonly set: readonly Expression[] | Query
}
export type Subquery = At & { readonly kind: 'subquery'; readonly query: Query; readonly isExists: boolean }
export type Parameter = At & { readonly kind: 'parameter'; readonly name: string; readonly type: string }

/** A column that is already found, such as one of `*`. */
export type Resolved = At & { readonly kind: 'resolved'; readonly name: string; readonly value: Value }

export type Expression =
  | Resolved
  | Literal
  | Identifier
  | Call
  | Lambda
  | Star
  | Alias
  | Cast
  | InSet
  | Subquery
  | Parameter

export type Window = {
  readonly base?: string | undefined
  readonly partition: readonly Expression[]
  readonly order: readonly OrderItem[]
  readonly frame?: Frame | undefined
}
export type Frame = { readonly mode: 'ROWS' | 'RANGE'; readonly from: Bound; readonly to: Bound }
export type Bound = {
  readonly kind: 'UNBOUNDED PRECEDING' | 'UNBOUNDED FOLLOWING' | 'CURRENT ROW' | 'PRECEDING' | 'FOLLOWING'
  readonly offset?: Expression | undefined
}

export type OrderItem = {
  readonly of: Expression
  readonly isDescending: boolean
  readonly nulls: 'FIRST' | 'LAST'
  readonly fill?: Fill | undefined
}
export type Fill = {
  readonly from?: Expression | undefined
  readonly to?: Expression | undefined
  readonly step?: Expression | undefined
}

export type Source =
  | (At & { readonly kind: 'table'; readonly path: readonly string[]; readonly alias?: string | undefined })
  | (At & { readonly kind: 'query'; readonly query: Query; readonly alias?: string | undefined })
  | (At & {
      readonly kind: 'function'
      readonly name: string
      readonly args: readonly Expression[]
      readonly alias?: string | undefined
    })
  | Join
  | (At & {
      readonly kind: 'arrays'
      readonly left?: Source | undefined
      readonly isLeft: boolean
      readonly arrays: readonly Expression[]
    })

export type Join = At & {
  readonly kind: 'join'
  readonly left: Source
  readonly right: Source
  readonly side: 'INNER' | 'LEFT' | 'RIGHT' | 'FULL' | 'CROSS'
  readonly strictness: 'ALL' | 'ANY' | 'SEMI' | 'ANTI' | 'ASOF'
  readonly on?: Expression | undefined
  readonly using?: readonly string[] | undefined
}

export type GroupBy = {
  readonly kind: 'list' | 'all' | 'rollup' | 'cube' | 'sets'
  readonly keys: readonly Expression[]
  /** The groups of GROUPING SETS. */
  readonly sets?: readonly (readonly Expression[])[] | undefined
}

export type Select = At & {
  readonly kind: 'select'
  readonly with: readonly With[]
  readonly isDistinct: boolean
  readonly distinctOn?: readonly Expression[] | undefined
  readonly items: readonly Expression[]
  readonly from?: Source | undefined
  readonly where: readonly Expression[]
  readonly groupBy?: GroupBy | undefined
  readonly hasTotals: boolean
  readonly having?: Expression | undefined
  readonly windows: ReadonlyMap<string, Window>
  readonly qualify?: Expression | undefined
  readonly orderBy: readonly OrderItem[] | 'all'
  readonly limitBy?:
    | { readonly count: Expression; readonly offset?: Expression | undefined; readonly keys: readonly Expression[] }
    | undefined
  readonly limit?: Expression | undefined
  readonly offset?: Expression | undefined
  readonly isWithTies: boolean
}

/** `name AS (SELECT …)`, or `expression AS name`. */
export type With = At & {
  readonly name: string
  readonly query?: Query | undefined
  readonly of?: Expression | undefined
}

export type SetOperation = At & {
  readonly kind: 'set'
  readonly operator: 'UNION ALL' | 'UNION' | 'EXCEPT ALL' | 'EXCEPT' | 'INTERSECT ALL' | 'INTERSECT'
  readonly left: Query
  readonly right: Query
}

export type Query = Select | SetOperation

export function call(name: string, args: readonly Expression[], at: number): Call {
  return { kind: 'call', name, args, at }
}
