import { invalidParams, type RpcError } from './errors.ts'
import { JsonFloat, parseExactJson } from './json.ts'

/**
 * Reads params as Agave's deserializer (serde) does, with the same error messages, because clients and their tests match on them:
 * `Invalid params: invalid type: integer `1`, expected a string.`
 */
export type Decode<T> = (value: unknown) => T

/** Thrown by decoders; becomes "Invalid params: …". */
class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

export const string: Decode<string> = (value) => {
  if (typeof value !== 'string') throw wrongType(value, 'a string')
  return value
}

export const boolean: Decode<boolean> = (value) => {
  if (typeof value !== 'boolean') throw wrongType(value, 'a boolean')
  return value
}

export const u64: Decode<bigint> = unsigned('u64', 64)
export const usize: Decode<bigint> = unsigned('usize', 64)
export const u8: Decode<number> = (value) => Number(unsigned('u8', 8)(value))

function unsigned(name: string, bits: number): Decode<bigint> {
  const limit = 1n << BigInt(bits)
  return (value) => {
    // serde reads an integer beyond 64 bits as a double.
    if (!isInteger(value)) throw wrongType(value, name)
    const integer = BigInt(value)
    if (integer < 0n || integer >= limit)
      throw new DecodeError(`invalid value: integer \`${integer}\`, expected ${name}`)
    return integer
  }
}

function isInteger(value: unknown): value is number | bigint {
  if (typeof value === 'number') return true
  return typeof value === 'bigint' && value >= -(1n << 63n) && value < 1n << 64n
}

export function oneOf<const T extends string>(...names: readonly T[]): Decode<T> {
  return (value) => {
    if (typeof value !== 'string') throw wrongType(value, 'string or map')
    if (!names.includes(value as T)) throw unknownVariant(value, names)
    return value as T
  }
}

export function unknownVariant(value: string, names: readonly string[]): Error {
  const quoted = names.map((name) => `\`${name}\``)
  const list =
    quoted.length === 2 ? quoted.join(' or ') : quoted.length === 1 ? quoted[0] : `one of ${quoted.join(', ')}`
  return new DecodeError(`unknown variant \`${value}\`, expected ${list}`)
}

export function listOf<T>(decode: Decode<T>): Decode<T[]> {
  return (value) => {
    if (!Array.isArray(value)) throw wrongType(value, 'a sequence')
    return value.map(decode)
  }
}

/** Null and a missing member are both undefined. */
export function optional<T>(decode: Decode<T>): Decode<T | undefined> {
  return (value) => (value === null || value === undefined ? undefined : decode(value))
}

/** A member that is ignored when it is invalid, as serde does with an optional flattened struct; used for the commitment. */
export function lenient<T>(decode: Decode<T>): Decode<T | undefined> {
  return (value) => {
    try {
      return optional(decode)(value)
    } catch (error) {
      if (error instanceof DecodeError) return undefined
      throw error
    }
  }
}

/** A missing member gives the default; null does not. */
export function defaulted<T>(decode: Decode<T>, fallback: T): Decode<T> {
  return (value) => (value === undefined ? fallback : decode(value))
}

type Shape = { readonly [member: string]: Decode<unknown> }
type Decoded<S extends Shape> = { readonly [K in keyof S]: ReturnType<S[K]> }

/** An object with these members; others are ignored. */
export function struct<S extends Shape>(name: string, shape: S): Decode<Decoded<S>> {
  return (value) => {
    if (!isObject(value)) throw wrongType(value, `struct ${name}`)
    const decoded: { [member: string]: unknown } = {}
    for (const member of Object.keys(shape)) {
      decoded[member] = (shape[member] as Decode<unknown>)(Object.hasOwn(value, member) ? value[member] : undefined)
    }
    return decoded as Decoded<S>
  }
}

export function required<T>(member: string, decode: Decode<T>): Decode<T> {
  return (value) => {
    if (value === undefined) throw new DecodeError(`missing field \`${member}\``)
    return decode(value)
  }
}

/** Either of two shapes; serde names only the enum when neither matches. */
export function either<A, B>(name: string, first: Decode<A>, second: Decode<B>): Decode<A | B> {
  return (value) => {
    for (const decode of [first, second] as const) {
      try {
        return decode(value)
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error
      }
    }
    throw new DecodeError(`data did not match any variant of untagged enum ${name}`)
  }
}

