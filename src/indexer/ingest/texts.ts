const FIRST_BYTES = 4 * 1024
const FIRST_TEXTS = 64

/** The texts of rows, one after another: rows name them by number. */
export class Texts {
  readonly #numbers = new Map<string, number>()
  #ends = new Uint32Array(FIRST_TEXTS)
  #count = 0
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #used = 0

  /** The number of a text that may occur often: the same one each time. */
  numberOf(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    const number = this.add(text)
    this.#numbers.set(text, number)
    return number
  }

  /** The number of a text that is not expected again. */
  add(text: string): number {
    // A character is at most three bytes of UTF-8.
    this.#reserve(this.#used + text.length * 3)
    this.#used += this.#bytes.write(text, this.#used)
    if (this.#count === this.#ends.length) this.#ends = grown(this.#ends, Uint32Array)
    this.#ends[this.#count] = this.#used
    return this.#count++
  }

  textOf(number: number): string {
    return this.#bytes.toString('utf8', number === 0 ? 0 : this.#ends[number - 1], this.#ends[number])
  }

  /** All of them in one piece of UTF-8, and where each ends in it. */
  packed(): { readonly bytes: Uint8Array; readonly ends: Uint32Array } {
    return { bytes: this.#bytes.subarray(0, this.#used), ends: this.#ends.subarray(0, this.#count) }
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(bytes, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#used)
    this.#bytes = larger
  }
}

/** Twice as long, with the same beginning. */
export function grown<Kind extends Uint32Array | Float64Array>(items: Kind, make: new (length: number) => Kind): Kind {
  const longer = new make(items.length * 2)
  longer.set(items)
  return longer
}
