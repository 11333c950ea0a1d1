import { CATALOGUE_TABLES } from '../catalogue/catalogue.ts'
import { CATALOGUE_SCHEMAS } from '../catalogue/catalogue-names.ts'
import { QueryError } from '../query/error.ts'
import { shownName } from '../query/sql-tokens.ts'
import type { Statement as Tokens } from '../query/statement.ts'
import { CLICKHOUSE_TYPES, type Column, DATABASE, PUBLISHED } from '../schema.ts'
import { compileQuery } from './compile-select.ts'
import type { KnownTable } from './compile-source.ts'
import type { Statement } from './context.ts'
import { type Binding, type Given, parameterIdentifier, parameterNumber, parameterValue } from './parameters.ts'
import { parseSelect } from './parse-select.ts'
import { parseType } from './parse-type.ts'
import type { Compiled } from './scope.ts'
import { duckType, isZoneless, type Type, typeName } from './types.ts'

/** A customer's statement in the dialect of the embedded engine. */
export type CompiledStatement = {
  readonly sql: string
  /** Values to bind, by the names that the statement uses. */
  readonly parameters: Readonly<Record<string, string | null>>
  /** Names and types of the result as ClickHouse has them; without a type, that of the engine holds. */
  readonly columns: readonly { readonly name: string; readonly type: string | undefined }[]
  /** The statement of the row of WITH TOTALS. */
  readonly totals?: string | undefined
}

export type CompileOptions = {
  readonly given?: Given | undefined
  /** The database of names without one. */
  readonly database?: string | undefined
  /** The setting join_use_nulls: NULL, not the default of the type, where an outer join has no row. */
  readonly joinUsesNulls?: boolean | undefined
  /** The setting session_timezone. */
  readonly timezone?: string | undefined
}

/** The engine parses and checks the result, so its length is bounded before. */
const SQL_LENGTH_MAX = 1024 * 1024
/** An alias is translated again wherever it is used, so a short statement can mean much work. The policy allows 10,000 nodes. */
const STEPS_MAX = 20_000

/** The tables that a statement may name, by database and name in lower case. */
const TABLES: ReadonlyMap<string, ReadonlyMap<string, KnownTable>> = new Map([
  [
    DATABASE,
    new Map(
      PUBLISHED.map(({ name, columns }) => [
        name,
        tableOf(
          DATABASE,
          columns.map((column: Column) => ({ name: column.name, type: CLICKHOUSE_TYPES[column.type] })),
        ),
      ]),
    ),
  ],
  ...Object.entries(CATALOGUE_SCHEMAS).map(
    ([database, schema]) =>
      [
        database,
        new Map(
          CATALOGUE_TABLES.filter((table) => table.database === database).map(({ name, columns }) => [
            name,
            tableOf(schema, columns),
          ]),
        ),
      ] as const,
  ),
])

function tableOf(schema: string, columns: readonly { readonly name: string; readonly type: string }[]): KnownTable {
  return { schema, columns: columns.map(({ name, type }) => ({ name, type: parseType(type) })) }
}

function translationTooLong(): QueryError {
  return new QueryError(
    'TOO_BIG_AST',
    `The statement is too big: its translation has more than ${SQL_LENGTH_MAX} characters (translation_length).`,
  )
}

