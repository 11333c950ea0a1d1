import type { SqlValue } from '../../platform/db/sql.ts'
import type { Table } from './tables.ts'

/** A condition of a statement and its values, in the common subset of the engines. */
export type Condition = { readonly sql: string; readonly values: readonly SqlValue[] }

/** One of some texts; or, for the last field of a table, a time: after `above` where it is given, and at most `upTo`. */
type FieldCondition = readonly string[] | { readonly above?: number | undefined; readonly upTo: number }

/** What fields of a record are that have no column. */
export type Having<T> = { readonly [F in keyof T & string]?: FieldCondition }

/** Times from 2001 to 2286 have this many digits, so that their order is that of their texts. */
const TIME_DIGITS = 13
/** A content whose last value has the digits of a time. */
const ANY_TIME = `%,${'_'.repeat(TIME_DIGITS)}]`
/** The last value of a content when it is a time, with the comma before it and the bracket behind it. */
const LAST_TIME = `substr(content, length(content) - ${TIME_DIGITS + 1})`

/**
 * Compares the text of records, so that the database leaves out most records that do not match: decoding a record takes ten times as long. It may leave
 * in others, because it knows a value only by its text; it never leaves out one that matches.
 */
export function contentCondition<T>(table: Table<T>, having: Having<T> = {}): Condition | undefined {
  const fields = Object.keys(table.fields)
  const conditions = Object.entries(having as Record<string, FieldCondition>).map(([field, wanted]) => {
    const isLast = fields.at(-1) === field
    if ('upTo' in wanted) return isLast ? timeCondition(wanted) : undefined
    const patterns = wanted.map((text) => `%,${escapeLike(JSON.stringify(text))}${isLast ? ']' : ','}%`)
    return { sql: `(${patterns.map(() => "content LIKE ? ESCAPE '!'").join(' OR ')})`, values: patterns }
  })
  return allOf(conditions)
}

function timeCondition({ above, upTo }: { readonly above?: number | undefined; readonly upTo: number }): Condition {
  const isSome = "content NOT LIKE '%,null]'"
  const text = (ms: number | string) => `,${ms}]`
  const isComparable = [above ?? upTo, upTo].every((ms) => String(ms).length === TIME_DIGITS)
  if (!isComparable) return { sql: isSome, values: [] }
  // A pattern takes a third of the time of the last value, so it is compared first, or in its place.
  // A time with fewer or more digits is left in, unless it cannot match.
  return above === undefined
    ? { sql: `${isSome} AND NOT (${LAST_TIME} > ? AND content LIKE '${ANY_TIME}')`, values: [text(upTo)] }
    : {
        sql: `content LIKE ? AND ${LAST_TIME} > ? AND ${LAST_TIME} <= ?`,
        values: [`%,${commonStart(String(above), String(upTo))}%]`, text(above), text(upTo)],
      }
}

function commonStart(one: string, other: string): string {
  let length = 0
  while (length < one.length && one[length] === other[length]) length += 1
  return one.slice(0, length)
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
