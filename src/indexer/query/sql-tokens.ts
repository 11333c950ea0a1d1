import { QueryError } from './error.ts'

/** A token of SQL. `text` is exactly as written; `value` of a string or a quoted name is without quotes and escapes. */
export type Token = {
  readonly kind: 'word' | 'name' | 'string' | 'number' | 'symbol' | 'parameter'
  readonly text: string
  readonly value: string
  /** A word in upper case; empty for every other kind, so that a quoted name is never taken for a keyword. */
  readonly upper: string
  /** Offset in the statement. */
  readonly at: number
}

/** Characters of one statement; the same number as the bytes that the HTTP interface accepts. */
export const STATEMENT_LENGTH_MAX = 256 * 1024
/** Tokens of one statement, without white space and comments. */
export const STATEMENT_TOKENS_MAX = 20_000
/** Parentheses, brackets and braces inside each other. */
export const STATEMENT_NESTING_MAX = 100

/** Whether the token is this word, given in upper case. Quoted names are not words. */
export function isWord(token: Token | undefined, word: string): boolean {
  return token?.upper === word
}

export function isSymbol(token: Token | undefined, text: string): boolean {
  return token?.kind === 'symbol' && token.text === text
}

/** A name as both engines compare it: ASCII letters in any case are equal, and every other character is equal only to itself. */
export function foldName(name: string): string {
  // Most names are ASCII, for which the runtime's own function does the same and is six times faster.
  if (!/[^\0-\x7f]/.test(name)) return name.toLowerCase()
  return name.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/** A name that the customer wrote, for an error message: short and without control characters. */
export function shownName(name: string): string {
  return name.slice(0, 100).replaceAll(/[^\x20-\x7e]/g, '?')
}

/** Backslash escapes of ClickHouse inside quotes. */
const ESCAPES: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  0: '\0',
  a: '\x07',
  v: '\v',
  e: '\x1b',
}
/** These stand for themselves after a backslash; before any other character the backslash stays, as in '\\d'. */
const ESCAPED = '\\`"\'/'

/**
 * Splits a statement into tokens by ClickHouse's rules: strings in single quotes with backslash escapes or doubled quotes, names in backticks or
 * double quotes, parameters `{name:Type}`; white space and the three kinds of comments are skipped. Runs in linear time; length, tokens and nesting
 * are bounded.
 */
export function tokenize(sql: string): Token[] {
  if (sql.length > STATEMENT_LENGTH_MAX)
    throw new QueryError(
      'QUERY_IS_TOO_LARGE',
      `The statement is too long. Maximum: ${STATEMENT_LENGTH_MAX} characters (statement_length).`,
    )
  // An engine that reads C strings would end the statement at a NUL.
  const nul = sql.indexOf('\0')
  if (nul !== -1) throw new QueryError('SYNTAX_ERROR', `Syntax error: a NUL character at position ${nul}.`)
  const tokens: Token[] = []
  let depth = 0
  for (let at = skipSpace(sql, 0); at < sql.length; ) {
    const token = next(sql, at)
    tokens.push(token)
    if (tokens.length > STATEMENT_TOKENS_MAX)
      throw new QueryError(
        'TOO_BIG_AST',
        `The statement is too big. Maximum: ${STATEMENT_TOKENS_MAX} tokens (statement_tokens). Use several statements.`,
      )
    depth += nestingOf(token)
    if (depth > STATEMENT_NESTING_MAX) throw tooDeep()
    at = skipSpace(sql, at + token.text.length)
  }
  return tokens
}

/** Whether the statement is an INSERT. Its rows follow it in any format, so it cannot be split into tokens. */
export function isInsert(sql: string): boolean {
  return match(WORD, sql, skipSpace(sql, 0))?.[0].toUpperCase() === 'INSERT'
}

/** 1 for a bracket that opens, -1 for one that closes. */
export function nestingOf({ kind, text }: Token): number {
  if (kind !== 'symbol') return 0
  if (text === '(' || text === '[' || text === '{') return 1
  return text === ')' || text === ']' || text === '}' ? -1 : 0
}

