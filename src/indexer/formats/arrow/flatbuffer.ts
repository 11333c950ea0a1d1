import { ByteWriter } from '../byte-writer.ts'

/** A value of a flatbuffer. Numbers are inside of their table; everything else is referenced from it. */
export type FlatValue =
  | { readonly kind: 'number'; readonly bytes: 1 | 2 | 4 | 8; readonly value: number }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'table'; readonly fields: readonly (FlatValue | undefined)[] }
  /** References to tables. */
  | { readonly kind: 'vector'; readonly items: readonly FlatValue[] }
  /** Structs of 64-bit numbers. */
  | { readonly kind: 'structs'; readonly numbers: readonly number[]; readonly perStruct: number }

export const u8 = (value: number): FlatValue => ({ kind: 'number', bytes: 1, value })
export const i16 = (value: number): FlatValue => ({ kind: 'number', bytes: 2, value })
export const i32 = (value: number): FlatValue => ({ kind: 'number', bytes: 4, value })
export const i64 = (value: number): FlatValue => ({ kind: 'number', bytes: 8, value })
export const text = (value: string): FlatValue => ({ kind: 'text', text: value })
/** Fields by their ids in the schema, beginning with 0; undefined for a field that is left out. */
export const table = (...fields: readonly (FlatValue | undefined)[]): FlatValue => ({ kind: 'table', fields })
export const vector = (items: readonly FlatValue[]): FlatValue => ({ kind: 'vector', items })
export const structs = (numbers: readonly number[], perStruct: number): FlatValue => ({
  kind: 'structs',
  numbers,
  perStruct,
})

/**
 * Writes a flatbuffer, parents before their children. Format: https://flatbuffers.dev/internals. The result is a multiple of 8 bytes long.
 */
export function flatbuffer(root: FlatValue): Buffer {
  const out = new ByteWriter()
  /** References that are still to be written: where they are, and what they refer to. */
  const references: { readonly at: number; readonly value: FlatValue }[] = [{ at: 0, value: root }]
  const positions: (readonly [at: number, target: number])[] = []
  out.u32(0)
  for (let next = references.shift(); next !== undefined; next = references.shift())
    positions.push([next.at, writeValue(out, next.value, references)])
  out.align(8)
  const bytes = out.take()
  for (const [at, target] of positions) bytes.writeUInt32LE(target - at, at)
  return bytes
}

type References = { readonly at: number; readonly value: FlatValue }[]

/** Returns the position of the value. */
function writeValue(out: ByteWriter, value: FlatValue, references: References): number {
  switch (value.kind) {
    case 'table':
      return writeTable(out, value.fields, references)
    case 'text': {
      out.align(4)
      const bytes = Buffer.from(value.text)
      const at = out.length
      out.u32(bytes.length)
      out.bytes(bytes)
      out.u8(0)
      return at
    }
    case 'vector': {
      out.align(4)
      const at = out.length
      out.u32(value.items.length)
      for (const item of value.items) {
        references.push({ at: out.length, value: item })
        out.u32(0)
      }
      return at
    }
    case 'structs': {
      // The numbers begin at a multiple of 8, right after the count.
      out.align(8)
      out.u32(0)
      const at = out.length
      out.u32(value.numbers.length / value.perStruct)
      for (const number of value.numbers) out.u64(number)
      return at
    }
    case 'number':
      throw new Error('a number is not referenced')
  }
}

/** The table follows its vtable, which has the offset of each field in the table. */
function writeTable(out: ByteWriter, fields: readonly (FlatValue | undefined)[], references: References): number {
  const offsets: number[] = []
  let size = 4
  for (const field of fields) {
    if (field === undefined) {
      offsets.push(0)
      continue
    }
    const bytes = field.kind === 'number' ? field.bytes : 4
    size = Math.ceil(size / bytes) * bytes
    offsets.push(size)
    size += bytes
  }
  const vtableBytes = 4 + 2 * fields.length
  // The vtable ends where the table begins, at a multiple of 8.
  const start = Math.ceil((out.length + vtableBytes) / 8) * 8
  out.fill(0, start - vtableBytes - out.length)
  for (const short of [vtableBytes, size, ...offsets]) out.bytes(Uint8Array.of(short & 0xff, short >> 8))
  out.i32(vtableBytes)
  for (const [at, field] of fields.entries()) {
    if (field === undefined) continue
    out.fill(0, start + (offsets[at] as number) - out.length)
    if (field.kind !== 'number') {
      references.push({ at: out.length, value: field })
      out.u32(0)
    } else if (field.bytes === 8) out.u64(field.value)
    else for (let byte = 0; byte < field.bytes; byte++) out.u8((field.value >> (8 * byte)) & 0xff)
  }
  return start
}
