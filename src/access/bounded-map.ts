/** Adds an entry; at the maximum the oldest one is removed. */
export function setBounded<Value>(map: Map<string, Value>, key: string, value: Value, entriesMax: number): void {
  if (map.size >= entriesMax) {
    const [oldest] = map.keys()
    if (oldest !== undefined) map.delete(oldest)
  }
  // A copy: the text may be a slice that keeps the complete head of a request in memory.
  map.set(Buffer.from(key, 'latin1').toString('latin1'), value)
}
