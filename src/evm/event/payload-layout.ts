import assert from 'node:assert/strict'
import { fromHex, type Hex, toHex, toQuantity } from '../hex.ts'

/** Kinds of fields in a payload struct and their decoded types. */
type FieldValues = {
  bool: boolean
  u8: number
  u16: number
  u32: number
  i32: number
  u64: bigint
  i64: bigint
  u128: bigint
  u256: bigint
  address: Hex
  bytes8: Hex
  bytes32: Hex
  bytes256: Hex
}

type FieldKind = keyof FieldValues
type FieldTable = Readonly<Record<string, readonly [kind: FieldKind, offset: number]>>

/** Data after the struct: raw bytes or 32-byte words, their number in the named count field. */
type TailTable = Readonly<Record<string, readonly [kind: 'bytes' | 'bytes32', countField: string]>>

export type Layout = { readonly bytes: number; readonly fields: FieldTable; readonly tail: TailTable }

export type PayloadOf<L extends Layout> = { -readonly [F in keyof L['fields']]: FieldValues[L['fields'][F][0]] } & {
  -readonly [T in keyof L['tail']]: L['tail'][T][0] extends 'bytes' ? Hex : Hex[]
}

/** A payload of any event type. */
export type AnyPayload = Readonly<Record<string, boolean | number | bigint | Hex | readonly Hex[]>>

/** A payload struct as a table: its size, its fields with their offsets, and the data after it. */
export function layout<const F extends FieldTable, const T extends TailTable = Record<never, never>>(
  bytes: number,
  fields: F,
  tail?: T,
): { bytes: number; fields: F; tail: T } {
  return { bytes, fields, tail: tail ?? ({} as T) }
}

/** Decodes a payload; undefined when its size is not exactly struct plus tail. */
export function decodePayload<L extends Layout>(shape: L, bytes: Uint8Array): PayloadOf<L> | undefined {
  if (bytes.length < shape.bytes) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const payload: Record<string, unknown> = {}
  for (const [name, [kind, offset]] of Object.entries(shape.fields)) payload[name] = readField(kind, view, offset)
  let at = shape.bytes
  for (const [name, [kind, countField]] of Object.entries(shape.tail)) {
    const count = Number(payload[countField])
    const end = at + (kind === 'bytes' ? count : count * 32)
    if (end > bytes.length) return undefined
    payload[name] = kind === 'bytes' ? toHex(bytes, at, end) : wordsOf(bytes, at, count)
    at = end
  }
  return at === bytes.length ? (payload as PayloadOf<L>) : undefined
}

/** Whether the size is exactly struct plus tail; decodes only the count fields. */
export function isExact({ bytes: fixed, fields, tail }: Layout, bytes: Uint8Array): boolean {
  if (bytes.length < fixed) return false
  let size = fixed
  for (const name in tail) {
    const [kind, countField] = tail[name] as TailTable[string]
    const [fieldKind, offset] = fields[countField] as FieldTable[string]
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    size += Number(readField(fieldKind, view, offset)) * (kind === 'bytes' ? 1 : 32)
  }
  return size === bytes.length
}

/** Encodes a payload. Omitted fields and padding are zero; count fields of the tail are filled in. */
export function encodePayload<L extends Layout>(shape: L, payload: Partial<PayloadOf<L>>): Uint8Array {
  const given = payload as AnyPayload
  const tails = Object.entries(shape.tail).map(([name, [kind, countField]]) => {
    const value = given[name] ?? []
    const bytes = Buffer.concat((Array.isArray(value) ? value : [value]).map((part: Hex) => fromHex(part)))
    return { bytes, countField, count: kind === 'bytes' ? bytes.length : bytes.length / 32 }
  })
  const encoded = new Uint8Array(shape.bytes + tails.reduce((sum, { bytes }) => sum + bytes.length, 0))
  const view = new DataView(encoded.buffer)
  for (const [name, [kind, offset]] of Object.entries(shape.fields)) {
    const value = tails.find(({ countField }) => countField === name)?.count ?? given[name]
    if (value !== undefined) writeField(kind, view, offset, value as boolean | number | bigint | Hex)
  }
  let at = shape.bytes
  for (const { bytes } of tails) {
    encoded.set(bytes, at)
    at += bytes.length
  }
  return encoded
}

/** The payload as JSON: 256-bit numbers as hex quantities, other integers as numbers, or as strings above 2^53 - 1. */
export function payloadJson(shape: Layout, payload: AnyPayload): Record<string, unknown> {
  const json: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(payload)) {
    if (typeof value !== 'bigint') json[name] = value
    else if (shape.fields[name]?.[0] === 'u256') json[name] = toQuantity(value)
    else json[name] = integerJson(value)
  }
  return json
}

/** An integer as JSON: a string above 2^53 - 1, where a parser with doubles would round it. */
export function integerJson(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value.toString()
}

function readField(kind: FieldKind, view: DataView, at: number): FieldValues[FieldKind] {
  switch (kind) {
    case 'bool':
      return view.getUint8(at) !== 0
    case 'u8':
      return view.getUint8(at)
    case 'u16':
      return view.getUint16(at, true)
    case 'u32':
      return view.getUint32(at, true)
    case 'i32':
      return view.getInt32(at, true)
    case 'u64':
      return view.getBigUint64(at, true)
    case 'i64':
      return view.getBigInt64(at, true)
    case 'u128':
      return readLimbs(view, at, 2)
    case 'u256':
      return readLimbs(view, at, 4)
    default: {
      const bytes = new Uint8Array(view.buffer, view.byteOffset + at, BYTE_STRINGS[kind])
      return toHex(bytes)
    }
  }
}

function writeField(kind: FieldKind, view: DataView, at: number, value: boolean | number | bigint | Hex): void {
  switch (kind) {
    case 'bool':
      return view.setUint8(at, value === true ? 1 : 0)
    case 'u8':
      return view.setUint8(at, Number(value))
    case 'u16':
      return view.setUint16(at, Number(value), true)
    case 'u32':
      return view.setUint32(at, Number(value), true)
    case 'i32':
      return view.setInt32(at, Number(value), true)
    case 'u64':
    case 'i64':
      return view.setBigUint64(at, BigInt.asUintN(64, BigInt(value)), true)
    case 'u128':
      return writeLimbs(view, at, 2, BigInt(value))
    case 'u256':
      return writeLimbs(view, at, 4, BigInt(value))
    default: {
      const bytes = fromHex(value as Hex)
      assert.equal(bytes.length, BYTE_STRINGS[kind], `a ${kind} has its full length`)
      new Uint8Array(view.buffer, view.byteOffset + at, bytes.length).set(bytes)
    }
  }
}

const BYTE_STRINGS = { address: 20, bytes8: 8, bytes32: 32, bytes256: 256 } as const

function readLimbs(view: DataView, at: number, limbs: number): bigint {
  let value = 0n
  for (let limb = limbs - 1; limb >= 0; limb--) value = (value << 64n) | view.getBigUint64(at + limb * 8, true)
  return value
}

function writeLimbs(view: DataView, at: number, limbs: number, value: bigint): void {
  for (let limb = 0; limb < limbs; limb++)
    view.setBigUint64(at + limb * 8, BigInt.asUintN(64, value >> BigInt(limb * 64)), true)
}

function wordsOf(bytes: Uint8Array, from: number, count: number): Hex[] {
  return Array.from({ length: count }, (_, word) => toHex(bytes, from + word * 32, from + word * 32 + 32))
}
