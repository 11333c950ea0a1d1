import { createTableMemory, SharedTable } from './shared-table.ts'

/** Events by key within a window of time, over the threads of a process. The window of a key begins with its first event. */
export type WindowCounts = {
  /** Counts one and returns the count of the window. Each one above `renewAbove` begins the window again and keeps the count. */
  add(key: string, renewAbove?: number): number
  /** The count of the window. */
  of(key: string): number
}

const SINCE_MS = 0
const COUNT = 1
const FIELDS = 2

/** The memory; beyond `keysMax` the keys that had no event for the longest time are dropped. */
export function createWindowMemory(keysMax: number): SharedArrayBuffer {
  return createTableMemory({ keysMax, fields: FIELDS })
}

export function createWindowCounts(table: SharedTable, windowMs: number, nowMs: () => number): WindowCounts {
  const { values } = table
  return {
    add(key, renewAbove = Number.POSITIVE_INFINITY) {
      const now = nowMs()
      const stripe = table.lock(key)
      let row = table.find(stripe)
      if (row === 0) row = table.add(stripe)
      else table.touch(stripe, row)
      // A new row has no count, whatever its time.
      let count = values[row + COUNT] as number
      if (count === 0 || now - (values[row + SINCE_MS] as number) >= windowMs) {
        count = 0
        values[row + COUNT] = 0
        values[row + SINCE_MS] = now
      }
      count += 1
      values[row + COUNT] = count
      if (count > renewAbove) values[row + SINCE_MS] = now
      table.unlock(stripe)
      return count
    },
    of(key) {
      const now = nowMs()
      const stripe = table.lock(key)
      const row = table.find(stripe)
      const isWithin = row !== 0 && now - (values[row + SINCE_MS] as number) < windowMs
      const count = isWithin ? (values[row + COUNT] as number) : 0
      table.unlock(stripe)
      return count
    },
  }
}

/** For one thread. */
export function createWindowTable(keysMax: number): SharedTable {
  return new SharedTable(createWindowMemory(keysMax), 0)
}
