import { QueryError } from './error.ts'
import { isSymbol, isWord, nestingOf, type Token, tokenize } from './sql-tokens.ts'

/** A customer's statement, tokenised once for everything that reads it. */
export type Statement = {
  /** Without FORMAT and SETTINGS at the end. */
  readonly tokens: readonly Token[]
  /** Named by FORMAT at the end. */
  readonly format: string | undefined
  /** From SETTINGS at the end, not yet validated. */
  readonly settings: ReadonlyMap<string, string>
}

/** Throws QueryError for text that cannot be tokenised or exceeds a limit of `tokenize`. */
export function parseStatement(query: string): Statement {
  const tokens = tokenize(query)
  while (tokens.at(-1)?.text === ';') tokens.pop()
  // ClickHouse takes SETTINGS before FORMAT, after it, and both.
  let format = takeFormat(tokens)
  const last = takeSettings(tokens)
  format ??= takeFormat(tokens)
  return { tokens, format, settings: new Map([...takeSettings(tokens), ...last]) }
}

/** `… FORMAT name` at the end. */
function takeFormat(tokens: Token[]): string | undefined {
  const [keyword, name] = tokens.slice(-2)
  if (!isWord(keyword, 'FORMAT') || name?.kind !== 'word') return undefined
  tokens.splice(-2)
  return name.text
}

/** `… SETTINGS a = 1, b = 'x'` at the end. Those of a subquery stay where they are, and are refused there. */
function takeSettings(tokens: Token[]): Map<string, string> {
  const settings = new Map<string, string>()
  let depth = 0
  const from = tokens.findLastIndex((token) => {
    depth += nestingOf(token)
    return depth === 0 && isWord(token, 'SETTINGS')
  })
  if (from === -1 || !isSymbol(tokens[from + 2], '=')) return settings
  const part = tokens.slice(from + 1).filter(({ text }) => text !== ';')
  for (let at = 0; at < part.length; at += 4) {
    const [name, equals, value, comma] = part.slice(at, at + 4)
    if (name?.kind !== 'word' || !isSymbol(equals, '=') || value === undefined || (comma && comma.text !== ','))
      throw new QueryError('SYNTAX_ERROR', 'Syntax error in SETTINGS: give name = value, separated by commas.')
    settings.set(name.text, value.value)
  }
  tokens.splice(from)
  return settings
}
