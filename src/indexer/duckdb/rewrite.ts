import { QueryError } from '../query/error.ts'
import { isSymbol, shownName, type Token, tokenize } from '../query/sql-tokens.ts'
import type { Statement } from '../query/statement.ts'

/** A customer's statement in the dialect of the embedded engine. */
export type Rewritten = {
  readonly sql: string
  /** Values to bind, by the names that the statement uses. */
  readonly parameters: Readonly<Record<string, string | null>>
}

/** Values given with the query, by name, escaped as in a tab-separated file. */
type Parameters = Readonly<Record<string, string>>
type Binding = { readonly given: Parameters; readonly used: Record<string, string | null> }

/** Rewrites ClickHouse's syntax into DuckDB's, token by token. Unknown constructs stay as they are; the SQL policy decides about them. */
export function rewriteStatement({ tokens }: Pick<Statement, 'tokens'>, given: Parameters = {}): Rewritten {
  const binding: Binding = { given, used: {} }
  const end = tokens.findLastIndex(({ text }) => text !== ';') + 1
  return { sql: rewriteTokens(tokens.slice(0, end), binding), parameters: binding.used }
}

function rewriteTokens(tokens: readonly Token[], binding: Binding): string {
  const out: string[] = []
  for (let at = 0; at < tokens.length; at++) at += rewriteAt(tokens, at, out, binding) - 1
  return out.join(' ')
}

/** Rewrites what begins at `at`. Returns the number of tokens that it read. */
function rewriteAt(tokens: readonly Token[], at: number, out: string[], binding: Binding): number {
  const token = tokens[at] as Token
  switch (token.kind) {
    case 'string':
      out.push(quoteString(token.value))
      return 1
    case 'name':
      out.push(quoteName(token.value))
      return 1
    case 'parameter': {
      out.push(parameterText(token.value, binding))
      return 1
    }
    case 'word':
      return rewriteWord(tokens, at, out, binding)
    default:
      out.push(token.text === '==' ? '=' : token.text)
      return 1
  }
}

function rewriteWord(tokens: readonly Token[], at: number, out: string[], binding: Binding): number {
  const { text, upper } = tokens[at] as Token
  const before = tokens[at - 1]
  if (upper === 'PREWHERE') out.push('WHERE')
  else if (
    upper === 'FINAL' &&
    before !== undefined &&
    (before.kind === 'word' || before.kind === 'name') &&
    isTableEnd(tokens, at)
  )
    return 1
  else if (PARAMETRIC.has(text) && isSymbol(tokens[at + 1], '(')) return rewriteParametric(tokens, at, out, binding)
  else if (upper === 'NOW' && isSymbol(tokens[at + 1], '(') && isSymbol(tokens[at + 2], ')')) {
    // Times in the tables have no zone, and the engine does not compare them with times that have one.
    out.push('CAST(get_current_timestamp() AS TIMESTAMP_S)')
    return 3
  } else if (text === 'position' && isSymbol(tokens[at + 1], '(')) out.push('strpos')
  else out.push(text)
  return 1
}

/** Parametric functions such as `quantile(0.5)(x)`: ClickHouse gives the parameters in a first pair of parentheses. */
const PARAMETRIC = new Map<string, (parameters: string, args: string) => string>([
  ['quantile', (p, x) => `quantile_cont(${x}, ${p || '0.5'})`],
  ['quantileExact', (p, x) => `quantile_disc(${x}, ${p || '0.5'})`],
  ['quantiles', (p, x) => `quantile_cont(${x}, [${p}])`],
  ['topK', (n, x) => `approx_top_k(${x}, ${n || '10'})`],
])

function rewriteParametric(tokens: readonly Token[], at: number, out: string[], binding: Binding): number {
  const write = PARAMETRIC.get((tokens[at] as Token).text) as (parameters: string, args: string) => string
  const first = insideParentheses(tokens, at + 1)
  const hasTwo = isSymbol(tokens[first.end + 1], '(')
  const second = hasTwo ? insideParentheses(tokens, first.end + 1) : first
  out.push(write(hasTwo ? rewriteTokens(first.inside, binding) : '', rewriteTokens(second.inside, binding)))
  return second.end - at + 1
}

/** A single value is bound. A list, which cannot be bound as text, is written into the statement value by value. */
function parameterText(parameter: string, { given, used }: Binding): string {
  const [name, type] = splitOnce(parameter, ':')
  const value = Object.hasOwn(given, name) ? given[name] : undefined
  if (value === undefined)
    throw new QueryError(
      'UNKNOWN_QUERY_PARAMETER',
      `Substitution ${shownName(name)} is not set: give it as param_${shownName(name)}.`,
    )
  const target = duckTypeOf(type)
  if (target.endsWith('[]')) return `CAST(${listText(name, value)} AS ${target})`
  used[name] = unescapeTsv(value)
  return `CAST($${name} AS ${target})`
}

