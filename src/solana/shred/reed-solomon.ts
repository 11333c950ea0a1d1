import { addProduct, addWords, divide, multiply } from './galois-field.ts'

/**
 * Solana's erasure code, 32 data and 32 coding shards. A column of bytes is the values of a polynomial of degree below 32 over GF(2^8):
 * data shard i is its value at point i, coding shard i its value at point 32 + i. This equals the Vandermonde matrix row^column times the
 * inverse of its top square, since both fix the values at the first 32 points.
 */
export const DATA_SHARDS = 32
const CODE_SHARDS = 32
export const FEC_SET_SHARDS: number = DATA_SHARDS + CODE_SHARDS

const LEVELS = 5

/**
 * The first 32 points are a subspace and the next 32 its coset, so two additive Fourier transforms (Lin, Chung, Han 2014) of 80 butterflies
 * each, from values to coefficients and to the values at the other points, replace 1024 products.
 * TWIDDLES[level][point >> (level + 1)] is the normalized vanishing polynomial of span(1 .. 2^(level-1)) at that point.
 */
const TWIDDLES = Array.from({ length: LEVELS }, (_, level) =>
  Uint8Array.from({ length: FEC_SET_SHARDS >> (level + 1) }, (_, block) => {
    const at = (point: number) => {
      let value = 1
      for (let zero = 0; zero < 1 << level; zero++) value = multiply(value, point ^ zero)
      return value
    }
    return divide(at(block << (level + 1)), at(1 << level))
  }),
)

/** The 32 coding shards of 32 data shards of equal length. */
export function encodeShards(data: readonly Uint8Array[]): Uint8Array[] {
  const length = (data[0] as Uint8Array).length
  const shards = data.map(toWords)
  for (let level = 0; level < LEVELS; level++) {
    eachButterfly(shards, level, 0, (low, high, twiddle) => {
      addWords(high, low)
      addProduct(low, high, twiddle)
    })
  }
  for (let level = LEVELS - 1; level >= 0; level--) {
    eachButterfly(shards, level, DATA_SHARDS, (low, high, twiddle) => {
      addProduct(low, high, twiddle)
      addWords(high, low)
    })
  }
  return shards.map((words) => toBytes(words, length))
}

function eachButterfly(
  shards: readonly Int32Array[],
  level: number,
  firstPoint: number,
  apply: (low: Int32Array, high: Int32Array, twiddle: number) => void,
): void {
  const half = 1 << level
  for (let start = 0; start < shards.length; start += half * 2) {
    const twiddle = (TWIDDLES[level] as Uint8Array)[(firstPoint + start) >> (level + 1)] as number
    for (let i = start; i < start + half; i++) apply(shards[i] as Int32Array, shards[i + half] as Int32Array, twiddle)
  }
}

/**
 * All 64 shards of equal length (data first, then coding) from any 32 of them, by Lagrange interpolation at the missing data points.
 * Undefined when fewer than 32 are given. Shards beyond the 32 needed are returned unchecked.
 */
export function recoverShards(shards: readonly (Uint8Array | undefined)[]): Uint8Array[] | undefined {
  const points: number[] = []
  for (let i = 0; i < FEC_SET_SHARDS && points.length < DATA_SHARDS; i++) if (shards[i] !== undefined) points.push(i)
  if (points.length < DATA_SHARDS) return undefined
  const length = (shards[points[0] as number] as Uint8Array).length

  const known = points.map((point) => {
    const scale = points.reduce((product, other) => (other === point ? product : multiply(product, point ^ other)), 1)
    return { point, scale, words: toWords(shards[point] as Uint8Array) }
  })
  const data: Uint8Array[] = []
  for (let i = 0; i < DATA_SHARDS; i++) {
    const given = shards[i]
    if (given !== undefined) {
      data.push(given)
      continue
    }
    const words = new Int32Array((length + 3) >> 2)
    const product = points.reduce((value, point) => multiply(value, i ^ point), 1)
    for (const { point, scale, words: source } of known) {
      addProduct(words, source, divide(product, multiply(i ^ point, scale)))
    }
    data.push(toBytes(words, length))
  }
  const code = Array.from({ length: CODE_SHARDS }, (_, i) => shards[DATA_SHARDS + i])
  const encoded = code.includes(undefined) ? encodeShards(data) : []
  return [...data, ...code.map((shard, i) => shard ?? (encoded[i] as Uint8Array))]
}

function toWords(bytes: Uint8Array): Int32Array {
  const words = new Int32Array((bytes.length + 3) >> 2)
  toBytes(words, bytes.length).set(bytes)
  return words
}

function toBytes(words: Int32Array, length: number): Uint8Array {
  return new Uint8Array(words.buffer, 0, length)
}
