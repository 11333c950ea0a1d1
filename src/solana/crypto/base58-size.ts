import { Buffer } from 'node:buffer'
import { encodeBase58 } from './base58.ts'

/** Whether the text, as bytes of ASCII, decodes to this number of bytes. Nothing is decoded: one pass over the text. */
export type Base58Size = (text: Uint8Array, from: number, to: number) => boolean

const ONE = 0x31
/** In the order of ASCII, so that texts of the same length compare like the numbers that they stand for. */
const ALPHABET = Buffer.from('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz')
const IS_DIGIT = new Uint8Array(256)
for (const code of ALPHABET) IS_DIGIT[code] = 1

export const isBase58Key: Base58Size = createBase58Size(32)
export const isBase58Signature: Base58Size = createBase58Size(64)

/** Every `1` at the start is a zero byte; the rest is a number that fills the other bytes. */
function createBase58Size(size: number): Base58Size {
  /** The least and the greatest number of each count of bytes. */
  const bounds = Array.from({ length: size + 1 }, (_, bytes) => ({
    least: Buffer.from(bytes === 0 ? '' : encodeBase58(Buffer.alloc(bytes).fill(1, 0, 1))),
    greatest: Buffer.from(encodeBase58(Buffer.alloc(bytes, 0xff))),
  }))
  return (text, from, to) => {
    let first = from
    while (first < to && text[first] === ONE) first++
    const bound = bounds[size - (first - from)]
    if (bound === undefined || to - first < bound.least.length || to - first > bound.greatest.length) return false
    for (let at = first; at < to; at++) if (IS_DIGIT[text[at] as number] === 0) return false
    return !isBelow(text, first, to, bound.least) && !isAbove(text, first, to, bound.greatest)
  }
}

function isBelow(text: Uint8Array, from: number, to: number, bound: Uint8Array): boolean {
  return to - from === bound.length && order(text, from, bound) < 0
}

function isAbove(text: Uint8Array, from: number, to: number, bound: Uint8Array): boolean {
  return to - from === bound.length && order(text, from, bound) > 0
}

function order(text: Uint8Array, from: number, bound: Uint8Array): number {
  for (let at = 0; at < bound.length; at++) {
    const difference = (text[from + at] as number) - (bound[at] as number)
    if (difference !== 0) return difference
  }
  return 0
}
