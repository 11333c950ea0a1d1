/** A byte count shared by many owners, and its maximum. */
export type ByteTotal = { bytes: number; readonly bytesMax: number }

/** The share of one owner in a total. */
export class CountedBytes {
  readonly #total: ByteTotal
  #bytes = 0

  constructor(total: ByteTotal) {
    this.#total = total
  }

  /** Sets the share. False when it grew and the total exceeds its maximum. */
  set(bytes: number): boolean {
    const more = bytes - this.#bytes
    if (more === 0) return true
    this.#bytes = bytes
    this.#total.bytes += more
    return more < 0 || this.#total.bytes <= this.#total.bytesMax
  }
}
