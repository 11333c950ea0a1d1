import type { Random } from './random.ts'

/** Crockford's base 32: no I, L, O, U. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 26 characters: 48 bits of time, 80 of chance. Sorts by time. (github.com/ulid/spec) */
export function createUlid(nowMs: number, random: Random): string {
  let text = ''
  let time = Math.floor(nowMs)
  for (let at = 0; at < 10; at++) {
    text = ALPHABET[time % 32] + text
    time = Math.floor(time / 32)
  }
  // 5 bits of each byte are used; 16 bytes give the 80 bits.
  for (const byte of random.bytes(16)) text += ALPHABET[byte & 31]
  return text
}
