import type { ByteWriter } from '../byte-writer.ts'

/** A value in Thrift's compact protocol: its type code and how it is written. */
export type ThriftValue = { readonly code: number; write(out: ByteWriter): void }
type ThriftFields = readonly (readonly [id: number, value: ThriftValue | undefined])[]

const [TRUE, FALSE, BYTE, I32, I64, BINARY, LIST, STRUCT] = [1, 2, 3, 5, 6, 8, 9, 12] as const
const SHORT_LIST_MAX = 14

export function byte(value: number): ThriftValue {
  return { code: BYTE, write: (out) => out.u8(value) }
}

/** A boolean field has its value in the type code. */
export function flag(value: boolean): ThriftValue {
  return { code: value ? TRUE : FALSE, write() {} }
}

export function i32(value: number): ThriftValue {
  return { code: I32, write: (out) => zigzag(out, value) }
}

export function i64(value: number): ThriftValue {
  return { code: I64, write: (out) => zigzag(out, value) }
}

export function binary(value: string): ThriftValue {
  return { code: BINARY, write: (out) => out.text(value) }
}

export function list(values: readonly ThriftValue[], code: number = values[0]?.code ?? STRUCT): ThriftValue {
  return {
    code: LIST,
    write(out) {
      if (values.length <= SHORT_LIST_MAX) out.u8((values.length << 4) | code)
      else {
        out.u8(0xf0 | code)
        out.varint(values.length)
      }
      for (const value of values) value.write(out)
    },
  }
}

/** Fields in ascending order of their ids; those that are undefined are left out. */
export function struct(fields: ThriftFields): ThriftValue {
  return {
    code: STRUCT,
    write(out) {
      let last = 0
      for (const [id, value] of fields) {
        if (value === undefined) continue
        out.u8(((id - last) << 4) | value.code)
        value.write(out)
        last = id
      }
      out.u8(0)
    },
  }
}

function zigzag(out: ByteWriter, value: number): void {
  out.varint(value >= 0 ? value * 2 : -value * 2 - 1)
}
