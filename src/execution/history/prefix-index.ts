/** A shorter beginning is not looked up. */
const PREFIX_MIN = 4

const HEX_START = 2

/** Finds hex strings by their beginning: one bucket for each four first characters. A string can be added several times. */
export class PrefixIndex {
  readonly #buckets = new Map<string, Map<string, number>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(hex: string): void {
    const key = bucketOf(hex)
    const bucket = this.#buckets.get(key) ?? new Map<string, number>()
    this.#buckets.set(key, bucket)
    const count = bucket.get(hex) ?? 0
    if (count === 0) this.#size += 1
    bucket.set(hex, count + 1)
  }

  remove(hex: string): void {
    const key = bucketOf(hex)
    const bucket = this.#buckets.get(key)
    const count = bucket?.get(hex)
    if (bucket === undefined || count === undefined) return
    if (count > 1) return void bucket.set(hex, count - 1)
    bucket.delete(hex)
    this.#size -= 1
    if (bucket.size === 0) this.#buckets.delete(key)
  }

  /** At most `max` strings that begin and end like this, of those with these four first characters. */
  find({ start, end }: HexPattern, max: number): string[] {
    const found: string[] = []
    for (const hex of this.#buckets.get(bucketOf(start))?.keys() ?? []) {
      if (hex.startsWith(start) && hex.endsWith(end)) found.push(hex)
      if (found.length === max) break
    }
    return found
  }

  clear(): void {
    this.#buckets.clear()
    this.#size = 0
  }
}

/** `start` has 0x and at least four characters; `end` may be empty. */
export type HexPattern = { readonly start: string; readonly end: string }

function bucketOf(hex: string): string {
  return hex.slice(HEX_START, HEX_START + PREFIX_MIN)
}
