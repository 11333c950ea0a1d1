import { QueryError } from '../query/error.ts'
import { shownName, tokenize } from '../query/sql-tokens.ts'
import { parseType } from './parse-type.ts'
import { duckType, type Type, unknownType } from './types.ts'
import { quoteText, type Value, value } from './value.ts'

/** Values given with the query, by name, escaped as in a tab-separated file. */
export type Given = Readonly<Record<string, string>>
export type Binding = { readonly given: Given; readonly used: Record<string, string | null> }

/** A single value is bound. A list, which cannot be bound as text, is written into the statement value by value. */
export function parameterValue(name: string, typeText: string, { given, used }: Binding): Value {
  const text = givenText(name, given)
  if (typeText === 'Identifier') throw unknownType(`${typeText} here: it names a table after FROM or a column`)
  const type = parseType(typeText)
  if (type.kind === 'array') return value(`CAST(${listText(name, text)} AS ${duckType(type)})`, type)
  if (type.kind === 'tuple' || type.kind === 'map') throw unknownType(typeText)
  used[name] = unescapeTsv(text)
  const sql = `CAST($${name} AS ${type.kind === 'datetime' || type.kind === 'datetime64' ? 'TIMESTAMP' : duckType(type)})`
  return { ...value(sql, type), isConstant: true, constant: constantOf(type, used[name] ?? null) }
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

function listText(name: string, text: string): string {
  const tokens = tokenize(text)
  const items = tokens.slice(1, -1)
  const isList = tokens[0]?.text === '[' && tokens.at(-1)?.text === ']'
  const isOfValues = items.every(({ kind, text: shown }, at) =>
    at % 2 === 1 ? shown === ',' : kind === 'string' || kind === 'number' || /^(true|false|NULL)$/i.test(shown),
  )
  if (!isList || !isOfValues)
    throw new QueryError('TYPE_MISMATCH', `The value of param_${shownName(name)} is not a list.`)
  return `[${items.map((item) => (item.kind === 'string' ? quoteText(item.value) : item.text)).join(' ')}]`
}
