import { ServiceError } from '../../core/error.ts'
import { isSecretName, maskSecret, redactText } from '../../core/redact.ts'

/** Larger values are truncated, with a note. */
const DEPTH_MAX = 6
const ENTRIES_MAX = 64
const TEXT_CHARS_MAX = 8192
/** Text beyond this is dropped before the search for secrets. */
const TEXT_CHARS_READ_MAX = 65_536

/** Reveals the URL of a customer's page, often with a query; not needed to operate the service. */
const REFERER = /^referr?er$/i

type Plain = string | number | boolean | null | Plain[] | { [name: string]: Plain }

/** Any value as plain data without secrets, of bounded size, safe to print as one line of JSON. */
export function plainFields(fields: object): Record<string, Plain> {
  if (fields instanceof Error) return { err: plainError(fields, 0) }
  const plain = plainObject(fields, 0)
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) return { value: plain }
  // A field cannot replace what the logger writes, so no record can pass for one of another level.
  for (const name of ['level', 'time', 'msg'] as const) {
    if (plain[name] === undefined) continue
    plain[`${name}_`] = plain[name]
    delete plain[name]
  }
  return plain
}

/** Text for a record: masked, and cut to a bounded length. */
export function plainText(text: string): string {
  const masked = redactText(text.length > TEXT_CHARS_READ_MAX ? text.slice(0, TEXT_CHARS_READ_MAX) : text)
  if (masked.length <= TEXT_CHARS_MAX) return masked
  return `${masked.slice(0, TEXT_CHARS_MAX)}…[cut at ${TEXT_CHARS_MAX} of ${text.length}]`
}

function plainValue(name: string, value: unknown, depth: number): Plain | undefined {
  if (value === null || typeof value === 'boolean') return value
  if (value === undefined || typeof value === 'function' || typeof value === 'symbol') return undefined
  if (REFERER.test(name)) return undefined
  if (isSecretName(name)) return maskedValue(value, depth)
  if (typeof value === 'string') return plainText(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Error) return plainError(value, depth)
  return plainObject(value, depth)
}

/** Everything below a secret's name is secret: `authorization: ['Bearer …']`. */
function maskedValue(value: unknown, depth: number): Plain {
  if (typeof value === 'string') return maskSecret(value)
  if (Array.isArray(value) && depth < DEPTH_MAX) {
    return value.slice(0, ENTRIES_MAX).map((item) => maskedValue(item, depth + 1))
  }
  return '[redacted]'
}

function plainObject(value: object, depth: number): Plain {
  if (depth >= DEPTH_MAX) return '[too deep]'
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
  if (value instanceof URL) return plainText(value.href)
  if (value instanceof Set) return plainArray([...value], depth)
  if (Array.isArray(value)) return plainArray(value, depth)
  const entries: Iterable<[unknown, unknown]> = value instanceof Map ? value.entries() : ownEntries(value)
  const plain: Record<string, Plain> = {}
  let count = 0
  for (const [key, item] of entries) {
    if (count === ENTRIES_MAX) {
      plain['…'] = 'more fields were cut'
      break
    }
    // Renamed, so that it cannot set the prototype.
    const name = key === '__proto__' ? '[__proto__]' : plainText(String(key))
    const kept = plainValue(name, item, depth + 1)
    if (kept === undefined) continue
    plain[name] = kept
    count += 1
  }
  return plain
}

function plainArray(values: readonly unknown[], depth: number): Plain {
  // Lists of headers come flat: a name, then its value.
  const plain = values.slice(0, ENTRIES_MAX).map((value, at) => {
    const before = values[at - 1]
    return plainValue(typeof before === 'string' ? before : '', value, depth + 1) ?? null
  })
  if (values.length > ENTRIES_MAX) plain.push(`…[${values.length - ENTRIES_MAX} more]`)
  return plain
}

function plainError(error: Error, depth: number): Plain {
  if (depth >= DEPTH_MAX) return plainText(error.message)
  const plain: Record<string, Plain> = { type: plainText(error.name), message: plainText(error.message) }
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string' || typeof code === 'number')
    plain['code'] = typeof code === 'string' ? plainText(code) : code
  if (error instanceof ServiceError) {
    if (Object.keys(error.fields).length > 0) plain['fields'] = plainObject(error.fields, depth + 1)
    if (error.fix !== undefined) plain['fix'] = plainText(error.fix)
  }
  if (error.stack) plain['stack'] = plainText(error.stack)
  const cause = plainValue('', error.cause, depth + 1)
  if (cause !== undefined) plain['cause'] = cause
  return plain
}

function* ownEntries(value: object): Generator<[string, unknown]> {
  for (const name of Object.keys(value)) {
    let item: unknown
    try {
      item = (value as Record<string, unknown>)[name]
    } catch {
      item = '[unreadable]'
    }
    yield [name, item]
  }
}
