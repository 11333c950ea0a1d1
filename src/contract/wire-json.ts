/** A timestamp as in JSON and CSV. */
export function isoTime(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString()
}

/** The former JSON names of renamed fields, by field. JSON has both until 0.2. */
export type FormerFields = Readonly<Record<string, string>>

/** Fields of records that hold a timestamp. */
export const TIME_FIELDS: readonly string[] = [
  'createdAt',
  'setAt',
  'validUntil',
  'notAfter',
  'lastUsedAt',
  'expiresAt',
]

/**
 * A value as the JSON of the command line and of the admin API: snake_case keys as in the REST interface, timestamps as ISO text, no internal revisions.
 * A renamed field has its former name as well.
 */
export function toWireJson(value: unknown, former: FormerFields = {}): unknown {
  if (Array.isArray(value)) return value.map((item) => toWireJson(item, former))
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).filter(([key]) => key !== 'revision' || !('id' in value))
  return Object.fromEntries(
    entries.flatMap(([key, inner]) => {
      const wire = TIME_FIELDS.includes(key) && typeof inner === 'number' ? isoTime(inner) : toWireJson(inner, former)
      const names = [snakeCase(key), former[key]].filter((name) => name !== undefined)
      return names.map((name) => [name, wire])
    }),
  )
}

/** `unitsPerSecond` is `units_per_second` in JSON. */
function snakeCase(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
