/**
 * GF(2^8) with the polynomial 0x11D and the generator 2, the field of Solana's erasure code. Addition is XOR.
 * Arrays of bytes are processed four at a time, as the lanes of a 32-bit word.
 */
const POLYNOMIAL = 0x11d
const LOW_BITS = 0x01010101

const EXP = new Uint8Array(510)
const LOG = new Uint8Array(256)
for (let power = 0, value = 1; power < 255; power++) {
  EXP[power] = value
  EXP[power + 255] = value
  LOG[value] = power
  value = double(value)
}

function double(value: number): number {
  return value < 0x80 ? value << 1 : (value << 1) ^ POLYNOMIAL
}

export function multiply(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : (EXP[(LOG[a] as number) + (LOG[b] as number)] as number)
}

/** `b` must not be 0. */
export function divide(a: number, b: number): number {
  return a === 0 ? 0 : (EXP[(LOG[a] as number) + 255 - (LOG[b] as number)] as number)
}

/** target ^= source. */
export function addWords(target: Int32Array, source: Int32Array): void {
  const { length } = target
  for (let i = 0; i < length; i++) target[i] = (target[i] as number) ^ (source[i] as number)
}

/**
 * target ^= factor * source. Bit k of a byte contributes factor * 2^k; multiplying the four lanes' bits by that byte never carries
 * from one lane into the next. Faster than a table of products, which competes with the shards for the cache.
 */
export function addProduct(target: Int32Array, source: Int32Array, factor: number): void {
  if (factor === 0) return
  const f1 = double(factor)
  const f2 = double(f1)
  const f3 = double(f2)
  const f4 = double(f3)
  const f5 = double(f4)
  const f6 = double(f5)
  const f7 = double(f6)
  const { length } = target
  for (let i = 0; i < length; i++) {
    const word = source[i] as number
    target[i] =
      (target[i] as number) ^
      Math.imul(word & LOW_BITS, factor) ^
      Math.imul((word >>> 1) & LOW_BITS, f1) ^
      Math.imul((word >>> 2) & LOW_BITS, f2) ^
      Math.imul((word >>> 3) & LOW_BITS, f3) ^
      Math.imul((word >>> 4) & LOW_BITS, f4) ^
      Math.imul((word >>> 5) & LOW_BITS, f5) ^
      Math.imul((word >>> 6) & LOW_BITS, f6) ^
      Math.imul((word >>> 7) & LOW_BITS, f7)
  }
}
