import { QueryError } from './error.ts'
import { isSymbol, isWord, type Token } from './sql-tokens.ts'

/** `… FORMAT name` at the end. */
export function takeFormat(tokens: Token[]): string | undefined {
  const end = tokens.at(-1)?.text === ';' ? tokens.length - 1 : tokens.length
  const [word, name] = [tokens[end - 2], tokens[end - 1]]
  if (!isWord(word, 'FORMAT') || name?.kind !== 'word') return undefined
  tokens.splice(end - 2)
  return name.text
}

/** `… SETTINGS a = 1, b = 'x'` at the end. */
export function takeSettings(tokens: Token[]): Map<string, string> {
  const settings = new Map<string, string>()
  const from = tokens.findLastIndex((token) => isWord(token, 'SETTINGS'))
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
