/** A timestamp as in JSON and CSV. */
export function isoTime(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString()
}

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
 * `earlierNames` gives fields a second name beside the present one.
 */
export function toWireJson(value: unknown, earlierNames: Readonly<Record<string, string>> = {}): unknown {
  if (Array.isArray(value)) return value.map((item) => toWireJson(item, earlierNames))
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).filter(([key]) => key !== 'revision' || !('id' in value))
  return Object.fromEntries(
    entries.flatMap(([key, inner]) => {
      const wire =
        TIME_FIELDS.includes(key) && typeof inner === 'number' ? isoTime(inner) : toWireJson(inner, earlierNames)
      const names = [snakeCase(key), earlierNames[key]].filter((name) => name !== undefined)
      return names.map((name) => [name, wire])
    }),
  )
}

/** `unitsPerSecond` is `units_per_second` in JSON. */
function snakeCase(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
