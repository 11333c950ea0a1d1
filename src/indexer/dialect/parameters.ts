import { QueryError } from '../query/error.ts'
import { shownName, type Token, tokenize } from '../query/sql-tokens.ts'
import { cutDigits } from './functions/decimals.ts'
import { parseType } from './parse-type.ts'
import { duckType, type Type, unknownType, zoneOf } from './types.ts'
import { constantText, quoteText, utcSql, type Value, value } from './value.ts'

/** Values given with the query, by name, escaped as in a tab-separated file. */
export type Given = Readonly<Record<string, string>>
export type Binding = {
  readonly given: Given
  /** Values to bind, by the names that the statement uses. */
  readonly used: Record<string, string | null>
  /** These names, by value. They are not those of the customer: for the engine `a` and `A` are one parameter. */
  readonly names: Map<string | null, string>
  /** By name and type: a value may be long, and used often. */
  readonly values: Map<string, Value>
  /** Called with the length of a text before it is read, and of each list that is written into the statement. */
  onText(length: number): void
}

/** A single value is bound. A list, which cannot be bound as text, is written into the statement value by value. */
export function parameterValue(name: string, typeText: string, binding: Binding): Value {
  const key = `${name} ${typeText}`
  const found = binding.values.get(key) ?? readParameter(name, typeText, binding)
  binding.values.set(key, found)
  // Functions read the text of a constant again.
  binding.onText(found.type.kind === 'array' ? found.sql.length : (constantText(found)?.length ?? 0))
  return found
}

function readParameter(name: string, typeText: string, { given, used, names, onText }: Binding): Value {
  const text = givenText(name, given)
  onText(text.length)
  if (typeText === 'Identifier') throw unknownType(`${typeText} here: it names a table after FROM or a column`)
  const type = parseType(typeText)
  if (type.kind === 'array') return value(`CAST(${listText(name, text, type.of)} AS ${duckType(type)})`, type)
  if (type.kind === 'tuple' || type.kind === 'map') throw unknownType(typeText)
  const plain = unescapeTsv(text)
  if (plain !== null) checkWhole(name, type, plain)
  const bound = plain === null ? null : readNumber(type, plain)
  const boundName = names.get(bound) ?? `p${names.size + 1}`
  names.set(bound, boundName)
  used[boundName] = bound
  const sql = boundSql(`$${boundName}`, type, bound !== plain)
  return { ...value(sql, type), isConstant: true, constant: constantOf(type, plain) }
}

/** A bound text in its type. The text of a time is one of the zone of its type, unless it was made of a number of seconds. */
function boundSql(text: string, type: Type, isUtc: boolean): string {
  if (type.kind !== 'datetime' && type.kind !== 'datetime64') return `CAST(${text} AS ${duckType(type)})`
  return utcSql(`CAST(${text} AS TIMESTAMP)`, isUtc ? undefined : type.zone)
}

/** The engine would round a number with a fraction. */
function checkWhole(name: string, type: Type, text: string): void {
  if (type.kind !== 'int' || /^[+-]?\d+$/.test(text)) return
  throw new QueryError('CANNOT_PARSE_TEXT', `The value of param_${shownName(name)} is not a whole number.`)
}

const OFFSET_TIME = /^(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?)([+-])(\d{2}):?(\d{2})?$/