export function tooDeep(): QueryError {
  return new QueryError(
    'TOO_DEEP_AST',
    `The statement is nested too deeply. Maximum: ${STATEMENT_NESTING_MAX} levels (statement_nesting).`,
  )
}

const SPACE = /[\s\u00a0]+|--[^\n]*|#[! ][^\n]*/y
const WORD = /[A-Za-z_][A-Za-z0-9_$]*/y
const NUMBER = /0[xX][0-9a-fA-F]+|0[bB][01]+|\d+(?:_\d+)*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?/y
/** Up to the colon; the type extends to the closing brace. */
const PARAMETER_HEAD = /\{\s*([A-Za-z_]\w*)\s*:/y
const SYMBOL = /<=>|<>|<=|>=|!=|==|\|\||::|->|[^]/y

/** The offset of the next token, or of a comment that does not end. */
function skipSpace(sql: string, from: number): number {
  let at = from
  while (at < sql.length) {
    if (sql.startsWith('/*', at)) {
      const end = sql.indexOf('*/', at + 2)
      if (end === -1) return at
      at = end + 2
    } else {
      const space = match(SPACE, sql, at)
      if (space === undefined) return at
      at += space[0].length
    }
  }
  return at
}

function next(sql: string, at: number): Token {
  const char = sql[at] as string
  if (sql.startsWith('/*', at))
    throw new QueryError('SYNTAX_ERROR', `Syntax error: the comment at position ${at} does not end.`)
  if (char === "'" || char === '`' || char === '"') return quoted(sql, at, char)
  const word = match(WORD, sql, at)?.[0]
  if (word !== undefined) return { kind: 'word', text: word, value: word, upper: word.toUpperCase(), at }
  const number = match(NUMBER, sql, at)?.[0]
  if (number !== undefined) return { kind: 'number', text: number, value: number, upper: '', at }
  const parameter = char === '{' ? parameterAt(sql, at) : undefined
  if (parameter !== undefined) return parameter
  const symbol = match(SYMBOL, sql, at)?.[0] ?? char
  return { kind: 'symbol', text: symbol, value: symbol, upper: '', at }
}

function match(pattern: RegExp, sql: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(sql) ?? undefined
}

/** `{name:Type}`. Reads no further than the next brace, so the scan of all parameters stays linear. */
function parameterAt(sql: string, from: number): Token | undefined {
  const head = match(PARAMETER_HEAD, sql, from)
  if (head === undefined) return undefined
  let end = from + head[0].length
  while (end < sql.length && sql[end] !== '}' && sql[end] !== '{') end++
  if (sql[end] !== '}') return undefined
  const type = sql.slice(from + head[0].length, end).trim()
  return { kind: 'parameter', text: sql.slice(from, end + 1), value: `${head[1]}:${type}`, upper: '', at: from }
}

const BYTES = /(?:\\x[0-9a-fA-F]{2})+/y
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Bytes that are no UTF-8 become halves of surrogate pairs, which no text has: `isWellFormed` finds them. */
function textOfBytes(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes)
  } catch {
    return Array.from(bytes, (byte) => String.fromCharCode(byte < 0x80 ? byte : 0xdc00 + byte)).join('')
  }
}

function quoted(sql: string, from: number, quote: string): Token {
  let value = ''
  for (let at = from + 1; at < sql.length; at++) {
    const char = sql[at] as string
    if (char === '\\') {
      at++
      const escaped = sql[at] ?? ''
      const bytes = escaped === 'x' ? match(BYTES, sql, at - 1)?.[0] : undefined
      if (bytes !== undefined) {
        value += textOfBytes(Buffer.from(bytes.replaceAll('\\x', ''), 'hex'))
        at += bytes.length - 2
      } else value += ESCAPES[escaped] ?? (ESCAPED.includes(escaped) ? escaped : `\\${escaped}`)
    } else if (char !== quote) value += char
    else if (sql[at + 1] === quote) {
      value += quote
      at++
    } else {
      return { kind: quote === "'" ? 'string' : 'name', text: sql.slice(from, at + 1), value, upper: '', at: from }
    }
  }
  throw new QueryError('SYNTAX_ERROR', `Syntax error: the quotation that begins at position ${from} does not end.`)
}
