import { setBounded } from '../core/bounded-map.ts'

/** Adds an entry under a copy of its key; above the maximum the oldest one is removed. */
export function setBoundedCopy<Value>(map: Map<string, Value>, key: string, value: Value, entriesMax: number): void {
  // A copy: the text may be a slice that keeps the complete head of a request in memory.
  setBounded(map, Buffer.from(key, 'latin1').toString('latin1'), value, entriesMax)
}
