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

/** Bytes of chance drawn at once by a source. */
const DRAWN_BYTES = 4096

/** ULIDs in great number: chance is drawn in bulk, and the text of the time is made once a millisecond. */
export function createUlidSource(random: Random): (nowMs: number) => string {
  const pairs = Array.from(ALPHABET, (first) => Array.from(ALPHABET, (second) => first + second)).flat()
  let drawn: Uint8Array = new Uint8Array(0)
  let at = 0
  let timeMs = -1
  let time = ''
  return (nowMs) => {
    if (nowMs !== timeMs) {
      timeMs = nowMs
      time = timeText(nowMs)
    }
    if (at >= drawn.length) {
      drawn = random.bytes(DRAWN_BYTES)
      at = 0
    }
    let text = time
    // 10 bits of two bytes make two characters; eight times that are the 80 bits.
    for (const end = at + 16; at < end; at += 2) {
      text += pairs[(((drawn[at] as number) & 3) << 8) | (drawn[at + 1] as number)]
    }
    return text
  }
}