const UNESCAPED: Readonly<Record<string, string>> = {
  t: '\t',
  n: '\n',
  r: '\r',
  0: '\0',
  b: '\b',
  f: '\f',
  '\\': '\\',
  "'": "'",
}

/** `\\N` is NULL. */
function unescapeTsv(value: string): string | null {
  if (value === '\\N') return null
  return value.replaceAll(/\\(.)/gs, (escape, char: string) => UNESCAPED[char] ?? escape)
}

function listText(name: string, value: string): string {
  const tokens = tokenize(value)
  const items = tokens.slice(1, -1)
  const isList = tokens[0]?.text === '[' && tokens.at(-1)?.text === ']'
  const isOfValues = items.every(({ kind, text }, at) =>
    at % 2 === 1 ? text === ',' : kind === 'string' || kind === 'number' || /^(true|false|NULL)$/i.test(text),
  )
  if (!isList || !isOfValues) throw new QueryError('TYPE_MISMATCH', `The value of param_${name} is not a list.`)
  return `[${items.map((item) => (item.kind === 'string' ? quoteString(item.value) : item.text)).join(' ')}]`
}

function insideParentheses(tokens: readonly Token[], open: number): { inside: readonly Token[]; end: number } {
  let depth = 0
  for (let at = open; at < tokens.length; at++) {
    if (isSymbol(tokens[at], '(')) depth++
    if (isSymbol(tokens[at], ')')) depth--
    if (depth === 0) return { inside: tokens.slice(open + 1, at), end: at }
  }
  throw new QueryError('SYNTAX_ERROR', 'Syntax error: a parenthesis is not closed.')
}

const AFTER_TABLE = new Set([
  'WHERE',
  'PREWHERE',
  'GROUP',
  'ORDER',
  'LIMIT',
  'JOIN',
  'LEFT',
  'INNER',
  'HAVING',
  'UNION',
  'AS',
  'SETTINGS',
  'FORMAT',
])

/** FINAL is a keyword of ClickHouse only after a table; elsewhere it may be a column name. */
function isTableEnd(tokens: readonly Token[], at: number): boolean {
  const after = tokens[at + 1]
  return after === undefined || after.kind === 'symbol' || AFTER_TABLE.has(after.upper)
}

/** The engine ends a statement at a NUL, even inside quotes. */
function withoutNul(value: string): string {
  if (value.includes('\0'))
    throw new QueryError('SYNTAX_ERROR', 'Syntax error: a NUL character in quotes; give it as a parameter.')
  return value
}

function quoteString(value: string): string {
  return `'${withoutNul(value).replaceAll("'", "''")}'`
}

function quoteName(value: string): string {
  return `"${withoutNul(value).replaceAll('"', '""')}"`
}

const DUCK_TYPES: Readonly<Record<string, string>> = {
  String: 'VARCHAR',
  UInt8: 'UTINYINT',
  UInt16: 'USMALLINT',
  UInt32: 'UINTEGER',
  UInt64: 'UBIGINT',
  Int8: 'TINYINT',
  Int16: 'SMALLINT',
  Int32: 'INTEGER',
  Int64: 'BIGINT',
  Float32: 'FLOAT',
  Float64: 'DOUBLE',
  Bool: 'BOOLEAN',
  Date: 'DATE',
  Date32: 'DATE',
  DateTime: 'TIMESTAMP',
  Identifier: '',
}

/** Longer than every known type. */
const TYPE_LENGTH_MAX = 100

/** The engine's name for the type of a parameter. */
function duckTypeOf(type: string): string {
  const inner = type.length > TYPE_LENGTH_MAX ? undefined : /^(Nullable|Array)\((.+)\)$/.exec(type)
  if (inner?.[1] === 'Nullable') return duckTypeOf(inner[2] as string)
  if (inner?.[1] === 'Array') return `${duckTypeOf(inner[2] as string)}[]`
  const base = /^DateTime(?:64)?\([\w ,'/]*\)$/.test(type) ? 'DateTime' : type.replace(/^DateTime64$/, 'DateTime')
  const known = Object.hasOwn(DUCK_TYPES, base) ? DUCK_TYPES[base] : undefined
  if (known === undefined || known === '')
    throw new QueryError('UNKNOWN_TYPE', `Unknown type ${shownName(type)} of a query parameter.`)
  return known
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}
