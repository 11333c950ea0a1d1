import type { QueryContext } from '../query/request.ts'
import { isSymbol, isWord, type Token } from '../query/sql-tokens.ts'

/** The ClickHouse release whose interface is offered; tools choose their statements by it. */
const SERVER_VERSION = '25.8.1.1'

const SERVER_REVISION = 54_501

type Connection = QueryContext & { readonly timezone: string }

/** Functions about the connection, by their names in lower case. Their values are known before the statement runs, on both engines. */
const FUNCTIONS: Readonly<Record<string, (connection: Connection) => string | number>> = {
  version: () => SERVER_VERSION,
  currentdatabase: ({ database }) => database,
  current_database: ({ database }) => database,
  database: ({ database }) => database,
  currentuser: ({ user }) => user,
  current_user: ({ user }) => user,
  user: ({ user }) => user,
  timezone: ({ timezone }) => timezone,
  servertimezone: () => 'UTC',
  hostname: ({ hostName }) => hostName,
  displayname: ({ hostName }) => hostName,
  uptime: ({ uptimeSeconds }) => uptimeSeconds,
  revision: () => SERVER_REVISION,
}

/** The names that `system.functions` lists. */
export const CONNECTION_FUNCTIONS: readonly string[] = [
  'version',
  'currentDatabase',
  'currentUser',
  'user',
  'timezone',
  'serverTimezone',
  'hostName',
  'displayName',
  'uptime',
  'revision',
]

/**
 * Replaces calls of these functions by their values, so that no engine runs its own. A call that is a whole column of a result keeps its text as the
 * name of the column.
 */
export function replaceConnectionFunctions(tokens: readonly Token[], connection: Connection): readonly Token[] {
  if (!tokens.some((_, at) => functionAt(tokens, at) !== undefined)) return tokens
  const out: Token[] = []
  /** For each open parenthesis, whether the list of columns of a SELECT is being read in it. */
  const isInColumns = [false]
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] as Token
    const valueOf = functionAt(tokens, at)
    if (valueOf !== undefined) {
      out.push(...literal(token, valueOf(connection)))
      const isColumn = isInColumns.at(-1) === true && isColumnStart(tokens[at - 1]) && isColumnEnd(tokens[at + 3])
      if (isColumn) out.push(word(token, 'AS'), quotedName(token, `${token.text}()`))
      at += 2
      continue
    }
    if (isSymbol(token, '(')) isInColumns.push(false)
    else if (isSymbol(token, ')') && isInColumns.length > 1) isInColumns.pop()
    else if (isWord(token, 'SELECT')) isInColumns[isInColumns.length - 1] = true
    else if (COLUMNS_END.has(token.upper)) isInColumns[isInColumns.length - 1] = false
    out.push(token)
  }
  return out
}

const COLUMNS_END = new Set(
  'FROM WHERE PREWHERE GROUP ORDER HAVING LIMIT UNION EXCEPT INTERSECT SETTINGS FORMAT WINDOW QUALIFY OFFSET'.split(
    ' ',
  ),
)

function functionAt(tokens: readonly Token[], at: number): ((connection: Connection) => string | number) | undefined {
  const token = tokens[at]
  if (token?.kind !== 'word' || !isSymbol(tokens[at + 1], '(') || !isSymbol(tokens[at + 2], ')')) return undefined
  if (isSymbol(tokens[at - 1], '.')) return undefined
  const name = token.text.toLowerCase()
  return Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined
}

function isColumnStart(before: Token | undefined): boolean {
  return isWord(before, 'SELECT') || isWord(before, 'DISTINCT') || isSymbol(before, ',')
}

function isColumnEnd(after: Token | undefined): boolean {
  return after === undefined || isSymbol(after, ',') || isSymbol(after, ')') || COLUMNS_END.has(after.upper)
}

/** Tokens in the place of another one; they keep its other fields. */
function literal(from: Token, value: string | number): readonly Token[] {
  if (typeof value === 'string') {
    const text = `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
    return [{ ...from, kind: 'string', text, value, upper: '' }]
  }
  const number = String(Math.floor(value))
  return [
    word(from, 'toUInt32'),
    symbol(from, '('),
    { ...from, kind: 'number', text: number, value: number, upper: '' },
    symbol(from, ')'),
  ]
}

function word(from: Token, text: string): Token {
  return { ...from, kind: 'word', text, value: text, upper: text.toUpperCase() }
}

function symbol(from: Token, text: string): Token {
  return { ...from, kind: 'symbol', text, value: text, upper: '' }
}

function quotedName(from: Token, name: string): Token {
  return {
    ...from,
    kind: 'name',
    text: `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``,
    value: name,
    upper: '',
  }
}
