/** Sets an entry; above the maximum the oldest one is removed. The entry of a known key keeps its position: delete it first to make it the newest. */
export function setBounded<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, entriesMax: number): void {
  map.set(key, value)
  // A Map iterates in insertion order, so its first key is the oldest.
  if (map.size > entriesMax) map.delete(map.keys().next().value as Key)
}
