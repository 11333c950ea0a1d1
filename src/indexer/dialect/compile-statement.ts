import { QueryError } from '../query/error.ts'
import { shownName } from '../query/sql-tokens.ts'
import type { Statement } from '../query/statement.ts'
import { Compilation, type CompileOptions } from './compilation.ts'
import { compileQuery } from './compile-select.ts'
import { parseSelect } from './parse-select.ts'
import type { Compiled } from './scope.ts'
import type { Query } from './syntax.ts'
import { duckType, type Type, typeName } from './types.ts'

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

/** Translates one SELECT of ClickHouse. Throws QueryError with the name and position of what is not offered. */
export function compileStatement(
  { tokens }: Pick<Statement, 'tokens'>,
  options: CompileOptions = {},
): CompiledStatement {
  return compileParsed(parseTokens(tokens), options)
}

/** The second half of `compileStatement`. */
export function compileParsed(query: Query, options: CompileOptions = {}): CompiledStatement {
  const compilation = new Compilation(options, compileQuery)
  const compiled = withinStack(() => compileQuery(query, undefined, compilation))
  checkResultTypes(compiled)
  return finish(compiled, compilation)
}

/** The first half of `compileStatement`: each half of the longest statement may take as long as a request may hold the event loop. */
export function parseTokens(tokens: Statement['tokens']): Query {
  // The engine ends a statement at a NUL, even inside of quotes.
  if (tokens.some(({ kind, value }) => (kind === 'string' || kind === 'name') && value.includes('\0')))
    throw new QueryError('SYNTAX_ERROR', 'Syntax error: a NUL character in quotes; give it as a parameter.')
  const end = tokens.findLastIndex(({ text }) => text !== ';') + 1
  return parseSelect(tokens.slice(0, end))
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

function checkResultTypes({ columns }: Compiled): void {
  for (const { name, type } of columns)
    if (hasNames(type))
      throw new QueryError(
        'NOT_IMPLEMENTED',
        `Column ${shownName(name)} is ${typeName(type)}: tuples with names are not offered as results; select their elements.`,
      )
}

/** Whether a tuple with named elements is in a type: the JSON formats write such a tuple as an object. */
function hasNames(type: Type): boolean {
  if (type.kind === 'array') return hasNames(type.of)
  if (type.kind === 'map') return hasNames(type.value)
  return type.kind === 'tuple' && (type.names !== undefined || type.items.some(hasNames))
}

function finish({ sql, columns, totals }: Compiled, compilation: Compilation): CompiledStatement {
  const start = `${compilation.withSql()}SELECT ${columns.map(outputSql).join(', ')}`
  const finishSql = (rows: string): string => {
    const whole = `${start} FROM (${rows}) AS final`
    compilation.checkLength(whole)
    return whole
  }
  return {
    sql: finishSql(sql),
    parameters: compilation.boundValues,
    columns: columns.map(({ name, type }) => ({
      name,
      type: type.kind === 'unknown' ? undefined : typeName(type),
    })),
    ...(totals === undefined ? {} : { totals: finishSql(totals) }),
  }
}

/** Each column in the engine's type for its ClickHouse type. Times are UTC; formats that print them use the zone of the type. */
function outputSql({ type }: Compiled['columns'][number], at: number): string {
  const name = `final.o${at + 1}`
  if (type.kind === 'unknown') return `${name} AS o${at + 1}`
  if (type.kind === 'interval') return `CAST(${name} AS BIGINT) AS o${at + 1}`
  return `CAST(${name} AS ${duckType(type)}) AS o${at + 1}`
}
