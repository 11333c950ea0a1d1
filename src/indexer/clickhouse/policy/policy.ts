import { QueryError } from '../../query/error.ts'
import { tokenize } from '../../query/sql-tokens.ts'
import { takeFormat, takeSettings } from '../../query/statement-end.ts'
import { createCursor, syntaxError } from './cursor.ts'
import { readExpression, readOperation } from './expression.ts'
import type { Reader } from './grammar.ts'
import { readQuery } from './select.ts'
import { readTableName } from './tables.ts'

export type ClickHousePolicyOptions = Pick<Reader, 'tables' | 'database'>

/** A customer's statement as the server is to see it. */
export type ClickHouseStatement = {
  readonly sql: string
  /** Named by FORMAT at the end. */
  readonly format: string | undefined
  /** From SETTINGS at the end: names and values, to be judged as those of the address are. */
  readonly settings: ReadonlyMap<string, string>
  /** What it took to judge it: looks at tokens. */
  readonly steps: number
}

/**
 * Reads a customer's statement by a grammar of its own and writes it anew from its tokens, so that the server reads what was judged: one SELECT,
 * functions of our list, and tables that are published wherever a table can stand. Throws QueryError; what the grammar does not know is refused.
 */
export function applyClickHousePolicy(query: string, options: ClickHousePolicyOptions): ClickHouseStatement {
  const tokens = tokenize(query)
  while (tokens.at(-1)?.text === ';') tokens.pop()
  const format = takeFormat(tokens)
  const settings = takeSettings(tokens)
  if (tokens.length === 0) throw new QueryError('SYNTAX_ERROR', 'Empty query.')
  const reader: Reader = Object.assign(createCursor(tokens), {
    ...options,
    aliases: new Set<string>(),
    searched: new Set<string>(),
    isInSet: false,
    query: (scope: ReadonlySet<string>) => readQuery(reader, scope),
    expression: (scope: ReadonlySet<string>) => readExpression(reader, scope),
    operation: (scope: ReadonlySet<string>) => readOperation(reader, scope),
    tableName: (scope: ReadonlySet<string>) => readTableName(reader, scope),
  })
  if (!reader.beginsQuery())
    throw new QueryError('READONLY', 'Cannot execute query in readonly mode: only SELECT is allowed.')
  readQuery(reader, new Set())
  if (reader.peek() !== undefined) throw reader.unexpected()
  for (const name of reader.searched)
    if (reader.aliases.has(name)) throw syntaxError('a table that IN looks through has the name of an expression')
  return { sql: tokens.map(({ text }) => text).join(' '), format, settings, steps: reader.steps }
}
