import { ByteWriter } from './byte-writer.ts'
import type { ColumnBatch } from './column-batch.ts'
import { numberAt } from './scalar-text.ts'

/** Numbers of a batch as numbers of another width, multiplied: for formats that lack a width or a unit. Yields between short steps. */
export function* widened(
  batch: ColumnBatch,
  to: { readonly width: number; readonly isSigned: boolean; readonly times?: bigint },
): Generator<undefined, ByteWriter> {
  const { type, count } = batch
  const width = 'width' in type ? type.width : 0
  const out = new ByteWriter(Math.max(1024, count * to.width))
  const { times = 1n } = to
  const read = numberAt(batch.values.view(), { width, isSigned: to.isSigned })
  for (let at = 0; at < count; at++) {
    if (at % STEP === 0) yield undefined
    const value = read(at)
    if (to.width === 4) out.i32(Number(value))
    else {
      const number = BigInt(value) * times
      out.u64(number)
      if (to.width === 16) out.u64(number >> 64n)
    }
  }
  return out
}

const STEP = 1024

/** One bit for each value, the lowest first: 1 where `bytes` is `one`. */
export function bitsOf(bytes: Uint8Array, count: number, one: number): Uint8Array {
  const bits = new Uint8Array(Math.ceil(count / 8))
  for (let at = 0; at < count; at++) if (bytes[at] === one) bits[at >> 3] = (bits[at >> 3] as number) | (1 << (at & 7))
  return bits
}

/** Digits after the second that both formats have: 0 (Arrow only), 3, 6 and 9. Smaller units are multiplied. */
export function timeUnit(scale: number, units: readonly number[]): { readonly unit: number; readonly times: bigint } {
  const unit = units.findIndex((digits) => digits >= scale)
  return { unit, times: 10n ** BigInt((units[unit] as number) - scale) }
}

/** The numbers of `width` bytes each, the highest byte first. */
export function bigEndian(values: Uint8Array, width: number): Uint8Array {
  const out = Uint8Array.from(values)
  for (let from = 0; from < out.length; from += width) out.subarray(from, from + width).reverse()
  return out
}
