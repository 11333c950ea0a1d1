import { Buffer } from 'node:buffer'
import { fromBase58Digits, toBase58Digits } from './base58-long.ts'

/**
 * Base58 with the Bitcoin alphabet, the text form of Solana's addresses, hashes and signatures.
 * Keys (32 bytes) and signatures (64 bytes) are converted with tables of powers, other lengths by long division.
 * Numbers are limbs of 16 bits on one side and groups of five characters on the other; 58^5 < 2^29.3, so a sum of
 * up to 64 products stays below 2^52 and every intermediate value is an exact double.
 */
const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const GROUP_CHARS = 5
const GROUP = 58 ** GROUP_CHARS
const LIMB = 0x10000
const ONE = 0x31

/** The default maximum length of a text: that of a transaction of 4096 bytes (SIMD-0296). */
export const BASE58_CHARS_MAX = 5594
/** From this length on, divide and conquer is faster than long division. */
const LONG_BYTES = 250
const LONG_CHARS = 546

const CODES = Uint8Array.from(ALPHABET, (char) => char.charCodeAt(0))
const VALUES = new Uint8Array(128).fill(0xff)
for (const [value, code] of CODES.entries()) VALUES[code] = value

const BY_LENGTH = { 32: createFixedLength(32), 64: createFixedLength(64) }

export function encodeBase58(bytes: Uint8Array): string {
  if (bytes.length === 32) return BY_LENGTH[32].encode(bytes)
  if (bytes.length === 64) return BY_LENGTH[64].encode(bytes)
  if (bytes.length < 64) return BY_LENGTH[bytes.length < 32 ? 32 : 64].encodeShorter(bytes)
  const zeros = leading(bytes, 0)
  if (bytes.length - zeros >= LONG_BYTES) {
    const digits = toBase58Digits(bytes.subarray(zeros))
    const from = leading(digits, 0)
    const chars = Buffer.alloc(zeros + digits.length - from, ONE)
    for (let at = from; at < digits.length; at++) chars[zeros + at - from] = CODES[digits[at] as number] as number
    return chars.toString('latin1')
  }
  const limbs = new Float64Array((bytes.length - zeros + 1) >> 1)
  for (let at = bytes.length - 1, limb = limbs.length - 1; limb >= 0; at -= 2, limb--) {
    limbs[limb] = (bytes[at] as number) | (at > zeros ? (bytes[at - 1] as number) << 8 : 0)
  }
  const groups: number[] = []
  for (let first = 0; first < limbs.length; ) {
    let rest = 0
    for (let i = first; i < limbs.length; i++) {
      const value = rest * LIMB + (limbs[i] as number)
      const quotient = Math.floor(value / GROUP)
      limbs[i] = quotient
      rest = value - quotient * GROUP
    }
    groups.push(rest)
    while (first < limbs.length && limbs[first] === 0) first++
  }
  return groupsToText(groups.reverse(), zeros, Buffer.allocUnsafe(groups.length * GROUP_CHARS + zeros))
}

/** Throws a TypeError on a character outside the alphabet and on a text longer than `charsMax`. */
export function decodeBase58(text: string, charsMax: number = BASE58_CHARS_MAX): Uint8Array {
  const { length } = text
  if (length > charsMax) throw new TypeError(`base58 text of ${length} characters is too long`)
  const fixed =
    length >= 32 && length <= 44
      ? BY_LENGTH[32].decode(text)
      : length >= 64 && length <= 88 && BY_LENGTH[64].decode(text)
  if (fixed) return fixed

  let zeros = 0
  while (zeros < length && text.charCodeAt(zeros) === ONE) zeros++
  if (length - zeros >= LONG_CHARS) {
    const digits = new Uint8Array(length - zeros)
    for (let at = 0; at < digits.length; at++) digits[at] = readGroup(text, zeros + at, 1)
    return Buffer.concat([new Uint8Array(zeros), fromBase58Digits(digits)])
  }
  // log(58) / log(65536) is just under 0.3662.
  const limbs = new Float64Array(Math.ceil((length - zeros) * 0.3662) + 1)
  let first = limbs.length
  // One product at a time leaves room for six characters: 58^6 * 2^16 < 2^52.
  for (let at = zeros; at < length; at += 6) {
    const chars = Math.min(6, length - at)
    const scale = 58 ** chars
    let carry = readGroup(text, at, chars)
    for (let i = limbs.length - 1; i >= first; i--) {
      const value = (limbs[i] as number) * scale + carry
      carry = Math.floor(value / LIMB)
      limbs[i] = value - carry * LIMB
    }
    for (; carry > 0; carry = Math.floor(carry / LIMB)) limbs[--first] = carry % LIMB
  }
  const odd = first < limbs.length && (limbs[first] as number) < 0x100 ? 1 : 0
  const bytes = new Uint8Array(zeros + (limbs.length - first) * 2 - odd)
  for (let limb = limbs.length - 1, to = bytes.length - 1; limb >= first; limb--, to -= 2) {
    const value = limbs[limb] as number
    bytes[to] = value
    if (to > zeros) bytes[to - 1] = value >> 8
  }
  return bytes
}

