import type { HistorySeconds } from '../../contract/execution-history.ts'

/** Seconds kept. */
export const SECONDS_MAX = 3600
const STEP_MS = 1000

/** Offsets of the fields of one second. `second` is the unix time in seconds; 0 for an unused cell. */
const FIELD = { second: 0, tpsSum: 1, tpsCount: 2, blocks: 3, txns: 4, gas: 5, timeSum: 6, timeCount: 7 } as const
const FIELDS = 8

export type EndedBlock = {
  readonly txns: number
  readonly gasUsed: number
  /** Undefined where the block before is not known. */
  readonly blockTimeMs: number | undefined
}

/** Sums over the blocks that ended in each of the last 3,600 seconds, in one array of fixed size. */
export class SecondSeries {
  readonly #cells = new Float64Array(SECONDS_MAX * FIELDS)
  /** Seconds that changed since they were taken. */
  #changed = new Set<number>()

  addTps(atMs: number, tps: number): void {
    const cell = this.#cellOf(atMs)
    this.#add(cell, FIELD.tpsSum, tps)
    this.#add(cell, FIELD.tpsCount, 1)
  }

  addBlock(atMs: number, { txns, gasUsed, blockTimeMs }: EndedBlock): void {
    const cell = this.#cellOf(atMs)
    this.#add(cell, FIELD.blocks, 1)
    this.#add(cell, FIELD.txns, txns)
    this.#add(cell, FIELD.gas, gasUsed)
    if (blockTimeMs === undefined) return
    this.#add(cell, FIELD.timeSum, blockTimeMs)
    this.#add(cell, FIELD.timeCount, 1)
  }

  /** The seconds that are over, from the first one with a block on. */
  columns(nowMs: number): HistorySeconds {
    const end = Math.floor(nowMs / STEP_MS)
    let first = end - SECONDS_MAX + 1
    while (first < end && this.#find(first) === undefined) first += 1
    const tps: (number | null)[] = []
    const txns: (number | null)[] = []
    const gas_used: (number | null)[] = []
    const block_time_ms: (number | null)[] = []
    for (let second = first; second < end; second++) {
      const cell = this.#find(second)
      const has = (field: number): boolean => cell !== undefined && this.#get(cell, field) > 0
      const mean = (sum: number, count: number): number | null =>
        cell !== undefined && has(count) ? Math.round(this.#get(cell, sum) / this.#get(cell, count)) : null
      const ofBlocks = (field: number): number | null =>
        cell !== undefined && has(FIELD.blocks) ? this.#get(cell, field) : null
      tps.push(mean(FIELD.tpsSum, FIELD.tpsCount))
      txns.push(ofBlocks(FIELD.txns))
      gas_used.push(ofBlocks(FIELD.gas))
      block_time_ms.push(mean(FIELD.timeSum, FIELD.timeCount))
    }
    return { from_ms: first * STEP_MS, step_ms: STEP_MS, tps, txns, gas_used, block_time_ms }
  }

  /** The fields of the seconds that changed. */
  takeChanged(): number[][] {
    const taken = [...this.#changed].flatMap((second) => {
      const cell = this.#find(second)
      return cell === undefined ? [] : [[...this.#cells.subarray(cell, cell + FIELDS)]]
    })
    this.#changed = new Set()
    return taken
  }

  /** The fields of one second, as they were taken. */
  restore(fields: readonly number[]): void {
    const second = fields[FIELD.second] ?? 0
    if (fields.length !== FIELDS || second <= 0 || !fields.every((field) => Number.isFinite(field))) return
    this.#cells.set(fields, (second % SECONDS_MAX) * FIELDS)
  }

  /** These will be taken again. */
  markChanged(seconds: readonly (readonly number[])[]): void {
    for (const fields of seconds) this.#changed.add(fields[FIELD.second] as number)
  }

  clear(): void {
    this.#cells.fill(0)
    this.#changed.clear()
  }

  #find(second: number): number | undefined {
    const cell = (second % SECONDS_MAX) * FIELDS
    return this.#cells[cell] === second ? cell : undefined
  }

  #cellOf(atMs: number): number {
    const second = Math.floor(atMs / STEP_MS)
    const cell = (second % SECONDS_MAX) * FIELDS
    if (this.#cells[cell] !== second) {
      this.#cells.fill(0, cell, cell + FIELDS)
      this.#cells[cell] = second
    }
    // Bounded by the cells: a second that was replaced is not found when it is taken.
    if (this.#changed.size >= SECONDS_MAX) this.#changed.delete(this.#changed.values().next().value as number)
    this.#changed.add(second)
    return cell
  }

  #get(cell: number, field: number): number {
    return this.#cells[cell + field] as number
  }

  #add(cell: number, field: number, value: number): void {
    this.#cells[cell + field] = this.#get(cell, field) + value
  }
}
