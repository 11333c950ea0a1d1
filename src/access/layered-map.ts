/** Changes lie on top until there are this many, then everything becomes one layer again. */
const TOP_MAX = 1024

/**
 * A map that never changes: `with` gives a new one and leaves the old to those who still read it. A few changes to a map of 100,000 copy only the
 * small top layer. Nothing can be removed.
 */
export class LayeredMap<V> {
  readonly #base: ReadonlyMap<string, V>
  readonly #top: ReadonlyMap<string, V>
  readonly size: number

  constructor(base: ReadonlyMap<string, V> = new Map(), top: ReadonlyMap<string, V> = new Map()) {
    this.#base = base
    this.#top = top
    let size = base.size
    for (const key of top.keys()) if (!base.has(key)) size += 1
    this.size = size
  }

  get(key: string): V | undefined {
    return this.#top.get(key) ?? this.#base.get(key)
  }

  /** `changes` belongs to the new map from now on. */
  with(changes: ReadonlyMap<string, V>): LayeredMap<V> {
    if (changes.size === 0) return this
    if (this.size === 0) return new LayeredMap(changes)
    if (this.#top.size + changes.size <= TOP_MAX) return new LayeredMap(this.#base, new Map([...this.#top, ...changes]))
    const merged = new Map(this.#base)
    for (const layer of [this.#top, changes]) for (const [key, value] of layer) merged.set(key, value)
    return new LayeredMap(merged)
  }

  *values(): Generator<V> {
    for (const [key, value] of this.#base) yield this.#top.get(key) ?? value
    for (const [key, value] of this.#top) if (!this.#base.has(key)) yield value
  }
}