/** Translates one SELECT of ClickHouse. Throws QueryError with the name and position of what is not offered. */
export function compileStatement(
  { tokens }: Pick<Tokens, 'tokens'>,
  { given = {}, joinUsesNulls = true, database = DATABASE, timezone = 'UTC' }: CompileOptions = {},
): CompiledStatement {
  // The engine ends a statement at a NUL, even inside of quotes.
  if (tokens.some(({ kind, value }) => (kind === 'string' || kind === 'name') && value.includes('\0')))
    throw new QueryError('SYNTAX_ERROR', 'Syntax error: a NUL character in quotes; give it as a parameter.')
  const end = tokens.findLastIndex(({ text }) => text !== ';') + 1
  const query = parseSelect(tokens.slice(0, end))
  let listLength = 0
  const binding: Binding = {
    given,
    used: {},
    names: new Map(),
    lists: new Map(),
    onList(sql) {
      listLength += sql.length
      if (listLength > SQL_LENGTH_MAX) throw translationTooLong()
    },
  }
  const commons: string[] = []
  const shortTexts = new Map<string, string>()
  let names = 0
  let steps = 0
  const statement: Statement = {
    fresh: (prefix = 'n') => `${prefix}${++names}`,
    query: (inner, scope, isCorrelated = false) => compileQuery(inner, scope, options, isCorrelated),
    parameter: (name, type) => parameterValue(name, type, binding),
    number: (name, at) => parameterNumber(name, at, binding),
    step() {
      if (++steps > STEPS_MAX)
        throw new QueryError(
          'TOO_BIG_AST',
          `The statement is too big: its translation takes more than ${STEPS_MAX} steps (translation_steps). Use an alias less often.`,
        )
    },
    shortText(text) {
      // No other text contains a NUL.
      const short = shortTexts.get(text) ?? `\0${shortTexts.size}`
      shortTexts.set(text, short)
      return short
    },
    checkZone(type) {
      if (timezone === 'UTC' || !isZoneless(type)) return
      throw new QueryError(
        'NOT_IMPLEMENTED',
        `With session_timezone '${timezone}' a time needs a zone of its own; write it as the last argument, such as toDateTime(x, '${timezone}') or now('${timezone}').`,
      )
    },
    measure(sql) {
      if (sql.length > SQL_LENGTH_MAX) throw translationTooLong()
    },
  }
  const options = {
    statement,
    database,
    joinUsesNulls,
    tablesOf: (name: string) => TABLES.get(name),
    identifier: (parameter: string, at: number) => parameterIdentifier(parameter, at, binding),
    addCommon(sql: string): string {
      const name = `w${++names}`
      statement.measure(sql)
      commons.push(`${name} AS (${sql})`)
      return name
    },
  }
  const compiled = withinStack(() => compileQuery(query, undefined, options))
  for (const { name, type } of compiled.columns)
    if (hasNames(type))
      throw new QueryError(
        'NOT_IMPLEMENTED',
        `Column ${shownName(name)} is ${typeName(type)}: tuples with names are not offered as results; select their elements.`,
      )
  const withText = commons.length === 0 ? '' : `WITH ${commons.join(', ')} `
  const finish = (sql: string): string => {
    const whole = `${withText}SELECT ${compiled.columns.map(outputSql).join(', ')} FROM (${sql}) AS final`
    statement.measure(whole)
    return whole
  }
  return {
    sql: finish(compiled.sql),
    parameters: binding.used,
    columns: compiled.columns.map(({ name, type }) => ({
      name,
      type: type.kind === 'unknown' ? undefined : typeName(type),
    })),
    ...(compiled.totals === undefined ? {} : { totals: finish(compiled.totals) }),
  }
}

/** Aliases within aliases can be nested more deeply than the text of a statement. */
function withinStack<Result>(run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new QueryError(
      'TOO_DEEP_AST',
      'The statement is nested too deeply: its aliases stand for each other too often (translation_nesting).',
    )
  }
}

/** Whether a tuple with named elements is in a type: the JSON formats write such a tuple as an object. */
function hasNames(type: Type): boolean {
  if (type.kind === 'array') return hasNames(type.of)
  if (type.kind === 'map') return hasNames(type.value)
  return type.kind === 'tuple' && (type.names !== undefined || type.items.some(hasNames))
}

/** Each column in the engine's type for its ClickHouse type. Times are UTC; formats that print them use the zone of the type. */
function outputSql({ type }: Compiled['columns'][number], at: number): string {
  const name = `final.o${at + 1}`
  if (type.kind === 'unknown') return `${name} AS o${at + 1}`
  if (type.kind === 'interval') return `CAST(${name} AS BIGINT) AS o${at + 1}`
  return `CAST(${name} AS ${duckType(type)}) AS o${at + 1}`
}