function readGroup(text: string, at: number, chars: number): number {
  let group = 0
  for (let i = at; i < at + chars; i++) {
    const code = text.charCodeAt(i)
    const value = code < 128 ? (VALUES[code] as number) : 0xff
    if (value === 0xff) throw new TypeError('base58 text has a character outside its alphabet')
    group = group * 58 + value
  }
  return group
}

function leading(bytes: Uint8Array, value: number): number {
  let count = 0
  while (count < bytes.length && bytes[count] === value) count++
  return count
}

/** Writes the groups as characters at the end of `chars`, with exactly `zeros` leading ones. */
function groupsToText(groups: ArrayLike<number>, zeros: number, chars: Buffer): string {
  let at = chars.length
  for (let i = groups.length - 1; i >= 0; i--) {
    let group = groups[i] as number
    for (let digit = 0; digit < GROUP_CHARS; digit++) {
      const quotient = (group / 58) | 0
      chars[--at] = CODES[group - quotient * 58] as number
      group = quotient
    }
  }
  while (at < chars.length && chars[at] === ONE) at++
  for (let i = 0; i < zeros; i++) chars[--at] = ONE
  return chars.toString('latin1', at)
}

/** Encode and decode for one even byte length. Each table holds the powers of one base written in the other, most significant first. */
function createFixedLength(length: number) {
  const limbCount = length / 2
  const groupCount = Math.ceil((length * 8) / Math.log2(58) / GROUP_CHARS)
  const toGroups = new Float64Array(limbCount * groupCount)
  const toLimbs = new Float64Array(groupCount * limbCount)
  for (let limb = 0; limb < limbCount; limb++) {
    let power = BigInt(LIMB) ** BigInt(limbCount - 1 - limb)
    for (let group = groupCount - 1; group >= 0; group--, power /= BigInt(GROUP)) {
      toGroups[limb * groupCount + group] = Number(power % BigInt(GROUP))
    }
  }
  for (let group = 0; group < groupCount; group++) {
    let power = BigInt(GROUP) ** BigInt(groupCount - 1 - group)
    for (let limb = limbCount - 1; limb >= 0; limb--, power /= BigInt(LIMB)) {
      // An overflow stays in the first limb, where decode detects it.
      toLimbs[group * limbCount + limb] = Number(limb === 0 ? power : power % BigInt(LIMB))
    }
  }
  /** The groups before those of a small power are zero. */
  const firstGroups = Uint8Array.from({ length: limbCount }, (_, limb) =>
    toGroups.subarray(limb * groupCount, (limb + 1) * groupCount).findIndex((group) => group !== 0),
  )
  const groups = new Float64Array(groupCount)
  const limbs = new Float64Array(limbCount)
  const chars = Buffer.alloc(groupCount * GROUP_CHARS + length)

  function encode(bytes: Uint8Array, zeros: number = leading(bytes, 0)): string {
    groups.fill(0)
    for (let limb = 0, row = 0; limb < limbCount; limb++, row += groupCount) {
      const value = ((bytes[limb * 2] as number) << 8) | (bytes[limb * 2 + 1] as number)
      if (value === 0) continue
      for (let group = firstGroups[limb] as number; group < groupCount; group++) {
        groups[group] = (groups[group] as number) + value * (toGroups[row + group] as number)
      }
    }
    for (let group = groupCount - 1; group > 0; group--) {
      const value = groups[group] as number
      const carry = Math.floor(value / GROUP)
      groups[group] = value - carry * GROUP
      groups[group - 1] = (groups[group - 1] as number) + carry
    }
    return groupsToText(groups, zeros, chars)
  }

  /** The number padded with leading zeros; the text has a `1` only for each leading zero of the input. */
  const padded = new Uint8Array(length)
  function encodeShorter(bytes: Uint8Array): string {
    padded.fill(0, 0, length - bytes.length)
    padded.set(bytes, length - bytes.length)
    return encode(padded, leading(bytes, 0))
  }

  /** Undefined when the text encodes another number of bytes. */
  function decode(text: string): Uint8Array | undefined {
    limbs.fill(0)
    const short = groupCount * GROUP_CHARS - text.length
    for (
      let group = Math.floor(short / GROUP_CHARS), row = group * limbCount;
      group < groupCount;
      group++, row += limbCount
    ) {
      const from = group * GROUP_CHARS - short
      const value = from < 0 ? readGroup(text, 0, GROUP_CHARS + from) : readGroup(text, from, GROUP_CHARS)
      for (let limb = 0; limb < limbCount; limb++) {
        limbs[limb] = (limbs[limb] as number) + value * (toLimbs[row + limb] as number)
      }
    }
    const bytes = new Uint8Array(length)
    for (let limb = limbCount - 1; limb >= 0; limb--) {
      const value = limbs[limb] as number
      const carry = Math.floor(value / LIMB)
      const low = value - carry * LIMB
      bytes[limb * 2] = low >> 8
      bytes[limb * 2 + 1] = low
      if (limb > 0) limbs[limb - 1] = (limbs[limb - 1] as number) + carry
      else if (carry > 0) return undefined
    }
    let zeros = 0
    while (text.charCodeAt(zeros) === ONE) zeros++
    return leading(bytes, 0) === zeros ? bytes : undefined
  }

  return { encode, encodeShorter, decode }
}
