/**
 * HalfSipHash-1-3 (Aumasson, Bernstein) over the UTF-16 code units of a text. Without the seed nobody can choose texts that collide. The 64 bits
 * are two fields, so that a call allocates nothing.
 */
export class TextHash {
  low = 0
  high = 0
  readonly #seedLow: number
  readonly #seedHigh: number

  constructor(seedLow: number, seedHigh: number) {
    this.#seedLow = seedLow | 0
    this.#seedHigh = seedHigh | 0
  }

  /** Sets `low` and `high` to the hash of the text. */
  update(text: string): void {
    const { length } = text
    /** The last word has the odd code unit, if there is one, and the length. */
    const words = (length >>> 1) + 1
    const rounds = words + 2 * FINAL_ROUNDS
    let v0 = this.#seedLow
    let v1 = this.#seedHigh ^ 0xee
    let v2 = this.#seedLow ^ 0x6c796765
    let v3 = this.#seedHigh ^ 0x74656462
    for (let round = 0; round < rounds; round++) {
      let word = 0
      if (round < words - 1) word = text.charCodeAt(2 * round) | (text.charCodeAt(2 * round + 1) << 16)
      else if (round === words - 1) word = ((length & 1) === 1 ? text.charCodeAt(length - 1) : 0) | (length << 16)
      else if (round === words) v2 ^= 0xee
      else if (round === words + FINAL_ROUNDS) {
        this.low = v1 ^ v3
        v1 ^= 0xdd
      }
      v3 ^= word
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      v0 ^= word
    }
    this.high = v1 ^ v3
  }
}

const FINAL_ROUNDS = 3

/** Hashes of texts that come again and again, such as the ids of subscriptions. Forgets all of them when there are too many. */
export class TextHashMemo {
  low = 0
  high = 0
  readonly #hash: TextHash
  readonly #textsMax: number
  readonly #positions = new Map<string, number>()
  readonly #words: Int32Array

  constructor(hash: TextHash, textsMax: number) {
    this.#hash = hash
    this.#textsMax = textsMax
    this.#words = new Int32Array(2 * textsMax)
  }

  update(text: string): void {
    const position = this.#positions.get(text) ?? this.#remember(text)
    this.low = this.#words[position] as number
    this.high = this.#words[position + 1] as number
  }

  #remember(text: string): number {
    if (this.#positions.size === this.#textsMax) this.#positions.clear()
    const position = 2 * this.#positions.size
    this.#hash.update(text)
    this.#words[position] = this.#hash.low
    this.#words[position + 1] = this.#hash.high
    this.#positions.set(text, position)
    return position
  }
}
