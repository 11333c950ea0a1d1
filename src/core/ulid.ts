import type { Random } from './random.ts'

/** Crockford's base 32: no I, L, O, U. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const TIME_CHARS = 10
const RANDOM_CHARS = 16

/** 26 characters: 48 bits of time, 80 random bits. Sorts by time. (github.com/ulid/spec) */
export function createUlid(nowMs: number, random: Random): string {
  // In one piece: a text that is put together letter by letter takes ten times the memory while it is kept.
  const letters = Buffer.from(ulidTime(nowMs).padEnd(TIME_CHARS + RANDOM_CHARS))
  // 5 bits of each byte are used; 16 bytes give the 80 bits.
  for (const [at, byte] of random.bytes(RANDOM_CHARS).entries())
    letters[TIME_CHARS + at] = ALPHABET.charCodeAt(byte & 31)
  return letters.toString('latin1')
}

/** The time part: 10 characters, which sort by time. */
export function ulidTime(nowMs: number): string {
  let text = ''
  let time = Math.floor(nowMs)
  for (let at = 0; at < TIME_CHARS; at++) {
    text = ALPHABET[time % 32] + text
    time = Math.floor(time / 32)
  }
  return text
}

/** Ids whose random part is drawn at once. */
const BATCH_IDS = 256

/** Creates many ULIDs: draws the random part of 256 at once and encodes the time once per millisecond. */
export function createUlidSource(random: Random): (nowMs: number) => string {
  let randomText = ''
  let at = 0
  let timeMs = -1
  let time = ''
  return (nowMs) => {
    if (nowMs !== timeMs) {
      timeMs = nowMs
      time = ulidTime(nowMs)
    }
    if (at >= randomText.length) {
      // As above, 5 bits of each byte.
      const letters = Buffer.from(random.bytes(BATCH_IDS * RANDOM_CHARS))
      for (let byte = 0; byte < letters.length; byte++) {
        letters[byte] = ALPHABET.charCodeAt((letters[byte] as number) & 31)
      }
      randomText = letters.toString('latin1')
      at = 0
    }
    const from = at
    at += RANDOM_CHARS
    return time + randomText.slice(from, at)
  }
}
