import { foldName, isSymbol, isWord, type Token } from '../query/sql-tokens.ts'
import { DATABASE, PUBLISHED_NAMES } from '../schema.ts'
import { catalogueView } from './catalogue-views.ts'
import { isName } from './policy/reader.ts'

/**
 * Replaces the names of the tables of `system` and `information_schema` by those of their views, and the default name of the customers' database by
 * the configured one. The SQL policy checks the statement afterwards, so nothing is allowed here.
 */
export function replaceCatalogueNames(tokens: readonly Token[], database: string): readonly Token[] {
  const out: Token[] = []
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] as Token
    const [inDatabase, table] = qualifiedNameAt(tokens, at) ?? []
    const view = inDatabase === undefined || table === undefined ? undefined : catalogueView(inDatabase, table)
    if (view !== undefined) {
      out.push(name(token, database), tokens[at + 1] as Token, name(token, view))
      // The name of the table may qualify its columns.
      if (isSource(tokens[at - 1]) && takesAlias(tokens[at + 3])) out.push(AS, name(token, table ?? ''))
      at += 2
    } else out.push(inDatabase === DATABASE && PUBLISHED_NAMES.has(table ?? '') ? name(token, database) : token)
  }
  return out
}

/** `database.table` at a position, in lower case. */
function qualifiedNameAt(tokens: readonly Token[], at: number): readonly [string, string] | undefined {
  const [first, dot, second] = [tokens[at], tokens[at + 1], tokens[at + 2]]
  if (!isSymbol(dot, '.') || isSymbol(tokens[at - 1], '.')) return undefined
  if (first === undefined || second === undefined || !isWordOrName(first) || !isWordOrName(second)) return undefined
  return [foldName(first.value), foldName(second.value)]
}

function isWordOrName({ kind }: Token): boolean {
  return kind === 'word' || kind === 'name'
}

/** Whether a table that follows may have an alias: after IN it may not. */
function isSource(before: Token | undefined): boolean {
  return isWord(before, 'FROM') || isWord(before, 'JOIN') || isSymbol(before, ',')
}

/** Whether the name of a table ends here, without an alias; a point continues the name of a column. */
function takesAlias(after: Token | undefined): boolean {
  return !isWord(after, 'AS') && !isName(after) && !isSymbol(after, '.')
}

const AS: Token = { kind: 'word', text: 'AS', value: 'AS', upper: 'AS', at: 0 }

/** Names that are replaced here have neither quotes nor backslashes. */
function name({ at }: Token, value: string): Token {
  return { kind: 'name', text: `\`${value}\``, value, upper: '', at }
}