export function isObject(value: unknown): value is { readonly [member: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonFloat)
}

export function wrongType(value: unknown, expected: string): Error {
  return new DecodeError(`invalid type: ${describe(value)}, expected ${expected}`)
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (value instanceof JsonFloat) return describeFloat(value.value)
  if (typeof value === 'bigint' && !isInteger(value)) return describeFloat(Number(value))
  if (typeof value === 'number' || typeof value === 'bigint') return `integer \`${value}\``
  if (typeof value === 'boolean') return `boolean \`${value}\``
  if (typeof value === 'string') return `string ${JSON.stringify(value)}`
  return Array.isArray(value) ? 'sequence' : 'map'
}

function describeFloat(value: number): string {
  return `floating point \`${Number.isInteger(value) ? `${value}.0` : value}\``
}

type Results<T extends readonly Decode<unknown>[]> = { [K in keyof T]: T[K] extends Decode<infer V> ? V : never }
type Arguments<R extends readonly Decode<unknown>[], O extends readonly Decode<unknown>[]> = [
  ...Results<R>,
  ...Partial<Results<O>>,
]

/**
 * The positional arguments of a call. `required` ones must be present; `optional` ones may be omitted from the end. Throws RpcError
 * -32602 with the messages of jsonrpc-derive.
 */
export function readArguments<
  const R extends readonly Decode<unknown>[],
  const O extends readonly Decode<unknown>[] = [],
>(params: string | undefined, requiredArguments: R, optionalArguments: O = [] as unknown as O): Arguments<R, O> {
  const value = params === undefined ? null : parseExactJson(params)
  const total = requiredArguments.length + optionalArguments.length
  if (total === 0) return expectNone(value) as unknown[] as Arguments<R, O>
  if (optionalArguments.length > 0) checkCount(value, requiredArguments.length, total)
  try {
    const args = optionalArguments.length > 0 ? ((value ?? []) as unknown[]) : expectTuple(value, total)
    const decoders = [...requiredArguments, ...optionalArguments]
    return args.map((each, index) => (decoders[index] as Decode<unknown>)(each)) as Arguments<R, O>
  } catch (error) {
    if (error instanceof DecodeError) throw invalidParams(`Invalid params: ${error.message}.`)
    throw error
  }
}

function expectNone(value: unknown): [] {
  if (value === null || (Array.isArray(value) && value.length === 0)) return []
  const shown = Array.isArray(value)
    ? `Array([${value.map(debug).join(', ')}])`
    : `Map(${debugMembers(value as object)})`
  throw invalidParams('Invalid parameters: No parameters were expected', shown)
}

function checkCount(value: unknown, least: number, most: number): void {
  if (value !== null && !Array.isArray(value)) throw invalidParams('`params` should be an array')
  const count = value === null ? 0 : (value as unknown[]).length
  if (count < least) throw invalidParams(`\`params\` should have at least ${least} argument(s)`)
  if (count > most) throw tooMany(least, most, count)
}

function tooMany(least: number, most: number, count: number): RpcError {
  return invalidParams(`Invalid parameters: Expected from ${least} to ${most} parameters.`, `"Got: ${count}"`)
}

function expectTuple(value: unknown, size: number): unknown[] {
  if (!Array.isArray(value)) throw wrongType(value, `a tuple of size ${size}`)
  if (value.length < size) throw new DecodeError(`invalid length ${value.length}, expected a tuple of size ${size}`)
  if (value.length > size) throw new DecodeError(`invalid length ${value.length}, expected fewer elements in array`)
  return value
}

/** Rust's `{:?}` of a JSON value, the error data for unexpected params. */
function debug(value: unknown): string {
  if (value === null) return 'Null'
  if (typeof value === 'boolean') return `Bool(${value})`
  if (typeof value === 'string') return `String(${JSON.stringify(value)})`
  if (typeof value === 'number' || typeof value === 'bigint') return `Number(${value})`
  if (value instanceof JsonFloat) return `Number(${value.value})`
  return Array.isArray(value) ? `Array [${value.map(debug).join(', ')}]` : `Object ${debugMembers(value as object)}`
}

function debugMembers(value: object): string {
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}: ${debug(member)}`)
    .join(', ')}}`
}
