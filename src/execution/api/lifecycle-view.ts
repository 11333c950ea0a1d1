import type { LifecycleRecord } from '../../contract/execution-routes.ts'
import type { Hex, Lifecycle, Stage } from '../../contract/stream-events.ts'

/** The latest record of every block that the source tracks. */
export class LifecycleView {
  /** In order of first appearance. */
  readonly #all = new Map<Hex, LifecycleRecord>()
  /** In order of completion. */
  readonly #completed = new Map<Hex, LifecycleRecord>()

  get size(): number {
    return this.#all.size
  }

  update(record: LifecycleRecord): void {
    const { block_hash: id, current_stage } = record
    this.#all.set(id, record)
    if (current_stage === 'Verified' || current_stage === 'Rejected') this.#completed.set(id, record)
    else this.#completed.delete(id)
  }

  forget(ids: readonly Hex[] | 'all'): void {
    for (const map of [this.#all, this.#completed]) {
      if (ids === 'all') map.clear()
      else for (const id of ids) map.delete(id)
    }
  }

  stageOf(id: Hex): Stage | undefined {
    return this.#all.get(id)?.current_stage
  }

  /** The latest change of every active block, by number and then first appearance. */
  activeChanges(): Lifecycle[] {
    return this.#activeByNumber().map(changeOf)
  }

  /** Completed blocks, oldest first, then active ones by number. */
  records(): LifecycleRecord[] {
    return [...this.#completed.values(), ...this.#activeByNumber()]
  }

  /** The finalized block of a number, else the newest proposal. */
  record(number: number): LifecycleRecord | undefined {
    const of = [...this.#all.values()].filter((one) => one.block_number === number)
    return of.find(isFinalized) ?? of.at(-1)
  }

  #activeByNumber(): LifecycleRecord[] {
    return [...this.#all.values()]
      .filter(({ block_hash }) => !this.#completed.has(block_hash))
      .toSorted((a, b) => a.block_number - b.block_number)
  }
}

function isFinalized({ current_stage }: LifecycleRecord): boolean {
  return current_stage === 'Finalized' || current_stage === 'Verified'
}

/** The part of a record that its last Lifecycle frame had. */
function changeOf(record: LifecycleRecord): Lifecycle {
  const { block_hash, block_number, from_stage, to_stage, time_in_previous_stage_ms, block_age_ms } = record
  const { txn_count, gas_used } = record
  return {
    block_hash,
    block_number,
    from_stage,
    to_stage,
    time_in_previous_stage_ms,
    block_age_ms,
    txn_count,
    gas_used,
  }
}
