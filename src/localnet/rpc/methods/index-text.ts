import type { TimeSlices } from '../../../platform/process/time-slices.ts'

/** The numbers from `from` up to `to`, without it, as they stand in a JSON array. */
export type IndexText = (from: number, to: number) => string

/** Numbers between two looks at the clock. */
const STEP = 4096
const COMMA = 0x2c
const ZERO = 0x30

/** The numbers below `count` as decimal text, made once: a leader schedule has hundreds of thousands of them in rising order. */
export async function createIndexText(count: number, slices: TimeSlices): Promise<IndexText> {
  const bytes = Buffer.allocUnsafe(bytesBefore(count))
  for (let start = 0; start < count; start += STEP) {
    if (slices.isSpent()) await slices.yield()
    writeNumbers(bytes, start, Math.min(start + STEP, count))
  }
  return (from, to) => bytes.toString('latin1', bytesBefore(from), Math.max(bytesBefore(from), bytesBefore(to) - 1))
}

/** Each number is followed by a comma. */
function writeNumbers(bytes: Buffer, from: number, to: number): void {
  let end = bytesBefore(from)
  for (let number = from; number < to; number++) {
    const start = end
    end += digitsOf(number) + 1
    bytes[end - 1] = COMMA
    for (let at = end - 2, rest = number; at >= start; at--) {
      const tens = Math.floor(rest / 10)
      bytes[at] = ZERO + rest - tens * 10
      rest = tens
    }
  }
}

function digitsOf(number: number): number {
  let digits = 1
  for (let power = 10; power <= number; power *= 10) digits += 1
  return digits
}

/** Bytes of all numbers below this one, with their commas. */
function bytesBefore(number: number): number {
  let bytes = 2 * number
  for (let power = 10; power < number; power *= 10) bytes += number - power
  return bytes
}
