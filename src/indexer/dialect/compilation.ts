import { QueryError } from '../query/error.ts'
import { DATABASE } from '../schema.ts'
import { displayName } from './display-name.ts'
import { type Binding, type Given, parameterIdentifier, parameterNumber, parameterValue } from './parameters.ts'
import type { Compiled, Scope } from './scope.ts'
import type { Literal, Query } from './syntax.ts'
import { isZoneless, type Type } from './types.ts'
import type { Value } from './value.ts'

/** The engine parses and checks the result, so its length is bounded before. */
const SQL_LENGTH_MAX = 1024 * 1024
/**
 * Characters that all steps write together. Each writes those of its parts again, so a statement within SQL_LENGTH_MAX takes as many times its length as it
 * is deep; one whose parts are long and used often is refused before they are joined.
 */
const WRITTEN_LENGTH_MAX = 32 * SQL_LENGTH_MAX
/** An alias is translated again wherever it is used, so a short statement can mean much work. The policy allows 10,000 nodes. */
const STEPS_MAX = 20_000
/** Columns of a table, elements of a type or entries of WITH that are read again take as long as one step. */
const ENTRIES_PER_STEP = 4
/** An error takes as long to make as so many steps. */
const STEPS_OF_ATTEMPT = 8

/**
 * What a generated name stands for, and its letter. The number after the letter is counted over the whole statement: no name is used twice, and none is
 * that of a customer.
 *
 * Columns are numbered within their SELECT: o1 is a column of a result, k1 a key and a1 an aggregate of the groups, x1 a value of ORDER BY that is not in
 * the SELECT list, c1 a column of unnest or VALUES. A bound parameter is $p1.
 */
const NAME_LETTERS = {
  commonTable: 'w',
  /** The rows that WITH FILL adds to. */
  fill: 'f',
  groups: 'g',
  /** The elements of an array, of ARRAY JOIN or arrayJoin. */
  lateral: 'j',
  lambdaParameter: 'l',
  /** The rows of a SELECT before ORDER BY and LIMIT. */
  rows: 'r',
  subquery: 'q',
  /** A table or table function in FROM. */
  table: 't',
} as const

export type CompileOptions = {
  readonly given?: Given | undefined
  /** The database of names without one. */
  readonly database?: string | undefined
  /** The setting join_use_nulls: NULL, not the default of the type, where an outer join has no row. */
  readonly joinUsesNulls?: boolean | undefined
  /** The setting session_timezone. */
  readonly timezone?: string | undefined
}

/** Names of `outer` are visible: its common tables and the expressions of its WITH; with `isCorrelated` its columns, too. */
type CompileQuery = (
  query: Query,
  outer: Scope | undefined,
  compilation: Compilation,
  isCorrelated?: boolean,
) => Compiled

/** The state of compiling one statement: its options, and what its parts share. */
export class Compilation {
  readonly database: string
  readonly joinUsesNulls: boolean
  readonly #timezone: string
  /** An argument, since the query compiler imports the compilers of its parts, which compile subqueries. */
  readonly #compileQuery: CompileQuery
  readonly #binding: Binding
  readonly #commonTables: string[] = []
  readonly #shortTexts = new Map<string, string>()
  readonly #constantKeys = new WeakMap<Literal, string>()
  readonly #constants = new WeakMap<Literal, Value>()
  #names = 0
  #steps = 0
  #textLength = 0
  #writtenLength = 0
  #isTrial = false

