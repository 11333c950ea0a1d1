import { CLICKHOUSE_TABLE_FUNCTIONS, isClickHouseFunction } from './clickhouse-functions.ts'
import { QueryError } from './query-error.ts'
import { isSymbol, isWord, type Token, tokenize } from './sql-tokens.ts'
import { takeFormat, takeSettings } from './statement-end.ts'

export type ClickHouseGateOptions = {
  /** Tables and views a customer may name. */
  readonly tables: ReadonlySet<string>
  /** The one database name that may stand before them. */
  readonly database: string
}

/** A customer's statement as the server is to see it. */
export type ClickHouseStatement = {
  readonly sql: string
  /** Named by FORMAT at the end. */
  readonly format: string | undefined
  /** From SETTINGS at the end: names and values, to be judged as those of the address are. */
  readonly settings: ReadonlyMap<string, string>
}

/** Words that may stand before a parenthesis without calling anything. */
const BEFORE_PARENTHESIS = wordSet(`
  SELECT DISTINCT FROM JOIN ON USING WHERE PREWHERE HAVING QUALIFY BY AND OR NOT XOR IN LIKE ILIKE BETWEEN IS AS CASE WHEN THEN ELSE WITH
  LIMIT OFFSET UNION ALL ANY EXCEPT INTERSECT INTERVAL OVER FILTER REPLACE SETS ROLLUP CUBE EXISTS DIV MOD
`)
/** What ends the list of tables after FROM. */
const AFTER_TABLES = wordSet(
  'SELECT WHERE PREWHERE GROUP HAVING QUALIFY WINDOW ORDER LIMIT OFFSET FETCH UNION EXCEPT INTERSECT',
)
/** Words that mean something to the server wherever they stand: none of them is taken for the name of a column, a table or an alias. */
const KEYWORDS = wordSet(`
  SELECT DISTINCT FROM FINAL SAMPLE ARRAY LEFT RIGHT INNER OUTER FULL CROSS GLOBAL ASOF SEMI ANTI PASTE JOIN ON USING WHERE PREWHERE GROUP
  HAVING QUALIFY WINDOW ORDER LIMIT OFFSET FETCH UNION EXCEPT INTERSECT WITH AS IN AND OR NOT BETWEEN LIKE ILIKE CASE WHEN THEN ELSE END
`)
/** Clauses that write, name functions without calling them, or belong at the end of the statement, where they have been taken off. */
const REFUSED: Readonly<Record<string, string>> = {
  INTO: 'INTO is not offered here: the answer is the body.',
  TOP: 'TOP is not offered here: use LIMIT.',
  APPLY: 'APPLY is not offered here: write the call.',
  FORMAT: 'FORMAT stands once, at the end.',
  SETTINGS: 'SETTINGS stand once, at the end, as name = value.',
}
const SYMBOLS = new Set('( ) [ ] , . * + - / % = == != <> < > <= >= || :: -> ? :'.split(' '))
/** Types of parameters are words; an Identifier would be a name that is not judged. */
const PARAMETER_TYPE = /^(?!.*Identifier)[A-Za-z0-9_(), ']+$/i

/** A pair of parentheses that is open. */
type Open = {
  /** Whether the list of tables after a FROM goes on here. */
  inTables: boolean
  /** Whether it holds what IN looks through: a name with a database before it would be a table there. */
  readonly isLookedThrough: boolean
}

/**
 * Judges a customer's statement by its tokens and writes it anew from them, so that the server reads what was judged: one SELECT, functions of our
 * list, tables that are published. Unlike the embedded engine, the server gives us no tree of it; so wherever a table can stand, nothing else is
 * taken. Throws QueryError; what it does not know it refuses.
 */
export function passClickHouseGate(query: string, options: ClickHouseGateOptions): ClickHouseStatement {
  const tokens = tokenize(query).filter(({ kind }) => kind !== 'space')
  while (tokens.at(-1)?.text === ';') tokens.pop()
  const format = takeFormat(tokens)
  const settings = takeSettings(tokens)
  if (tokens.length === 0) throw new QueryError('SYNTAX_ERROR', 'Empty query.')
  if (!isQuery(tokens, 0))
    throw new QueryError('READONLY', 'Cannot execute query in readonly mode: only SELECT is allowed.')
  const common = commonTables(tokens)
  const open: Open[] = [{ inTables: false, isLookedThrough: false }]
  tokens.forEach((_token, at) => {
    judge(tokens, at)
    follow(at)
  })
  if (open.length !== 1) throw syntaxError('a parenthesis is not closed')
  return { sql: tokens.map(({ text }) => text).join(' '), format, settings }

  /** Keeps count of parentheses and of the places where tables stand. */
  function follow(at: number): void {
    const token = tokens[at] as Token
    const [before, after] = [tokens[at - 1], tokens[at + 1]]
    const here = open.at(-1) as Open
    if (isSymbol(token, '(')) {
      const isBare = before?.kind !== 'word' && before?.kind !== 'name'
      const isLookedThrough = (isWord(before, 'IN') || (isBare && here.isLookedThrough)) && !isQuery(tokens, at + 1)
      open.push({ inTables: false, isLookedThrough })
    } else if (isSymbol(token, ')')) {
      open.pop()
      if (open.length === 0) throw syntaxError('a parenthesis is closed that was not opened')
    } else if (isSymbol(token, '.') && here.isLookedThrough) {
      throw syntaxError('inside of IN ( ) a column stands without its table')
    } else if (isSymbol(token, ',')) {
      if (here.inTables) table(at + 1)
    } else if (isWord(token, 'FROM') || isWord(token, 'JOIN')) {
      here.inTables = !isWord(before, 'ARRAY')
      if (here.inTables) table(at + 1)
    } else if (isWord(token, 'IN')) {
      if (isName(after) && !isSymbol(tokens[at + 2], '(')) table(at + 1)
    } else if (token.kind === 'word' && AFTER_TABLES.has(token.text.toUpperCase())) {
      here.inTables = false
      // A server that takes the word for a name would go on with the next table here.
      if (isSymbol(after, ',')) throw syntaxError(`nothing stands after ${token.text.toUpperCase()}`)
    }
  }

  /** What stands where a table is read. */
  function table(at: number): void {
    const [token, dot, second, next] = tokens.slice(at, at + 4)
    if (isSymbol(token, '(')) {
      if (!isQuery(tokens, at)) throw syntaxError('a SELECT is expected in these parentheses')
      return
    }
    if (token === undefined || !isName(token)) throw syntaxError('the name of a table is expected')
    if (isSymbol(dot, '(')) {
      if (CLICKHOUSE_TABLE_FUNCTIONS.has(token.value.toLowerCase())) return
      throw new QueryError('UNKNOWN_FUNCTION', `Unknown table function ${clean(token.value)}.`)
    }
    const isQualified = isSymbol(dot, '.')
    if (isQualified && token.value !== options.database)
      throw new QueryError('UNKNOWN_DATABASE', `Database ${clean(token.value)} does not exist.`)
    const name = isQualified ? (second?.value ?? '') : token.value
    const isKnown = options.tables.has(name) || (!isQualified && common.has(name))
    if (!isKnown || (isQualified && (isSymbol(next, '.') || isSymbol(next, '('))))
      throw new QueryError('UNKNOWN_TABLE', `Table ${clean(name)} does not exist.`)
  }
}

/** One token in its place, whatever it belongs to. */
function judge(tokens: readonly Token[], at: number): void {
  const token = tokens[at] as Token
  const [before, after] = [tokens[at - 1], tokens[at + 1]]
  const upper = token.text.toUpperCase()
  if (token.kind === 'symbol') {
    if (token.text === ';') throw syntaxError('multi-statements are not allowed')
    if (!SYMBOLS.has(token.text)) throw syntaxError('a character outside of quotes is not known')
  } else if (token.kind === 'parameter') {
    const type = token.value.slice(token.value.indexOf(':') + 1)
    if (!PARAMETER_TYPE.test(type))
      throw new QueryError('UNKNOWN_TYPE', `Unknown type ${clean(type)} of a query parameter.`)
  } else if (token.kind === 'word' && isWord(before, 'AS') && KEYWORDS.has(upper)) {
    throw syntaxError(`${upper} is not a name; put it in quotes`)
  } else if (token.kind === 'word' || token.kind === 'name') {
    const isCall = isSymbol(after, '(')
    const isPlainWord = token.kind === 'word' && BEFORE_PARENTHESIS.has(upper)
    const isSource = isWord(before, 'FROM') || isWord(before, 'JOIN')
    const isTableFunction = isSource && CLICKHOUSE_TABLE_FUNCTIONS.has(token.value.toLowerCase())
    if (isCall && !isPlainWord && !isTableFunction && !isClickHouseFunction(token.value))
      throw new QueryError('UNKNOWN_FUNCTION', `Unknown function ${clean(token.value)}.`)
    if (isWord(token, 'DISTINCT') && isWord(after, 'ON'))
      throw new QueryError('NOT_IMPLEMENTED', 'DISTINCT ON is not offered here: use LIMIT 1 BY.')
    if (token.kind === 'word' && !isCall && Object.hasOwn(REFUSED, upper))
      throw new QueryError('NOT_IMPLEMENTED', REFUSED[upper] as string)
  }
}

/** Names of `WITH name AS (SELECT …)`, which can be read from as tables. */
function commonTables(tokens: readonly Token[]): ReadonlySet<string> {
  const names = tokens.filter(
    (token, at) => isName(token) && isWord(tokens[at + 1], 'AS') && isSymbol(tokens[at + 2], '('),
  )
  return new Set(names.map(({ value }) => value))
}

/** Whether a query begins here, after any number of parentheses. */
function isQuery(tokens: readonly Token[], from: number): boolean {
  let at = from
  while (isSymbol(tokens[at], '(')) at++
  return isWord(tokens[at], 'SELECT') || isWord(tokens[at], 'WITH')
}

function isName(token: Token | undefined): boolean {
  return token?.kind === 'word' || token?.kind === 'name'
}

function wordSet(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}

function syntaxError(says: string): QueryError {
  return new QueryError('SYNTAX_ERROR', `Syntax error: ${says}.`)
}

/** A name of the customer's own, short and without control characters. */
function clean(name: string): string {
  return name.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 100)
}
