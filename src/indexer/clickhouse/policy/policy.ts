import { notReading, QueryError } from '../../query/error.ts'
import { isSymbol } from '../../query/sql-tokens.ts'
import type { Statement } from '../../query/statement.ts'
import { readExpression, readOperation } from './expression.ts'
import { createCursor, type Reader, type Scope, syntaxError } from './reader.ts'
import { readQuery } from './select.ts'
import { readTableName } from './tables.ts'

export type ClickHousePolicyOptions = Pick<Reader, 'tables' | 'database'>

export type AllowedStatement = {
  /** Written from the tokens that were checked, so that the server reads the same statement. */
  readonly sql: string
  /** Number of looks at tokens that the check took. */
  readonly steps: number
}

/**
 * Checks a customer's statement with its own grammar: it is one SELECT or describes one, calls only listed functions and names only published tables. Throws
 * QueryError; constructs that the grammar does not know are refused.
 */
export function applyClickHousePolicy(
  { tokens }: Pick<Statement, 'tokens'>,
  options: ClickHousePolicyOptions,
): AllowedStatement {
  if (tokens.length === 0) throw new QueryError('SYNTAX_ERROR', 'Empty query.')
  const reader: Reader = Object.assign(createCursor(tokens), {
    ...options,
    aliases: new Set<string>(),
    inTables: new Set<string>(),
    isInSet: false,
    query: (scope: Scope) => readQuery(reader, scope),
    expression: (scope: Scope) => readExpression(reader, scope),
    operation: (scope: Scope) => readOperation(reader, scope),
    tableName: (scope: Scope) => readTableName(reader, scope),
  })
  // What JDBC drivers send to learn the columns of a prepared statement.
  if (reader.takeWord('DESCRIBE', 'DESC') !== undefined) {
    reader.takeWord('TABLE')
    if (!isSymbol(reader.peek(), '(')) throw notReading()
  }
  if (!reader.beginsQuery()) throw notReading()
  readQuery(reader, new Set())
  if (reader.peek() !== undefined) throw reader.unexpected()
  for (const name of reader.inTables)
    if (reader.aliases.has(name)) throw syntaxError('a table after IN has the name of an expression')
  return { sql: tokens.map(({ text }) => text).join(' '), steps: reader.steps }
}
