import type { Hex } from '../../../evm/hex.ts'

/** Checked values from the JSON of a node, which is not trusted. */
export type Json = Readonly<Record<string, unknown>>

export function objectOf(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${what} is not an object`)
  return value as Json
}

export function listOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${what} is not a list`)
  return value
}

/** Bytes of any length. */
export function dataOf(value: unknown, what: string): Hex {
  if (typeof value !== 'string' || !/^0x(?:[0-9a-fA-F]{2})*$/.test(value)) throw new Error(`${what} is not hex data`)
  return value.toLowerCase() as Hex
}

/** Bytes of a fixed length. */
export function bytesOf(value: unknown, bytes: number, what: string): Hex {
  const data = dataOf(value, what)
  if (data.length !== 2 + bytes * 2) throw new Error(`${what} does not have ${bytes} bytes`)
  return data
}

export function bytesOrZero(value: unknown, bytes: number, what: string): Hex {
  return value === undefined || value === null ? `0x${'00'.repeat(bytes)}` : bytesOf(value, bytes, what)
}

/** A number in hex or decimal. Storage keys and values may have leading zeros. */
export function quantityOf(value: unknown, what: string): bigint {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return BigInt(value)
  if (typeof value !== 'string' || !/^(?:0x[0-9a-fA-F]{1,64}|\d{1,78})$/.test(value)) {
    throw new Error(`${what} is not a quantity`)
  }
  return BigInt(value)
}

export function quantityOrZero(value: unknown, what: string): bigint {
  return value === undefined || value === null ? 0n : quantityOf(value, what)
}

/** A 256-bit number as 32 bytes. */
export function wordOf(value: bigint): Hex {
  return `0x${value.toString(16).padStart(64, '0')}`
}

/** The address in the low 20 bytes of a stack word. */
export function addressOfWord(value: bigint): Hex {
  return `0x${BigInt.asUintN(160, value).toString(16).padStart(40, '0')}`
}
