import { ServiceError } from '../../core/error.ts'

/** What a field of a record can be. A question mark means that it may be null. */
export type FieldKind = 'text' | 'integer' | 'flag' | 'json'
export type Field = FieldKind | `${FieldKind}?`

/** The kind that fits a field of type `V`. */
export type FieldFor<V> = null extends V ? `${KindFor<NonNullable<V>>}?` : KindFor<V>

type KindFor<V> = [V] extends [string]
  ? 'text'
  : [V] extends [number]
    ? 'integer'
    : [V] extends [boolean]
      ? 'flag'
      : 'json'

const CHECKS: Readonly<Record<FieldKind, (value: unknown) => boolean>> = {
  // PostgreSQL keeps no NUL, and half of a surrogate pair would come back as another character.
  text: (value) => typeof value === 'string' && value.isWellFormed() && !value.includes('\0'),
  integer: (value) => Number.isSafeInteger(value),
  flag: (value) => typeof value === 'boolean',
  json: (value) => value !== undefined,
}

/** The value, if it can be kept exactly: every engine gives back what was put. */
export function checkField(field: Field, name: string, value: unknown): unknown {
  const isOptional = field.endsWith('?')
  if (isOptional && value === null) return null
  if (CHECKS[field.replace('?', '') as FieldKind](value)) return value
  throw new ServiceError(
    'invalid-value',
    `${name} cannot be stored: it is not ${WORDS[field.replace('?', '') as FieldKind]}`,
    {
      fields: { field: name },
    },
  )
}

const WORDS: Readonly<Record<FieldKind, string>> = {
  text: 'a text of storable characters',
  integer: 'a whole number',
  flag: 'true or false',
  json: 'a value',
}
