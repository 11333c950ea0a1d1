/** A count per key. A key whose count is 0 is removed, so that the map does not grow. */
export type Counts = { of(key: string): number; add(key: string, by: 1 | -1): void }

export function createCounts(): Counts {
  const counts = new Map<string, number>()
  return {
    of: (key) => counts.get(key) ?? 0,
    add(key, by) {
      const count = (counts.get(key) ?? 0) + by
      if (count === 0) counts.delete(key)
      else counts.set(key, count)
    },
  }
}
