import { TIME_FIELDS } from '../../contract/wire-json.ts'

/** A response of the admin API with the names and times of the records of the store: the reverse of `toWireJson`. */
export function fromWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromWire)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const name = camelCase(key)
      const isTime = TIME_FIELDS.includes(name) && typeof inner === 'string'
      return [name, isTime ? Date.parse(inner) : LIMITS.has(name) ? limitsOf(inner) : fromWire(inner)]
    }),
  )
}

/** Limits whose methods are a list in JSON. */
const LIMITS: ReadonlySet<string> = new Set(['limits', 'overrides'])

function limitsOf(wire: unknown): unknown {
  const limits = fromWire(wire) as { methods?: unknown }
  if (limits === null || !Array.isArray(limits.methods)) return limits
  const methods = (limits.methods as { method: string }[]).map(({ method, ...limit }) => [method, limit])
  return { ...limits, methods: Object.fromEntries(methods) as object }
}

/** `unitsPerSecond` for `units_per_second`. */
function camelCase(key: string): string {
  return key.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())
}
