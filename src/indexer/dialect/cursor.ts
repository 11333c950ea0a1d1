import { QueryError } from '../query/error.ts'
import {
  isSymbol,
  STATEMENT_NESTING_MAX,
  STATEMENT_TOKENS_MAX,
  shownName,
  type Token,
  tooDeep,
} from '../query/sql-tokens.ts'
import { TABLES_MAX, tooManyTables } from '../query/tree-limits.ts'
import type { Expression, Query } from './syntax.ts'

/** Rules of the grammar that contain each other; the files of the grammar call them through the cursor. */
type Rules = { query(cursor: Cursor): Query; expression(cursor: Cursor): Expression }

/** As many as a statement may have tokens. */
const COPIED_MAX = STATEMENT_TOKENS_MAX

/** Reads the tokens of a statement in order. */
export class Cursor {
  readonly #tokens: readonly Token[]
  readonly #rules: Rules
  #at = 0
  #depth = 0
  #tables = 0
  #copied = 0

  constructor(tokens: readonly Token[], rules: Rules) {
    this.#tokens = tokens
    this.#rules = rules
  }

  query(): Query {
    return this.#rules.query(this)
  }

  /** With an alias or without. */
  expression(): Expression {
    return this.#rules.expression(this)
  }

  /** Whether a query in parentheses begins here. */
  isQueryStart(): boolean {
    let ahead = 0
    while (this.isSymbol('(', ahead)) ahead++
    const upper = this.peek(ahead)?.upper
    return ahead > 0 && (upper === 'SELECT' || upper === 'WITH' || upper === 'VALUES' || upper === 'FROM')
  }

  peek(ahead = 0): Token | undefined {
    return this.#tokens[this.#at + ahead]
  }

  /** Offset of the next token in the statement. */
  get position(): number {
    const last = this.#tokens.at(-1)
    return this.peek()?.at ?? (last === undefined ? 0 : last.at + last.text.length)
  }

  /** Index of the next token, for `back`. */
  get mark(): number {
    return this.#at
  }

  back(mark: number): void {
    this.#at = mark
  }

  take(): Token {
    const token = this.peek()
    if (token === undefined) throw this.unexpected()
    this.#at++
    return token
  }

  isWord(...words: readonly string[]): boolean {
    return words.every((word, at) => this.peek(at)?.upper === word)
  }

  /** Takes these words if all of them follow. */
  takeWords(...words: readonly string[]): boolean {
    if (!this.isWord(...words)) return false
    this.#at += words.length
    return true
  }

  takeOneOf(...words: readonly string[]): string | undefined {
    const upper = this.peek()?.upper
    if (upper === undefined || upper === '' || !words.includes(upper)) return undefined
    this.#at++
    return upper
  }

  isSymbol(text: string, ahead = 0): boolean {
    return isSymbol(this.peek(ahead), text)
  }

  takeSymbol(text: string): boolean {
    if (!this.isSymbol(text)) return false
    this.#at++
    return true
  }

  expectWord(word: string): void {
    if (!this.takeWords(word)) throw this.unexpected(word)
  }

  expectSymbol(text: string): void {
    if (!this.takeSymbol(text)) throw this.unexpected(text)
  }

  /** A quoted name, or a word that is not one of the keywords of a SELECT. */
  takeName(): string | undefined {
    const token = this.peek()
    if (token?.kind !== 'name' && (token?.kind !== 'word' || RESERVED.has(token.upper))) return undefined
    this.#at++
    return token.value
  }

  expectName(): string {
    const name = this.takeName()
    if (name === undefined) throw this.unexpected('a name')
    return name
  }

  /** After AS every word is a name. */
  expectAnyName(): string {
    const token = this.take()
    if (token.kind === 'word' || token.kind === 'name') return token.value
    this.#at--
    throw this.unexpected('a name')
  }

  list<T>(read: () => T): T[] {
    const items = [read()]
    while (this.takeSymbol(',')) items.push(read())
    return items
  }

