export type NumberRange = { readonly from: number; readonly to: number }

/** A set of whole numbers, as ranges without gaps in ascending order. */
export class NumberRanges {
  readonly #ranges: { from: number; to: number }[] = []

  get count(): number {
    return this.#ranges.length
  }

  at(index: number): NumberRange | undefined {
    return this.#ranges.at(index)
  }

  add(number: number): void {
    const next = this.#indexAbove(number)
    const [below, above] = [this.#ranges[next - 1], this.#ranges[next]]
    if (below !== undefined && number <= below.to) return
    const isAfter = below !== undefined && below.to === number - 1
    const isBefore = above !== undefined && above.from === number + 1
    if (isAfter && isBefore) this.#ranges.splice(next - 1, 2, { from: below.from, to: above.to })
    else if (isAfter) below.to = number
    else if (isBefore) above.from = number
    else this.#ranges.splice(next, 0, { from: number, to: number })
  }

  remove(number: number): void {
    const at = this.#indexAbove(number) - 1
    const range = this.#ranges[at]
    if (range === undefined || number > range.to) return
    const { from, to } = range
    const left = [
      { from, to: number - 1 },
      { from: number + 1, to },
    ].filter((part) => part.from <= part.to)
    this.#ranges.splice(at, 1, ...left)
  }

  /** Index of the first range that begins above the number. */
  #indexAbove(number: number): number {
    let [from, to] = [0, this.#ranges.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((this.#ranges[middle] as NumberRange).from > number) to = middle
      else from = middle + 1
    }
    return from
  }
}

/** The highest ranges of all sets together, at most so many, in ascending order. */
export function highestRanges(sets: readonly NumberRanges[], countMax: number): NumberRange[] {
  const next = sets.map(({ count }) => count - 1)
  const found: { from: number; to: number }[] = []
  for (;;) {
    let highest = -1
    for (const [at, set] of sets.entries()) {
      const range = set.at(next[at] as number)
      const best = highest === -1 ? undefined : sets[highest]?.at(next[highest] as number)
      if ((next[at] as number) >= 0 && range !== undefined && range.to > (best?.to ?? Number.NEGATIVE_INFINITY))
        highest = at
    }
    const range = highest === -1 ? undefined : sets[highest]?.at(next[highest] as number)
    if (range === undefined) break
    const lowest = found[0]
    if (lowest !== undefined && range.to >= lowest.from - 1) lowest.from = Math.min(lowest.from, range.from)
    else if (found.length === countMax) break
    else found.unshift({ from: range.from, to: range.to })
    next[highest] = (next[highest] as number) - 1
  }
  return found
}
