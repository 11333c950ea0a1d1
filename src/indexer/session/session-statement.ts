import { QueryError } from '../query/error.ts'
import { foldName, isSymbol, isWord, shownName, type Token } from '../query/sql-tokens.ts'
import type { Statement } from '../query/statement.ts'
import { readSettings } from './settings.ts'

/** What SET and USE change for the later statements of a session. */
export type SessionChange = {
  readonly settings: Readonly<Record<string, string>>
  readonly database: string | undefined
}

/** Reads SET and USE; undefined for every other statement. Throws QueryError for a setting or a database that does not exist. */
export function readSessionStatement(
  { tokens }: Pick<Statement, 'tokens'>,
  databases: ReadonlySet<string>,
): SessionChange | undefined {
  if (isWord(tokens[0], 'SET')) return readSet(tokens.slice(1))
  if (isWord(tokens[0], 'USE'))
    return readUse(tokens.slice(isWord(tokens[1], 'DATABASE') && tokens.length > 2 ? 2 : 1), databases)
  return undefined
}

function readSet(tokens: readonly Token[]): SessionChange {
  const settings: Record<string, string> = {}
  for (let at = 0; ; ) {
    const name = tokens[at]
    const equals = tokens[at + 1]
    const sign = isSymbol(tokens[at + 2], '-') ? '-' : ''
    const value = tokens[at + (sign === '' ? 2 : 3)]
    const isValue = value !== undefined && ['word', 'string', 'number'].includes(value.kind)
    if (name === undefined || (name.kind !== 'word' && name.kind !== 'name') || !isSymbol(equals, '=') || !isValue)
      throw new QueryError('SYNTAX_ERROR', 'Syntax error in SET: give name = value, separated by commas.')
    settings[name.value] = sign + value.value
    at += sign === '' ? 3 : 4
    if (at >= tokens.length) break
    if (!isSymbol(tokens[at], ','))
      throw new QueryError('SYNTAX_ERROR', 'Syntax error in SET: give name = value, separated by commas.')
    at++
  }
  readSettings(Object.entries(settings))
  return { settings, database: undefined }
}

function readUse([name, ...rest]: readonly Token[], databases: ReadonlySet<string>): SessionChange {
  if (name === undefined || rest.length > 0 || (name.kind !== 'word' && name.kind !== 'name'))
    throw new QueryError('SYNTAX_ERROR', 'Syntax error in USE: give the name of a database.')
  const database = foldName(name.value)
  if (!databases.has(database))
    throw new QueryError('UNKNOWN_DATABASE', `Database ${shownName(name.value)} does not exist.`)
  return { settings: {}, database }
}
