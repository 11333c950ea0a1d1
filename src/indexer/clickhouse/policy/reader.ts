import { QueryError } from '../../query/error.ts'
import { isSymbol, isWord, STATEMENT_NESTING_MAX, shownName, type Token, tooDeep } from '../../query/sql-tokens.ts'

/** Names of the common table expressions in scope. */
export type Scope = Pick<ReadonlySet<string>, 'has'>

/** Those of one query and of the queries around it; never copied, since a statement may have thousands. */
export class CommonTables implements Scope {
  readonly #own = new Set<string>()
  readonly #outer: Scope

  constructor(outer: Scope) {
    this.#outer = outer
  }

  add(name: string): void {
    this.#own.add(name)
  }

  has(name: string): boolean {
    return this.#own.has(name) || this.#outer.has(name)
  }
}

/** The state of reading one statement. The files of the grammar call each other through it, because their rules are mutually recursive. */
export type Reader = Cursor & {
  /** Tables and views that a customer may name. */
  readonly tables: ReadonlySet<string>
  /** The only database name that may qualify them. */
  readonly database: string
  /** Aliases of expressions. */
  readonly aliases: Set<string>
  /** Names of the tables after IN. */
  readonly inTables: Set<string>
  /** Whether this is the list after IN: the server takes a qualified name there for a table. */
  isInSet: boolean
  query(scope: Scope): void
  /** With an alias or without. */
  expression(scope: Scope): void
  /** Without an alias. */
  operation(scope: Scope): void
  tableName(scope: Scope): void
}

/** Reads the tokens of a statement once, from the first to the last. */
export type Cursor = {
  readonly at: number
  /** Number of looks at tokens; proportional to the number of tokens for every input. */
  readonly steps: number
  peek(ahead?: number): Token | undefined
  take(): Token
  /** The next token, if it is one of these words. */
  takeWord(...words: readonly string[]): string | undefined
  takeSymbol(...texts: readonly string[]): string | undefined
  expectWord(...words: readonly string[]): string
  expectSymbol(text: string): void
  /** The next token, if it is a name: quoted, or not a keyword. */
  takeName(): string | undefined
  expectName(): string
  /** Whether a query begins here, possibly after opening parentheses. */
  beginsQuery(): boolean
  /** Reads one level deeper. Throws QueryError beyond the nesting limit. */
  nested<T>(read: () => T): T
  /** The error for a token that the grammar does not expect. */
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
  const takeIf = (matches: (token: Token) => boolean): Token | undefined => {
    const token = peek()
    if (token === undefined || !matches(token)) return undefined
    at++
    return token
  }
  const unexpected = (): QueryError => {
    const token = tokens[at]
    if (token === undefined) return syntaxError('the statement ends too early')
    if (token.text === ';') return syntaxError('multi-statements are not allowed')
    if (Object.hasOwn(REFUSED_CLAUSES, token.upper))
      return new QueryError('NOT_IMPLEMENTED', REFUSED_CLAUSES[token.upper] as string)
    const keyword = KEYWORDS.has(token.upper) ? '; a name that is a keyword needs quotes' : ''
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

/** Whether the token can be a name: quoted, or a word that is not a keyword. */
export function isName(token: Token | undefined): boolean {
  return token?.kind === 'name' || (token?.kind === 'word' && !KEYWORDS.has(token.upper))
}

export function syntaxError(message: string): QueryError {
  return new QueryError('SYNTAX_ERROR', `Syntax error: ${message}.`)
}

/** 1 for each token at which a query begins; computed in one pass from the end. */
function queryStarts(tokens: readonly Token[]): Uint8Array {
  const starts = new Uint8Array(tokens.length + 1)
  for (let at = tokens.length - 1; at >= 0; at--) {
    const token = tokens[at]
    const isStart = isWord(token, 'SELECT') || isWord(token, 'WITH') || (isSymbol(token, '(') && starts[at + 1] === 1)
    starts[at] = isStart ? 1 : 0
  }
  return starts
}

/** One or more, separated by commas. */
export function readList(reader: Cursor, read: () => void): void {
  do read()
  while (reader.takeSymbol(',') !== undefined)
}

export function readExpressions(reader: Reader, scope: Scope): void {
  readList(reader, () => reader.expression(scope))
}

/** Reads the content of parentheses or brackets and the closing one; the opening one has been read. */
export function readNested(reader: Reader, close: string, read: () => void): void {
  const { isInSet } = reader
  reader.isInSet = false
  reader.nested(read)
  reader.isInSet = isInSet
  reader.expectSymbol(close)
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}

/**
 * Words that some version of the server reads as keywords. They are names only in quotes: one version may read as a clause what another reads as an
 * alias, and the server would run another statement than the one that was checked.
 */
export const KEYWORDS: ReadonlySet<string> = words(`
  ALL AND ANTI ANY APPLY ARRAY AS ASC ASCENDING ASOF BETWEEN BY CASE COLLATE CROSS DESC DESCENDING DISTINCT DIV ELSE END EXCEPT EXISTS
  EXPLAIN FETCH FILL FILTER FINAL FORMAT FROM FULL GLOBAL GROUP GROUPING HAVING ILIKE IN INNER INTERPOLATE INTERSECT INTERVAL INTO IS JOIN
  LATERAL LEFT LIKE LIMIT LOCAL MOD NATURAL NOT OFFSET ON ONLY OR ORDER OUTER OUTFILE OVER PARALLEL PARTITION PASTE PREWHERE QUALIFY REGEXP
  REPLACE RIGHT SAMPLE SELECT SEMI SETTINGS STEP THEN TOP UNION USING VALUES WHEN WHERE WINDOW WITH XOR
`)

/** Clauses that write, name functions without calling them, or may only be at the end of the statement, where they have been removed. */
const REFUSED_CLAUSES: Readonly<Record<string, string>> = {
  INTO: 'INTO is not supported here: the response is the body.',
  TOP: 'TOP is not supported here: use LIMIT.',
  APPLY: 'APPLY is not supported here: write the call.',
  FORMAT: 'FORMAT is allowed once, at the end.',
  SETTINGS: 'SETTINGS are allowed at the end of the statement, as name = value.',
  RECURSIVE: 'RECURSIVE is not supported here.',
}
