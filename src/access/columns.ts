import { ServiceError } from '../core/service-error.ts'
import type { SqlValue } from '../host/sql.ts'

/**
 * How a field of a record can stand in a column. `label` is text with few different values; `json` is anything else. A question mark means that
 * the field may be null.
 */
export type ColumnKind = 'text' | 'label' | 'integer' | 'flag' | 'json'
export type Column = ColumnKind | `${ColumnKind}?`

/** The columns that fit a field of type `V`. */
export type ColumnFor<V> = null extends V ? `${KindFor<NonNullable<V>>}?` : KindFor<V>

type KindFor<V> = [V] extends [string]
  ? 'text' | 'label'
  : [V] extends [number]
    ? 'integer'
    : [V] extends [boolean]
      ? 'flag'
      : 'json'

/** Values that many rows have in common, kept once: 100,000 subscriptions hold one `active`, and one list of the same products. */
export type ValuePool = Map<string, unknown>

/** With more different values than this they are not common, and the pool starts again. */
const POOLED_MAX = 4096

type Codec = {
  readonly type: 'TEXT' | 'BIGINT'
  /** What cannot be kept exactly is refused, so that every engine gives back what was put. */
  encode(value: unknown): SqlValue
  decode(value: SqlValue, pool: ValuePool): unknown
}

const CODECS: Readonly<Record<ColumnKind, Codec>> = {
  text: { type: 'TEXT', encode: encodeText, decode: (value) => value },
  label: {
    type: 'TEXT',
    encode: encodeText,
    decode: (value, pool) => pooled(pool, value as string, () => value),
  },
  integer: { type: 'BIGINT', encode: encodeInteger, decode: (value) => value },
  flag: { type: 'BIGINT', encode: (value) => (value === true ? 1 : 0), decode: (value) => value === 1 },
  json: {
    type: 'TEXT',
    encode: (value) => encodeText(JSON.stringify(value)),
    decode: (value, pool) => pooled(pool, `json ${value}`, () => deepFreeze(JSON.parse(value as string))),
  },
}

export function columnSql(column: Column): string {
  return `${codecOf(column).type}${column.endsWith('?') ? '' : ' NOT NULL'}`
}

export function encodeColumn(column: Column, value: unknown): SqlValue {
  return value === null && column.endsWith('?') ? null : codecOf(column).encode(value)
}

/** The way back, looked up once per column. */
export function columnDecoder(column: Column, pool: ValuePool): (value: SqlValue) => unknown {
  const { decode } = codecOf(column)
  return (value) => (value === null ? null : decode(value, pool))
}

function codecOf(column: Column): Codec {
  return CODECS[column.replace('?', '') as ColumnKind]
}

function encodeText(value: unknown): string {
  // PostgreSQL keeps no NUL, and half of a surrogate pair would come back as another character.
  if (typeof value === 'string' && value.isWellFormed() && !value.includes('\0')) return value
  throw new ServiceError('invalid-value', 'a text is missing, or contains a character that cannot be stored')
}

function encodeInteger(value: unknown): number {
  // Adding zero turns minus zero, which no column keeps, into zero.
  if (Number.isSafeInteger(value)) return (value as number) + 0
  throw new ServiceError('invalid-value', `${String(value)} is not a whole number`)
}

function pooled(pool: ValuePool, key: string, make: () => unknown): unknown {
  const known = pool.get(key)
  if (known !== undefined) return known
  if (pool.size >= POOLED_MAX) pool.clear()
  const made = make()
  pool.set(key, made)
  return made
}

/** Shared values must not change under one of their holders. */
function deepFreeze(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  for (const part of Object.values(value)) deepFreeze(part)
  return Object.freeze(value)
}
