/** Orders entries of a `KeyTable` by the bytes of their keys, which is the order of their hex strings. */

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

/** The entries in key order: sorts by first word and entry number, then each run of keys with equal first words. */
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
  for (let from = 0, to = 1; to <= count; to++) {
    if (to < count && firstWord(table, sorted[to] as number) === firstWord(table, sorted[from] as number)) continue
    // Contracts with chosen addresses can make a run long.
    if (to - from > 1) sorted.subarray(from, to).sort((a, b) => compareKeys(table, a, b))
    from = to
  }
  return sorted
}

function firstWord({ keys, words }: Keys, entry: number): number {
  return keys[entry * words] as number
}

/** A first word (32 bits) and an entry number (21 bits) together fit a Number. */
export const ENTRIES_MAX = 2 ** 21

function bigEndian(word: number): number {
  return (((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0
}

/** Inserts into a short sorted list of at most `length` items. `comesFirst` is a strict total order. */
export function keepFirst<Item>(
  top: Item[],
  length: number,
  item: Item,
  comesFirst: (x: Item, y: Item) => boolean,
): void {
  if (top.length === length && !comesFirst(item, top[length - 1] as Item)) return
  let position = top.length
  while (position > 0 && comesFirst(item, top[position - 1] as Item)) position -= 1
  top.splice(position, 0, item)
  if (top.length > length) top.pop()
}
