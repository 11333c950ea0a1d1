/**
 * JSON with exact integers. Results are plain values in which a u64 is a bigint; it is printed exactly, never as a double.
 */
export type Json =
  | null
  | boolean
  | number
  | bigint
  | string
  | JsonText
  | readonly Json[]
  | { readonly [member: string]: Json | undefined }

/** A piece of JSON that is already text. */
export class JsonText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** An f64 as Agave prints it: an integral value keeps its `.0`, and infinity, which JSON lacks, becomes null. */
export function jsonFloat(value: number): Json {
  if (!Number.isFinite(value)) return null
  return Number.isInteger(value) && Math.abs(value) < 1e16 ? new JsonText(`${value}.0`) : value
}

/** Members whose value is undefined are left out. */
export function writeJson(value: Json): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value)
    case 'number':
      return Number.isFinite(value) ? String(value) : 'null'
    case 'bigint':
      return value.toString()
    case 'boolean':
      return value ? 'true' : 'false'
    default:
      return value === null ? 'null' : writeComposite(value)
  }
}

function writeComposite(value: Exclude<Json, null | boolean | number | bigint | string>): string {
  if (value instanceof JsonText) return value.text
  if (isArray(value)) {
    let text = '['
    for (let i = 0; i < value.length; i++) text += (i === 0 ? '' : ',') + writeJson(value[i] ?? null)
    return `${text}]`
  }
  let text = '{'
  for (const member in value) {
    const inner = value[member]
    if (inner === undefined) continue
    text += `${text.length === 1 ? '' : ','}${JSON.stringify(member)}:${writeJson(inner)}`
  }
  return `${text}}`
}

// Array.isArray does not narrow a readonly array.
function isArray(value: object): value is readonly Json[] {
  return Array.isArray(value)
}

/** An input number with a fraction or an exponent. */
export class JsonFloat {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/** The value of valid JSON text: integers beyond the safe range as bigint, numbers with a fraction or exponent as JsonFloat. */
export function parseExactJson(text: string): unknown {
  return NEEDS_SOURCE.test(text) ? parseWithSource(text, keepExact) : JSON.parse(text)
}

/** A number that JSON.parse might change: sixteen digits or more, a fraction, an exponent. */
const NEEDS_SOURCE = /(?:^|[[,:\s])-?(?:\d{16}|\d+[.eE])/

// The third argument of the reviver (the number's source text) is in the engine but not yet in the library types.
const parseWithSource = JSON.parse as (
  text: string,
  reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
) => unknown

function keepExact(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== 'number' || source === undefined) return value
  if (/[.eE]/.test(source)) return new JsonFloat(value)
  return Number.isSafeInteger(value) ? value : BigInt(source)
}
