import { ServiceError } from '../../core/error.ts'

/** The type of a record field. A question mark means that it may be null. */
export type FieldKind = 'text' | 'integer' | 'flag' | 'json'
export type Field = FieldKind | `${FieldKind}?`

/** The kind of a field of type `V`. */
export type FieldFor<V> = null extends V ? `${KindFor<NonNullable<V>>}?` : KindFor<V>

type KindFor<V> = [V] extends [string]
  ? 'text'
  : [V] extends [number]
    ? 'integer'
    : [V] extends [boolean]
      ? 'flag'
      : 'json'

const CHECKS: Readonly<Record<FieldKind, (value: unknown) => boolean>> = {
  // PostgreSQL stores no NUL, and a lone surrogate would be read back as another character.
  text: (value) => typeof value === 'string' && value.isWellFormed() && !value.includes('\0'),
  integer: (value) => Number.isSafeInteger(value),
  flag: (value) => typeof value === 'boolean',
  json: (value) => value !== undefined,
}

/** Returns the value if every engine stores it exactly, and throws otherwise. */
export function checkField(field: Field, name: string, value: unknown): unknown {
  const isOptional = field.endsWith('?')
  if (isOptional && value === null) return null
  if (CHECKS[field.replace('?', '') as FieldKind](value)) return value
  throw new ServiceError(
    'invalid-value',
    `${name} cannot be stored: it is not ${KIND_DESCRIPTIONS[field.replace('?', '') as FieldKind]}`,
    {
      fields: { field: name },
    },
  )
}

const KIND_DESCRIPTIONS: Readonly<Record<FieldKind, string>> = {
  text: 'a text of storable characters',
  integer: 'an integer',
  flag: 'true or false',
  json: 'a value',
}
