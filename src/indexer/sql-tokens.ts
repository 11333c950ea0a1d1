import { QueryError } from './query-error.ts'

/** A piece of SQL. `text` is exactly as written; `value` of a string or a quoted name is what it stands for. */
export type Token = {
  readonly kind: 'word' | 'name' | 'string' | 'number' | 'symbol' | 'space' | 'parameter'
  readonly text: string
  readonly value: string
}

/** Whether it is this word, given in capitals and written in any case, and without quotes. */
export function isWord(token: Token | undefined, word: string): boolean {
  return token?.kind === 'word' && token.text.toUpperCase() === word
}

export function isSymbol(token: Token | undefined, text: string): boolean {
  return token?.kind === 'symbol' && token.text === text
}

/** How ClickHouse reads a backslash inside quotes; other characters stand for themselves. */
const ESCAPES: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  0: '\0',
  a: '\x07',
  v: '\v',
}

/**
 * Cuts a statement into tokens by ClickHouse's rules: strings in single quotes with backslash escapes or doubled quotes, names in back-ticks or
 * double quotes, comments of three kinds, parameters `{name:Type}`. Joined again, the texts give the statement.
 */
export function tokenize(sql: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < sql.length) {
    const token = next(sql, at)
    tokens.push(token)
    at += token.text.length
  }
  return tokens
}

const SPACE = /[\s\u00a0]+|--[^\n]*(?:\n|$)|#[! ][^\n]*(?:\n|$)|\/\*[^]*?\*\//y
const WORD = /[A-Za-z_][A-Za-z0-9_$]*/y
const NUMBER = /0[xX][0-9a-fA-F]+|(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y
const PARAMETER = /\{\s*([A-Za-z_]\w*)\s*:\s*([^{}]*?)\s*\}/y
const SYMBOL = /<=>|<>|<=|>=|!=|==|\|\||::|->|[^]/y

function next(sql: string, at: number): Token {
  const char = sql[at] as string
  if (char === "'" || char === '`' || char === '"') return quoted(sql, at, char)
  const space = match(SPACE, sql, at)
  if (space !== undefined) return { kind: 'space', text: space[0], value: '' }
  if (sql.startsWith('/*', at))
    throw new QueryError('SYNTAX_ERROR', `Syntax error: the comment at position ${at} does not end.`)
  const word = match(WORD, sql, at)
  if (word !== undefined) return { kind: 'word', text: word[0], value: word[0] }
  const number = match(NUMBER, sql, at)
  if (number !== undefined) return { kind: 'number', text: number[0], value: number[0] }
  const parameter = match(PARAMETER, sql, at)
  if (parameter !== undefined)
    return { kind: 'parameter', text: parameter[0], value: `${parameter[1]}:${parameter[2]}` }
  const symbol = match(SYMBOL, sql, at)?.[0] ?? char
  return { kind: 'symbol', text: symbol, value: symbol }
}

function match(pattern: RegExp, sql: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(sql) ?? undefined
}

function quoted(sql: string, from: number, quote: string): Token {
  let value = ''
  for (let at = from + 1; at < sql.length; at++) {
    const char = sql[at] as string
    if (char === '\\') {
      at++
      const escaped = sql[at] ?? ''
      if (escaped === 'x' && /^[0-9a-fA-F]{2}$/.test(sql.slice(at + 1, at + 3))) {
        value += String.fromCharCode(Number.parseInt(sql.slice(at + 1, at + 3), 16))
        at += 2
      } else value += ESCAPES[escaped] ?? escaped
    } else if (char !== quote) value += char
    else if (sql[at + 1] === quote) {
      value += quote
      at++
    } else {
      return { kind: quote === "'" ? 'string' : 'name', text: sql.slice(from, at + 1), value }
    }
  }
  throw new QueryError('SYNTAX_ERROR', `Syntax error: the quotation that begins at position ${from} does not end.`)
}
