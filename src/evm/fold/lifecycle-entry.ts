import type { Hex } from '../hex.ts'

export type Stage = 'Proposed' | 'Voted' | 'Finalized' | 'Verified' | 'Rejected'

/** A stage change of a block, with the fields of the published record. Times are those of the ring and never negative. */
export type LifecycleChange = {
  /** The consensus id, not the Ethereum hash. */
  block_hash: Hex
  block_number: number
  from_stage: Stage | null
  to_stage: Stage
  time_in_previous_stage_ms: number | null
  block_age_ms: number
  txn_count: number
  gas_used: number | null
}

/** The latest change of a block and its history. */
export type LifecycleRecord = LifecycleChange & {
  current_stage: Stage
  eth_block_hash?: Hex
  /** Milliseconds since Proposed for each stage reached. */
  stage_timings_ms: Partial<Record<Stage, number>>
  execution_time_ms?: number
  total_age_ms: number
}

export type ProposedBlock = { id: Hex; number: number; blockSeqno: number; txnCount: number; timeNs: bigint }

export type ExecutedBlock = { ethBlockHash: Hex; gasUsed: number; timeNs: bigint }

/** One tracked block. */
export class LifecycleEntry {
  readonly id: Hex
  readonly number: number
  /** Ordinal number of the block by first appearance. */
  readonly ordinal: number
  stage: Stage = 'Proposed'
  blockSeqno: number
  readonly #txnCount: number
  #startedNs: bigint
  readonly #stages: { stage: Stage; timeNs: bigint }[]
  #executed: (ExecutedBlock & { startedNs: bigint }) | undefined

  constructor(block: ProposedBlock, ordinal: number) {
    this.id = block.id
    this.ordinal = ordinal
    this.number = block.number
    this.blockSeqno = block.blockSeqno
    this.#txnCount = block.txnCount
    this.#startedNs = block.timeNs
    this.#stages = [{ stage: 'Proposed', timeNs: block.timeNs }]
  }

  get isFinalized(): boolean {
    return this.stage === 'Finalized' || this.stage === 'Verified'
  }

  /** Execution of the block starts, for the first time or again. */
  started(blockSeqno: number, timeNs: bigint): void {
    this.blockSeqno = blockSeqno
    this.#startedNs = timeNs
  }

  executed({ ethBlockHash, gasUsed, timeNs }: ExecutedBlock): void {
    this.#executed ??= { ethBlockHash, gasUsed, timeNs, startedNs: this.#startedNs }
  }

  enter(stage: Stage, timeNs: bigint): LifecycleChange {
    this.stage = stage
    this.#stages.push({ stage, timeNs })
    return this.change()
  }

  change(): LifecycleChange {
    const now = this.#stages.at(-1) as { stage: Stage; timeNs: bigint }
    const before = this.#stages.at(-2)
    return {
      block_hash: this.id,
      block_number: this.number,
      from_stage: before?.stage ?? null,
      to_stage: now.stage,
      time_in_previous_stage_ms: before === undefined ? null : millisBetween(before.timeNs, now.timeNs),
      block_age_ms: millisBetween(this.#proposedNs, now.timeNs),
      txn_count: this.#txnCount,
      gas_used: this.#executed?.gasUsed ?? null,
    }
  }

  record(): LifecycleRecord {
    const change = this.change()
    const timings = this.#stages.map(({ stage, timeNs }) => [stage, millisBetween(this.#proposedNs, timeNs)])
    const executed = this.#executed
    return {
      ...change,
      current_stage: this.stage,
      ...(executed === undefined ? {} : { eth_block_hash: executed.ethBlockHash }),
      stage_timings_ms: Object.fromEntries(timings) as Partial<Record<Stage, number>>,
      ...(executed === undefined ? {} : { execution_time_ms: millisBetween(executed.startedNs, executed.timeNs) }),
      total_age_ms: change.block_age_ms,
    }
  }

  get #proposedNs(): bigint {
    return (this.#stages[0] as { timeNs: bigint }).timeNs
  }
}

function millisBetween(fromNs: bigint, toNs: bigint): number {
  return toNs > fromNs ? Number(toNs - fromNs) / 1e6 : 0
}
