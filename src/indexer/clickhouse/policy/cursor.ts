import { QueryError } from '../../query/error.ts'
import { shownName } from '../../query/names.ts'
import { isSymbol, isWord, STATEMENT_NESTING_MAX, type Token, tooDeep } from '../../query/sql-tokens.ts'
import { KEYWORDS, REFUSED_CLAUSES } from './keywords.ts'

/** The tokens of a statement, read once from the first to the last. */
export type Cursor = {
  readonly at: number
  /** Looks at tokens and tokens taken: proportional to the number of tokens, whatever they are. */
  readonly steps: number
  peek(ahead?: number): Token | undefined
  take(): Token
  /** The next token, if it is one of these words. */
  takeWord(...words: readonly string[]): string | undefined
  takeSymbol(...texts: readonly string[]): string | undefined
  expectWord(...words: readonly string[]): string
  expectSymbol(text: string): void
  /** A name, which is in quotes or no keyword; undefined where none stands. */
  takeName(): string | undefined
  expectName(): string
  /** Whether a query begins here, after any number of parentheses. */
  beginsQuery(): boolean
  /** Reads what stands inside of something else; refuses what is too deep. */
  nested<T>(read: () => T): T
  /** For whatever is not understood. */
  unexpected(): QueryError
}

export function createCursor(tokens: readonly Token[]): Cursor {
  let at = 0
  let steps = 0
  let depth = 0
  const queries = queryStarts(tokens)

  const peek = (ahead = 0): Token | undefined => {
    steps++
    return tokens[at + ahead]
  }
  const takeIf = (isWanted: (token: Token) => boolean): Token | undefined => {
    const token = peek()
    if (token === undefined || !isWanted(token)) return undefined
    at++
    return token
  }
  const unexpected = (): QueryError => {
    const token = tokens[at]
    if (token === undefined) return syntaxError('the statement ends too early')
    if (token.text === ';') return syntaxError('multi-statements are not allowed')
    if (Object.hasOwn(REFUSED_CLAUSES, token.upper))
      return new QueryError('NOT_IMPLEMENTED', REFUSED_CLAUSES[token.upper] as string)
    const keyword = KEYWORDS.has(token.upper) ? '; a name that is a keyword stands in quotes' : ''
    return syntaxError(`${shownName(token.text)} is not supported here${keyword}`)
  }
  const cursor: Cursor = {
    get at() {
      return at
    },
    get steps() {
      return steps
    },
    peek,
    take() {
      const token = takeIf(() => true)
      if (token === undefined) throw unexpected()
      return token
    },
    takeWord: (...words) => takeIf(({ upper }) => words.includes(upper))?.upper,
    takeSymbol: (...texts) => takeIf(({ kind, text }) => kind === 'symbol' && texts.includes(text))?.text,
    expectWord(...words) {
      const word = cursor.takeWord(...words)
      if (word === undefined) throw unexpected()
      return word
    },
    expectSymbol(text) {
      if (cursor.takeSymbol(text) === undefined) throw unexpected()
    },
    takeName: () => takeIf(isName)?.value,
    expectName() {
      const name = cursor.takeName()
      if (name === undefined) throw unexpected()
      return name
    },
    beginsQuery: () => queries[at] === 1,
    nested(read) {
      if (++depth > STATEMENT_NESTING_MAX) throw tooDeep()
      try {
        return read()
      } finally {
        depth--
      }
    },
    unexpected,
  }
  return cursor
}

/** Whether it can be a name: in quotes, or a word that is no keyword. */
export function isName(token: Token | undefined): boolean {
  return token?.kind === 'name' || (token?.kind === 'word' && !KEYWORDS.has(token.upper))
}

export function syntaxError(message: string): QueryError {
  return new QueryError('SYNTAX_ERROR', `Syntax error: ${message}.`)
}

/** 1 for each token at which a query begins, found in one pass from the end. */
function queryStarts(tokens: readonly Token[]): Uint8Array {
  const starts = new Uint8Array(tokens.length + 1)
  for (let at = tokens.length - 1; at >= 0; at--) {
    const token = tokens[at]
    const isStart = isWord(token, 'SELECT') || isWord(token, 'WITH') || (isSymbol(token, '(') && starts[at + 1] === 1)
    starts[at] = isStart ? 1 : 0
  }
  return starts
}
