import { sumCounts } from '../store/counts.ts'
import type { UsageRow } from '../store/model.ts'

/** Rows per write, so that a synchronous store does not block the event loop for long. */
const BATCH_ROWS = 200
/** Methods of a row that take about as much memory as the row. */
const METHODS_PER_ROW = 2

/** When a token was last used: its id and the minute. */
export type LastUse = readonly (readonly [string, number])[]

/** What is written in one transaction. */
export type UsageBatch = { readonly rows: readonly UsageRow[]; readonly used: LastUse }

type Sum = { -readonly [Name in keyof UsageRow]: UsageRow[Name] }

/** Usage that waits to be written. Rows of the same hour, subscription and interface are merged, so that it grows only with the number of active customers. */
export class UsageQueue {
  #rows = new Map<string, Sum>()
  #used = new Map<string, number>()
  #version = 0

  /** Changes with the content. */
  get version(): number {
    return this.#version
  }

  get rowCount(): number {
    return this.#rows.size
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0 && this.#used.size === 0
  }

  add(row: UsageRow): void {
    this.#version += 1
    const key = `${row.hour}/${row.interface}/${row.subscriptionId}`
    const same = this.#rows.get(key)
    if (same === undefined) {
      this.#rows.set(key, { ...row })
      return
    }
    same.calls += row.calls
    same.units += row.units
    same.refused += row.refused
    same.bytes += row.bytes
    if (row.methods === undefined) return
    const methods = { ...same.methods }
    for (const [method, counts] of Object.entries(row.methods)) methods[method] = sumCounts(methods[method], counts)
    same.methods = methods
  }

  addUse(tokenId: string, atMs: number): void {
    this.#version += 1
    this.#used.set(tokenId, atMs)
  }

  /** The content, which stays. */
  content(): UsageBatch {
    return { rows: [...this.#rows.values()], used: [...this.#used] }
  }

  /** Takes everything out, in batches. */
  takeBatches(): UsageBatch[] {
    const { rows, used } = this.content()
    this.#rows = new Map()
    this.#used = new Map()
    const batches: UsageBatch[] = []
    for (let at = 0; at < Math.max(rows.length, used.length); at += BATCH_ROWS)
      batches.push({ rows: rows.slice(at, at + BATCH_ROWS), used: used.slice(at, at + BATCH_ROWS) })
    return batches
  }

  /** Puts batches before what was counted since, so that the oldest stay first. */
  putBack(batches: readonly UsageBatch[]): void {
    const { rows, used } = this.content()
    this.#rows = new Map()
    this.#used = new Map()
    for (const batch of [...batches, { rows, used }]) {
      for (const row of batch.rows) this.add(row)
      for (const [tokenId, atMs] of batch.used) this.addUse(tokenId, atMs)
    }
  }

  /** Drops the oldest rows beyond the maximum and returns their number. */
  dropBeyond(rowsMax: number): number {
    const before = this.#rows.size
    let held = 0
    for (const row of this.#rows.values()) held += sizeOf(row)
    for (const [key, row] of this.#rows) {
      if (held <= rowsMax) break
      held -= sizeOf(row)
      this.#rows.delete(key)
    }
    for (const key of this.#used.keys()) {
      if (this.#used.size <= rowsMax) break
      this.#used.delete(key)
    }
    return before - this.#rows.size
  }
}

/** The memory of a row, in rows. */
function sizeOf({ methods = {} }: UsageRow): number {
  return 1 + Math.floor(Object.keys(methods).length / METHODS_PER_ROW)
}

export function rowsOf(batches: readonly UsageBatch[]): number {
  return batches.reduce((sum, { rows }) => sum + rows.length, 0)
}
