import { QueryError } from '../../query/error.ts'
import { foldName, shownName } from '../../query/sql-tokens.ts'
import { compile } from '../compile-expression.ts'
import type { Context } from '../context.ts'
import type { Column } from '../expression/column-index.ts'
import { parseType } from '../parse-type.ts'
import type { Expression, Source } from '../syntax.ts'
import { duckType, type Type } from '../types.ts'
import { plainSql, value } from '../value.ts'
import { castValue } from './cast.ts'

type FunctionSource = Extract<Source, { kind: 'function' }>
type From = { readonly sql: string; readonly columns: readonly Column[] }

/** Rows that `values` may have. */
const VALUES_ROWS_MAX = 1000

function fail({ name, at }: FunctionSource, reason: string): QueryError {
  return new QueryError('BAD_ARGUMENTS', `Table function ${shownName(name)} at position ${at} ${reason}.`)
}

/** `values('a UInt8, b String', (1, 'x'), …)`; undefined for every other name. */
export function compileOtherTableFunction(source: FunctionSource, context: Context): From | undefined {
  return foldName(source.name) === 'values' ? compileValues(source, context) : undefined
}

/** Names and types of the columns in a text, such as `a UInt8, b Array(String)`. */
function structure(text: string, source: FunctionSource): readonly { readonly name: string; readonly type: Type }[] {
  const parts: string[] = []
  let depth = 0
  let part = ''
  for (const letter of text) {
    depth += letter === '(' ? 1 : letter === ')' ? -1 : 0
    if (letter === ',' && depth === 0) {
      parts.push(part)
      part = ''
    } else part += letter
  }
  return [...parts, part].map((each) => {
    const trimmed = each.trim()
    const end = trimmed.search(/\s/)
    if (end === -1) throw fail(source, "takes names and types first, such as 'a UInt8, b String'")
    const name = trimmed.slice(0, end)
    const isQuoted = /^[`"]/.test(name) && name.endsWith(name[0] as string) && name.length > 2
    return { name: isQuoted ? name.slice(1, -1) : name, type: parseType(trimmed.slice(end).trim()) }
  })
}

function compileValues(source: FunctionSource, context: Context): From {
  const [head, ...rows] = source.args
  if (head?.kind !== 'string') throw fail(source, "takes names and types first, such as 'a UInt8, b String'")
  const columns = structure(head.text, source)
  if (rows.length === 0 || rows.length > VALUES_ROWS_MAX)
    throw fail(source, `takes 1 to ${VALUES_ROWS_MAX} rows (values_rows)`)
  const reason = (text: string): QueryError => fail(source, text)
  const lines = rows.map((row) => {
    const items: readonly Expression[] =
      columns.length > 1 && row.kind === 'call' && row.name === 'tuple' ? row.args : [row]
    if (items.length !== columns.length)
      throw fail(source, `has ${columns.length} columns and a row of ${items.length}`)
    const shown = items.map((item, at) => {
      const { type } = columns[at] as { type: Type }
      return `CAST(${plainSql(castValue(compile(item, context), type, reason))} AS ${duckType(type)})`
    })
    return `(${shown.join(', ')})`
  })
  const alias = context.compilation.freshName('table')
  const names = columns.map((_, at) => `c${at + 1}`)
  return {
    sql: `(VALUES ${lines.join(', ')}) AS ${alias}(${names.join(', ')})`,
    columns: columns.map(({ name, type }, at) => ({
      name,
      table: source.alias ?? source.name,
      value: value(`${alias}.c${at + 1}`, type),
    })),
  }
}
