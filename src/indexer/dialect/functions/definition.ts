import type { QueryError } from '../../query/error.ts'
import { STRING, type Type, UINT8, UINT64 } from '../types.ts'
import { isAnyNullable, type Value, value } from '../value.ts'

/** What a function gets for one call. */
export type CallArguments = {
  /** As the customer wrote it. */
  readonly name: string
  readonly args: readonly Value[]
  readonly at: number
  arg(at: number): Value
  /** Counts what a function is going to write several times. Throws QueryError when it becomes too long. */
  countCopies(sql: string, copies: number): void
  /** A name that no other part of the statement has. */
  freshName(): string
  /** The error for arguments that the function does not take. */
  fail(reason: string): QueryError
  /** The error for an argument of another type. */
  wrongType(reason: string): QueryError
  /** The error for arguments that have no common type. */
  noCommonType(reason: string): QueryError
  /** The error for an element that a value has not. */
  outOfBound(reason: string): QueryError
}

export type FunctionDefinition = {
  /** The name as ClickHouse writes it. */
  readonly name: string
  readonly argsMin: number
  readonly argsMax: number
  /** Whether a LowCardinality argument makes the result LowCardinality, as most functions of ClickHouse do. */
  readonly keepsLowCardinality: boolean
  /** Whether NULL in an argument makes the result NULL, as in most functions. */
  readonly passesNull: boolean
  compile(input: CallArguments): Value
}

type Options = { readonly lowCardinality?: boolean; readonly nulls?: boolean }

export function define(
  name: string,
  args: number | readonly [min: number, max: number],
  compile: (input: CallArguments) => Value,
  options: Options = {},
): FunctionDefinition {
  const [argsMin, argsMax] = typeof args === 'number' ? [args, args] : args
  return {
    name,
    argsMin,
    argsMax,
    compile,
    keepsLowCardinality: options.lowCardinality ?? true,
    passesNull: options.nulls ?? true,
  }
}

/** Names of one function with one definition. */
export function defineAll(
  names: string,
  args: number | readonly [min: number, max: number],
  compile: (input: CallArguments) => Value,
  options?: Options,
): FunctionDefinition[] {
  return names.split(' ').map((name) => define(name, args, compile, options))
}

export const stringValue = (sql: string): Value => value(sql, STRING)
export const uint8Value = (sql: string): Value => value(`CAST(${sql} AS UTINYINT)`, UINT8)
export const uint64Value = (sql: string): Value => value(`CAST(${sql} AS UBIGINT)`, UINT64)

/** The type with NULL, if an argument can be NULL. */
export function withNulls(result: Value, args: readonly Value[]): Value {
  const { kind } = result.type
  if (
    kind === 'array' ||
    kind === 'tuple' ||
    kind === 'map' ||
    kind === 'unknown' ||
    !isAnyNullable(args.filter(({ type }) => type.kind !== 'unknown'))
  )
    return result
  return { ...result, type: { ...result.type, isNullable: true } as Type }
}

/** `body` for the value of an expression that is computed once, where it would stand several times or inside of a lambda. */
export function bound(input: Pick<CallArguments, 'freshName'>, sql: string, body: (name: string) => string): string {
  const name = input.freshName()
  return `list_extract(list_transform([${sql}], lambda ${name}: ${body(name)}), 1)`
}