  nested<T>(read: () => T): T {
    if (++this.#depth > STATEMENT_NESTING_MAX) throw tooDeep()
    try {
      return read()
    } finally {
      this.#depth--
    }
  }

  inParentheses<T>(read: () => T): T {
    this.expectSymbol('(')
    const value = this.nested(read)
    this.expectSymbol(')')
    return value
  }

  /** Many tables are refused here: the translation of their joins takes time with the square of their number. */
  countTable(): void {
    if (++this.#tables > TABLES_MAX) throw tooManyTables()
  }

  /** An expression that is read once and stands in two places: many inside each other would double it each time. */
  countCopy(size: number): void {
    this.#copied += size
    if (this.#copied > COPIED_MAX)
      throw new QueryError(
        'TOO_BIG_AST',
        `The statement is too big: the expressions before BETWEEN have more than ${COPIED_MAX} parts (between_parts).`,
      )
  }

  /** Counts the tables of this part on their own: those of WITH count again where they are used. */
  countingTables<T>(read: () => T): T {
    const before = this.#tables
    this.#tables = 0
    const value = read()
    this.#tables = before
    return value
  }

  unexpected(expected?: string): QueryError {
    const token = this.peek()
    const wanted = expected === undefined ? '' : `; expected ${expected}`
    if (token === undefined) return syntaxError('the statement ends too early', this.position, wanted)
    if (token.text === ';')
      return new QueryError('SYNTAX_ERROR', `Syntax error at position ${token.at}: multi-statements are not allowed.`)
    const clause = NOT_OFFERED[token.upper]
    if (clause !== undefined && Object.hasOwn(NOT_OFFERED, token.upper)) return clauseNotOffered(clause, token.at)
    return syntaxError(`${shownName(token.text)} is not expected here`, token.at, wanted)
  }
}

function syntaxError(message: string, at: number, end = ''): QueryError {
  return new QueryError('SYNTAX_ERROR', `Syntax error at position ${at}: ${message}${end}.`)
}

export function clauseNotOffered(clause: string, at: number, instead = ''): QueryError {
  const hint = instead === '' ? '' : ` ${instead}`
  return new QueryError('NOT_IMPLEMENTED', `Clause ${clause} is not offered, at position ${at}.${hint}`)
}

/** A function with a prefix, or called on a value. */
export function qualifiedFunction(path: readonly string[], at: number): QueryError {
  return new QueryError(
    'UNKNOWN_FUNCTION',
    `Function ${path.map(shownName).join('.')} is not offered, at position ${at}: write a function of docs/schema.md without a prefix.`,
  )
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}

/** Words that begin a clause or an operator, so they are names only in quotes. */
const RESERVED: ReadonlySet<string> = words(`
  ALL AND ANTI ANY ARRAY AS ASC ASCENDING ASOF BETWEEN BY CASE CROSS DESC DESCENDING DISTINCT ELSE END EXCEPT FETCH FINAL FORMAT FROM FULL
  GLOBAL GROUP HAVING ILIKE IN INNER INTERSECT INTO IS JOIN LEFT LIKE LIMIT NATURAL NOT OFFSET ON OR ORDER PASTE PREWHERE QUALIFY RIGHT
  SAMPLE SELECT SEMI SETTINGS THEN UNION USING WHEN WHERE WINDOW WITH PIVOT UNPIVOT POSITIONAL TABLESAMPLE LATERAL OUTER
`)

/** Words that begin something that ClickHouse or the embedded engine has and this surface does not. */
const NOT_OFFERED: Readonly<Record<string, string>> = {
  INTO: 'INTO',
  SAMPLE: 'SAMPLE',
  TABLESAMPLE: 'TABLESAMPLE',
  PASTE: 'PASTE JOIN',
  NATURAL: 'NATURAL JOIN',
  POSITIONAL: 'POSITIONAL JOIN',
  LATERAL: 'LATERAL',
  PIVOT: 'PIVOT',
  UNPIVOT: 'UNPIVOT',
  FORMAT: 'FORMAT inside of a statement',
  SETTINGS: 'SETTINGS inside of a statement',
  INTERPOLATE: 'INTERPOLATE',
  COLLATE: 'COLLATE',
  RECURSIVE: 'WITH RECURSIVE',
  FETCH: 'FETCH',
  WINDOW: 'WINDOW here',
  PARALLEL: 'PARALLEL WITH',
}
