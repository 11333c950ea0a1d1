/** Keeps the first of very many items, without sorting all of them. */
export function createFirstInOrder<T>(max: number, compare: (a: T, b: T) => number) {
  const first: T[] = []
  return {
    add(item: T): void {
      const last = first.at(-1)
      if (first.length === max && last !== undefined && compare(item, last) >= 0) return
      // The first place behind the items that are not after it.
      let [low, high] = [0, first.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if (compare(first[middle] as T, item) <= 0) low = middle + 1
        else high = middle
      }
      first.splice(low, 0, item)
      if (first.length > max) first.pop()
    },
    /** In order; of equal ones, those that were added first. */
    items: (): readonly T[] => first,
  }
}