  constructor(
    { given = {}, joinUsesNulls = true, database = DATABASE, timezone = 'UTC' }: CompileOptions,
    compileQuery: CompileQuery,
  ) {
    this.database = database
    this.joinUsesNulls = joinUsesNulls
    this.#timezone = timezone
    this.#compileQuery = compileQuery
    this.#binding = {
      given,
      used: {},
      names: new Map(),
      values: new Map(),
      onText: (length) => this.countText(length),
    }
  }

  freshName(of: keyof typeof NAME_LETTERS): string {
    return `${NAME_LETTERS[of]}${++this.#names}`
  }

  /** A subquery. With `isCorrelated` it may use the columns of the scope. */
  compileQuery(query: Query, scope: Scope, isCorrelated = false): Compiled {
    return this.#compileQuery(query, scope, this, isCorrelated)
  }

  /** Returns the name of the common table. */
  addCommonTable(sql: string): string {
    const name = this.freshName('commonTable')
    this.checkLength(sql)
    this.#commonTables.push(`${name} AS (${sql})`)
    return name
  }

  /** The WITH of the statement, with a space at its end; empty without common tables. */
  withSql(): string {
    return this.#commonTables.length === 0 ? '' : `WITH ${this.#commonTables.join(', ')} `
  }

  /** The SQL of a query parameter. */
  parameter(name: string, type: string): Value {
    return parameterValue(name, type, this.#binding)
  }

  /** The value of a parameter that must be known before the statement runs, such as that of LIMIT. */
  numberParameter(name: string, at: number): number {
    return parameterNumber(name, at, this.#binding)
  }

  /** The names in a `{name:Identifier}` parameter. */
  identifierParameter(parameter: string, at: number): readonly string[] {
    return parameterIdentifier(parameter, at, this.#binding)
  }

  /** Values to bind, by the names that the SQL uses. */
  get boundValues(): Readonly<Record<string, string | null>> {
    return this.#binding.used
  }

  /** A text of a few characters in the place of this one: the same for equal texts. */
  shortText(text: string): string {
    // No other text contains a NUL.
    const short = this.#shortTexts.get(text) ?? `\0${this.#shortTexts.size}`
    this.#shortTexts.set(text, short)
    return short
  }

  /** The key of a constant, the same for equal ones. It is made once: a constant may be long, and behind an alias it is used often. */
  constantKey(constant: Literal): string {
    const key = this.#constantKeys.get(constant) ?? this.shortText(displayName(constant))
    this.#constantKeys.set(constant, key)
    return key
  }

  /** The value of a constant, made once: a text of quotes takes milliseconds to quote. */
  constant(literal: Literal, make: (text: string, at: number) => Value): Value {
    const made = this.#constants.get(literal) ?? make(literal.text, literal.at)
    this.#constants.set(literal, made)
    return made
  }

  /** Counts steps of the translation. Throws QueryError when there are too many. */
  countStep(steps = 1): void {
    this.#steps += steps
    if (this.#steps > STEPS_MAX)
      throw new QueryError(
        'TOO_BIG_AST',
        `The statement is too big: its translation takes more than ${STEPS_MAX} steps (translation_steps). Use an alias less often.`,
      )
  }

  /** Counts the steps of reading something that an earlier part of the statement has made, of which a few entries take no step. */
  countEntries(entries: number): void {
    this.countStep(Math.floor(entries / ENTRIES_PER_STEP))
  }

  /** Counts characters of a constant or a name, before it is translated: an alias can repeat a long one. */
  countText(length: number): void {
    this.#textLength += length
    if (this.#textLength > SQL_LENGTH_MAX) throw usedTooOften()
  }

  /** Throws QueryError when the SQL becomes too long. */
  checkLength(sql: string): void {
    if (sql.length > SQL_LENGTH_MAX) throw translationTooLong()
    this.countWritten(sql.length)
  }

  /** Counts characters that are going to be written, where a part is written several times. */
  countWritten(length: number): void {
    this.#writtenLength += length
    if (this.#writtenLength > WRITTEN_LENGTH_MAX) throw usedTooOften()
  }

  /** The result, or undefined for an error, which is not reported. */
  attempt<Result>(compile: () => Result): Result | undefined {
    this.countStep(STEPS_OF_ATTEMPT)
    const wasTrial = this.#isTrial
    this.#isTrial = true
    try {
      return compile()
    } catch {
      return undefined
    } finally {
      this.#isTrial = wasTrial
    }
  }

  /** Whether errors are not reported. */
  get isTrial(): boolean {
    return this.#isTrial
  }

  /** Throws QueryError for a time whose zone would be that of the session. */
  checkZone(type: Type): void {
    const timezone = this.#timezone
    if (timezone === 'UTC' || !isZoneless(type)) return
    throw new QueryError(
      'NOT_IMPLEMENTED',
      `With session_timezone '${timezone}' a time needs a zone of its own; write it as the last argument, such as toDateTime(x, '${timezone}') or now('${timezone}').`,
    )
  }
}

function translationTooLong(): QueryError {
  return new QueryError(
    'TOO_BIG_AST',
    `The statement is too big: its translation has more than ${SQL_LENGTH_MAX} characters (translation_length).`,
  )
}

function usedTooOften(): QueryError {
  return new QueryError(
    'TOO_BIG_AST',
    'The statement is too big: long constants, names or lists are used too often in it (translation_length). Use them less often.',
  )
}