/** A time with an offset is a moment. ClickHouse reads a number as seconds since 1970, and its official client sends every Date so. */
function readTime({ kind }: Type, text: string): string {
  const [, local = '', sign, hours = '', minutes = '0'] = OFFSET_TIME.exec(text) ?? []
  if (sign !== undefined && kind.startsWith('datetime')) {
    const [whole = '', fraction = ''] = local.split(/(?=\.)/)
    const offsetMs = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
    const ms = Date.parse(`${whole.replace(' ', 'T')}Z`) - offsetMs
    return Number.isNaN(ms) ? text : `${new Date(ms).toISOString().slice(0, 19)}${fraction}`
  }
  const pattern = kind === 'datetime' ? /^(\d{5,10})$/ : kind === 'datetime64' ? /^(\d{5,10})(\.\d+)?$/ : undefined
  const [, seconds, fraction = ''] = pattern?.exec(text) ?? []
  if (seconds === undefined) return text
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}${fraction}`
}

/** A number as the engine reads it in the type. */
function readNumber(type: Type, text: string): string {
  return type.kind === 'decimal' ? cutDigits(text, type.scale) : readTime(type, text)
}

function constantOf(type: Type, text: string | null): Value['constant'] {
  if (text === null) return null
  if (type.kind === 'string') return text
  if (type.kind === 'int' && /^-?\d{1,15}$/.test(text)) return Number(text)
  return undefined
}

/** The number of a parameter that LIMIT uses. */
export function parameterNumber(name: string, at: number, { given }: Binding): number {
  const text = givenText(name, given)
  if (!/^\d{1,15}$/.test(text))
    throw new QueryError('BAD_ARGUMENTS', `param_${shownName(name)}, used at position ${at}, is not a whole number.`)
  return Number(text)
}

/** The names of a `{name:Identifier}` parameter. */
export function parameterIdentifier(parameter: string, at: number, { given }: Binding): readonly string[] {
  const found = /^\{\s*([A-Za-z_]\w*)\s*:\s*Identifier\s*\}$/.exec(parameter)
  if (found === null)
    throw new QueryError(
      'SYNTAX_ERROR',
      `Syntax error at position ${at}: a table is a name or a parameter of the type Identifier.`,
    )
  const path = givenText(found[1] as string, given).split('.')
  if (path.length > 2 || path.some((part) => part === ''))
    throw new QueryError('BAD_ARGUMENTS', `param_${found[1]} is not a name.`)
  return path
}

function givenText(name: string, given: Given): string {
  const text = Object.hasOwn(given, name) ? given[name] : undefined
  if (text === undefined)
    throw new QueryError(
      'UNKNOWN_QUERY_PARAMETER',
      `Substitution ${shownName(name)} is not set: give it as param_${shownName(name)}.`,
    )
  return text
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
function unescapeTsv(text: string): string | null {
  if (text === '\\N') return null
  return text.replaceAll(/\\(.)/gs, (escape, char: string) => UNESCAPED[char] ?? escape)
}

function listText(name: string, text: string, of: Type): string {
  const tokens = tokenize(text)
  const isList = tokens[0]?.text === '[' && tokens.at(-1)?.text === ']'
  const items: Token[][] = tokens.length > 2 ? [[]] : []
  for (const token of tokens.slice(1, -1)) {
    if (token.text === ',') items.push([])
    else items.at(-1)?.push(token)
  }
  const values = items.map((item) => itemSql(name, item, of))
  if (!isList || values.includes(undefined))
    throw new QueryError('TYPE_MISMATCH', `The value of param_${shownName(name)} is not a list.`)
  return `[${values.join(', ')}]`
}

/** One value of a list, of which a number may have a sign; undefined for anything else. */
function itemSql(name: string, tokens: readonly Token[], of: Type): string | undefined {
  const [first, second] = tokens
  const item = second ?? first
  if (item?.kind === 'number' && (second === undefined || /^[+-]$/.test(first?.text ?? '')) && tokens.length <= 2) {
    const number = tokens.map((each) => each.text).join('')
    checkWhole(name, of, number)
    const read = readNumber(of, number)
    return read === number || of.kind === 'decimal' ? read : boundSql(quoteText(read), of, true)
  }
  if (first === undefined || tokens.length > 1) return undefined
  if (first.kind === 'string')
    return zoneOf(of) === undefined ? quoteText(first.value) : boundSql(quoteText(first.value), of, false)
  return /^(true|false|NULL)$/i.test(first.text) ? first.text : undefined
}
