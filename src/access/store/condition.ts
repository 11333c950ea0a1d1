import type { SqlValue } from '../../platform/db/sql.ts'
import { columnName } from './rows.ts'
import type { Table } from './tables.ts'

/** A condition of a statement and its values, in the common subset of the engines. */
export type Condition = { readonly sql: string; readonly values: readonly SqlValue[] }

/** One of some texts; or, for a field with a column, a time: after `above` where it is given, and at most `upTo`. */
type FieldCondition = readonly string[] | { readonly above?: number | undefined; readonly upTo: number }

/** What fields of a record are. */
export type Having<T> = { readonly [F in keyof T & string]?: FieldCondition }

/**
 * Compares the text of records, so that the database leaves out most records that do not match: decoding a record takes ten times as long. It may leave
 * in others, because it knows a value only by its text; it never leaves out one that matches.
 */
export function contentCondition<T>(table: Table<T>, having: Having<T> = {}): Condition | undefined {
  const fields = Object.keys(table.fields)
  const conditions = Object.entries(having as Record<string, FieldCondition>).map(([field, wanted]) => {
    if ('upTo' in wanted) return timeCondition(columnName(field), wanted)
    const isLast = fields.at(-1) === field
    const patterns = wanted.map((text) => `%,${escapeLike(JSON.stringify(text))}${isLast ? ']' : ','}%`)
    return { sql: `(${patterns.map(() => "content LIKE ? ESCAPE '!'").join(' OR ')})`, values: patterns }
  })
  return allOf(conditions)
}

function timeCondition(
  column: string,
  { above, upTo }: { readonly above?: number | undefined; readonly upTo: number },
) {
  return above === undefined
    ? { sql: `${column} <= ?`, values: [upTo] }
    : { sql: `${column} > ? AND ${column} <= ?`, values: [above, upTo] }
}

/** Undefined where there is no condition. */
export function allOf(conditions: readonly (Condition | undefined)[]): Condition | undefined {
  return joined(conditions, ' AND ')
}

export function anyOf(conditions: readonly (Condition | undefined)[]): Condition | undefined {
  return joined(conditions, ' OR ')
}

function joined(conditions: readonly (Condition | undefined)[], by: string): Condition | undefined {
  const given = conditions.filter((each) => each !== undefined)
  if (given.length === 0) return undefined
  return { sql: given.map(({ sql }) => `(${sql})`).join(by), values: given.flatMap(({ values }) => values) }
}

/** For `LIKE … ESCAPE '!'`. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[!%_]/g, '!$&')
}

/** A list of values for `IN`. Its length is a power of two, so that few different statements are prepared; the last value is repeated. */
export function listForIn(values: readonly string[]): Condition {
  const length = 2 ** Math.ceil(Math.log2(Math.max(1, values.length)))
  const padded = Array.from({ length }, (_, at) => values[Math.min(at, values.length - 1)] ?? '')
  return { sql: `(${padded.map(() => '?').join(', ')})`, values: padded }
}
