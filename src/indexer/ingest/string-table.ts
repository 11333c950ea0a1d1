const FIRST_BYTES = 4 * 1024
const FIRST_STRINGS = 64

/** The strings of rows in one buffer; rows refer to them by index. */
export class StringTable {
  readonly #interned = new Map<string, number>()
  #ends = new Uint32Array(FIRST_STRINGS)
  #count = 0
  #bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
  #used = 0

  /** The index of a string that may occur often: the same index each time. */
  intern(text: string): number {
    const known = this.#interned.get(text)
    if (known !== undefined) return known
    const index = this.add(text)
    this.#interned.set(text, index)
    return index
  }

  /** Adds a string that is not expected again. Returns its index. */
  add(text: string): number {
    // A UTF-16 code unit takes at most three bytes of UTF-8.
    this.#reserve(this.#used + text.length * 3)
    this.#used += this.#bytes.write(text, this.#used)
    if (this.#count === this.#ends.length) this.#ends = grown(this.#ends, Uint32Array)
    this.#ends[this.#count] = this.#used
    return this.#count++
  }

  get(index: number): string {
    return this.#bytes.toString('utf8', index === 0 ? 0 : this.#ends[index - 1], this.#ends[index])
  }

  /** All strings as one UTF-8 buffer, with the end offset of each. */
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

/** A copy of twice the length. */
export function grown<Kind extends Uint32Array | Float64Array>(items: Kind, make: new (length: number) => Kind): Kind {
  const longer = new make(items.length * 2)
  longer.set(items)
  return longer
}
