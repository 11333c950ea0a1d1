import { Buffer } from 'node:buffer'

/**
 * Base58 of long byte strings (instruction data, up to 10 KiB in a call between programs) by divide and conquer: long division takes quadratic
 * time, 30 ms at 10 KiB; this takes less than 1 ms. The caller handles leading zero bytes.
 */

/** One leaf: 58^10 < 2^59, which a bigint of one digit holds. */
const LEAF_CHARS = 10
const HALF_LEAF = 58n ** 5n
/** POWERS[k] = 58^(LEAF_CHARS * 2^k), extended as needed. */
const POWERS: bigint[] = [58n ** BigInt(LEAF_CHARS)]

function power(level: number): bigint {
  while (POWERS.length <= level) POWERS.push((POWERS.at(-1) as bigint) ** 2n)
  return POWERS[level] as bigint
}

/** The base58 digits of a big-endian number, most significant first, including leading zeros. */
export function toBase58Digits(bytes: Uint8Array): Uint8Array {
  const value = BigInt(`0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`)
  let levels = 0
  while (power(levels) <= value) levels++
  const digits = new Uint8Array(LEAF_CHARS << levels)
  writeDigits(value, levels, digits, 0)
  return digits
}

function writeDigits(value: bigint, level: number, digits: Uint8Array, at: number): void {
  if (value === 0n) return
  if (level === 0) {
    const high = value / HALF_LEAF
    writeHalf(Number(high), digits, at)
    writeHalf(Number(value - high * HALF_LEAF), digits, at + LEAF_CHARS / 2)
    return
  }
  const split = power(level - 1)
  const high = value / split
  writeDigits(high, level - 1, digits, at)
  writeDigits(value - high * split, level - 1, digits, at + (LEAF_CHARS << (level - 1)))
}

function writeHalf(value: number, digits: Uint8Array, at: number): void {
  for (let i = LEAF_CHARS / 2 - 1, rest = value; rest > 0; i--) {
    const quotient = (rest / 58) | 0
    digits[at + i] = rest - quotient * 58
    rest = quotient
  }
}

/** The big-endian bytes of a number from its base58 digits, without leading zero bytes. */
export function fromBase58Digits(digits: Uint8Array): Uint8Array {
  let levels = 0
  while (LEAF_CHARS << levels < digits.length) levels++
  const whole = new Uint8Array(LEAF_CHARS << levels)
  whole.set(digits, whole.length - digits.length)
  const hex = readDigits(whole, levels, 0).toString(16)
  return hex === '0' ? new Uint8Array(0) : Uint8Array.from(Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex'))
}

function readDigits(digits: Uint8Array, level: number, at: number): bigint {
  if (level > 0) {
    const high = readDigits(digits, level - 1, at)
    return high * power(level - 1) + readDigits(digits, level - 1, at + (LEAF_CHARS << (level - 1)))
  }
  let high = 0
  let low = 0
  for (let i = 0; i < LEAF_CHARS / 2; i++) high = high * 58 + (digits[at + i] as number)
  for (let i = LEAF_CHARS / 2; i < LEAF_CHARS; i++) low = low * 58 + (digits[at + i] as number)
  return BigInt(high) * HALF_LEAF + BigInt(low)
}
