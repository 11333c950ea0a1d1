/** A number of bytes that many holders have together, and its maximum. */
export type ByteTotal = { bytes: number; readonly bytesMax: number }

/** What one holder has of a total. */
export class CountedBytes {
  readonly #total: ByteTotal
  #bytes = 0

  constructor(total: ByteTotal) {
    this.#total = total
  }

  /** From now on it has so many. False when it has more than before and the total is beyond its maximum. */
  set(bytes: number): boolean {
    const more = bytes - this.#bytes
    if (more === 0) return true
    this.#bytes = bytes
    this.#total.bytes += more
    return more < 0 || this.#total.bytes <= this.#total.bytesMax
  }
}
