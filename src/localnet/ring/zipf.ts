import type { Random } from '../../core/random.ts'

/** Picks an item; the k-th is picked about 1 / k of the time, which is how use spreads over accounts of real chains. */
export function pickZipf<Item>(items: readonly Item[], random: Random): Item {
  // The inverse of the logarithm that sums of 1 / k follow.
  const position = Math.floor((items.length + 1) ** random.float()) - 1
  return items[Math.min(position, items.length - 1)] as Item
}
