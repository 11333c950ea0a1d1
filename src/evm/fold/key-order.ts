/** Orders entries of a `KeyTable` by the bytes of their keys, which is the order of their hex texts. */

/** Words of a key that take part in a comparison; the others are ignored. */
type Keys = { keys: Uint32Array; words: number }

/** Negative when `a` comes first. */
export function compareKeys({ keys, words }: Keys, a: number, b: number): number {
  const baseA = a * words
  const baseB = b * words
  for (let word = 0; word < words; word++) {
    const wordA = keys[baseA + word] as number
    const wordB = keys[baseB + word] as number
    if (wordA !== wordB) return bigEndian(wordA) - bigEndian(wordB)
  }
  return 0
}

/** The entries in key order. Sorts numbers made of the first word and the entry, then settles what is still equal. */
export function sortByKey(table: Keys, entries: Uint32Array): Uint32Array {
  const count = entries.length
  const sortable = new Float64Array(count)
  for (let at = 0; at < count; at++) {
    const entry = entries[at] as number
    sortable[at] = bigEndian(table.keys[entry * table.words] as number) * ENTRIES_MAX + entry
  }
  sortable.sort()
  const sorted = new Uint32Array(count)
  for (let at = 0; at < count; at++) sorted[at] = (sortable[at] as number) % ENTRIES_MAX
  for (let at = 1; at < count; at++) {
    const entry = sorted[at] as number
    let position = at
    while (position > 0 && compareKeys(table, sorted[position - 1] as number, entry) > 0) {
      sorted[position] = sorted[position - 1] as number
      position -= 1
    }
    sorted[position] = entry
  }
  return sorted
}

/** A first word (32 bits) and an entry number (21 bits) fit a Number together. */
export const ENTRIES_MAX = 2 ** 21

function bigEndian(word: number): number {
  return (((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0
}
