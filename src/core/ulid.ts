import type { Random } from './random.ts'

/** Crockford's base 32: no I, L, O, U. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 26 characters: 48 bits of time, 80 of chance. Sorts by time. (github.com/ulid/spec) */
export function createUlid(nowMs: number, random: Random): string {
  let text = timeText(nowMs)
  // 5 bits of each byte are used; 16 bytes give the 80 bits.
  for (const byte of random.bytes(16)) text += ALPHABET[byte & 31]
  return text
}

function timeText(nowMs: number): string {
  let text = ''
  let time = Math.floor(nowMs)
  for (let at = 0; at < 10; at++) {
    text = ALPHABET[time % 32] + text
    time = Math.floor(time / 32)
  }
  return text
}

/** Ids whose chance is drawn at once by a source. */
const DRAWN_IDS = 256
const CHANCE_CHARACTERS = 16

/** ULIDs in great number: the chance of many is drawn and written in one go, and the text of the time is made once a millisecond. */
export function createUlidSource(random: Random): (nowMs: number) => string {
  let chance = ''
  let at = 0
  let timeMs = -1
  let time = ''
  return (nowMs) => {
    if (nowMs !== timeMs) {
      timeMs = nowMs
      time = timeText(nowMs)
    }
    if (at >= chance.length) {
      // As above, 5 bits of each byte.
      const letters = Buffer.from(random.bytes(DRAWN_IDS * CHANCE_CHARACTERS))
      for (let byte = 0; byte < letters.length; byte++) {
        letters[byte] = ALPHABET.charCodeAt((letters[byte] as number) & 31)
      }
      chance = letters.toString('latin1')
      at = 0
    }
    const from = at
    at += CHANCE_CHARACTERS
    return time + chance.slice(from, at)
  }
}
