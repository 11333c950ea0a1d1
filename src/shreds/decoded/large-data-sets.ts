import { FEC_SET_DATA_SHREDS } from '../../solana/shred/shred.ts'
import { originOf } from './data-set.ts'
import type { DataSet } from './events.ts'
import type { FecSet } from './fec-set.ts'
import { decodeLargeDataSet } from './large-data-set.ts'
import type { HeldShreds, ShredCells } from './shred-cells.ts'
import type { OpenSlot } from './slot.ts'

export type LargeDataSetsDeps = {
  deliver(slot: OpenSlot, part: DataSet): void
  /** The FEC sets [from, to) do not contain valid entries; nothing of them was delivered. */
  onUndecodable(slot: OpenSlot, from: number, to: number): void
  /** A data set of the slot is no longer pending. */
  onEnd(slot: OpenSlot): void
}

type Job = {
  readonly slot: OpenSlot
  readonly from: number
  readonly to: number
  readonly steps: ReturnType<typeof decodeLargeDataSet>
}

/** Large data sets that are being decoded, one after the other, a step at a time. Their slots stay open. */
export class LargeDataSets {
  readonly #jobs: Job[] = []
  readonly #cells: ShredCells
  readonly #deps: LargeDataSetsDeps

  constructor(cells: ShredCells, deps: LargeDataSetsDeps) {
    this.#cells = cells
    this.#deps = deps
  }

  get size(): number {
    return this.#jobs.length
  }

  /** Takes over the data set that ends with this FEC set, and the blocks of its shreds. No other version of it is delivered. */
  begin(slot: OpenSlot, last: FecSet, arrivalNanos: number): void {
    const from = last.start
    const to = last.index + 1
    const sets: HeldShreds[] = []
    for (let set: FecSet | undefined = last; set !== undefined; set = set.previous) {
      sets.push({ block: set.block, cells: set.cells })
      set.block = -1
      set.isFinished = true
    }
    const place = { slot: slot.slot, startIndex: from * FEC_SET_DATA_SHREDS, endIndex: to * FEC_SET_DATA_SHREDS }
    const large = { ...place, arrivalNanos, ...originOf(last), sets: sets.reverse() }
    const steps = decodeLargeDataSet(large, this.#cells, (block) => this.#cells.release(block))
    slot.setDelivered(from, to)
    slot.pending += 1
    this.#jobs.push({ slot, from, to, steps })
  }

  /** The next step of the oldest one. */
  step(): void {
    const [job] = this.#jobs
    if (job === undefined) return
    const { slot, from, to } = job
    const { done, value } = job.steps.next()
    if (done !== true) {
      if (value !== undefined) this.#deps.deliver(slot, value)
      return
    }
    this.#jobs.shift()
    slot.pending -= 1
    if (!value) this.#deps.onUndecodable(slot, from, to)
    this.#deps.onEnd(slot)
  }
}
