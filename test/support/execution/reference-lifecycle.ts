type Stage = 'Proposed' | 'Voted' | 'Finalized' | 'Verified' | 'Rejected'
type Block = {
  id: string
  number: number
  txnCount: number
  /** In event order. */
  stages: [stage: Stage, timeNs: bigint][]
  startedNs: bigint
  executed?: { hash: string; gasUsed: number; ms: number }
  /** Only active blocks change. `gone` when the chain has moved past them. */
  state: 'active' | 'completed' | 'gone'
}

/** A reference implementation of the section Lifecycle, over a list of all blocks. */
export class ReferenceLifecycle {
  readonly #blocks: Block[] = []
  readonly #bySeqno = new Map<number, Block>()

  start({ seqno, timeNs, ...block }: { id: string; number: number; txnCount: number; seqno: number; timeNs: bigint }) {
    let known = this.#blocks.find(({ id, state }) => id === block.id && state !== 'gone')
    if (known !== undefined && stageOf(known) === 'Rejected' && !this.#isDecided(known.number)) {
      known.state = 'gone'
      known = undefined
    }
    if (known === undefined) {
      known = { ...block, stages: [['Proposed', timeNs]], startedNs: timeNs, state: 'active' }
      this.#blocks.push(known)
    }
    known.startedNs = timeNs
    for (const [old, named] of this.#bySeqno) if (named === known) this.#bySeqno.delete(old)
    this.#bySeqno.set(seqno, known)
  }

  execute(seqno: number, { hash, gasUsed, timeNs }: { hash: string; gasUsed: number; timeNs: bigint }): void {
    const block = this.#bySeqno.get(seqno)
    // A damaged event may name a block that is gone.
    if (block !== undefined && block.state !== 'gone')
      block.executed ??= { hash, gasUsed, ms: millis(block.startedNs, timeNs) }
  }

  vote(id: string, timeNs: bigint): void {
    const block = this.#active().find((known) => known.id === id)
    if (block !== undefined && stageOf(block) === 'Proposed') block.stages.push(['Voted', timeNs])
  }

  finalize(id: string, number: number, timeNs: bigint): void {
    for (const block of this.#active()) {
      if (block.id === id && stageOf(block) !== 'Finalized') block.stages.push(['Finalized', timeNs])
      if (block.id !== id && block.number === number) complete(block, 'Rejected', timeNs)
    }
  }

  verify(number: number, timeNs: bigint): void {
    for (const block of this.#active()) {
      if (block.number === number && stageOf(block) === 'Finalized') complete(block, 'Verified', timeNs)
      if (block.number < number) block.state = 'gone'
    }
  }

  reject(seqno: number, timeNs: bigint): void {
    const block = this.#bySeqno.get(seqno)
    if (block?.state === 'active') complete(block, 'Rejected', timeNs)
  }

  /** In order of first appearance; for a block that reappeared after it was gone, the later record. */
  records(): object[] {
    const byId = new Map<string, object>()
    for (const block of this.#blocks) byId.set(block.id, recordOf(block))
    return [...byId.values()]
  }

  #isDecided(number: number): boolean {
    const of = this.#blocks.filter((block) => block.number === number && block.state !== 'gone')
    return of.some((block) => stageOf(block) === 'Finalized' || stageOf(block) === 'Verified')
  }

  #active(): Block[] {
    return this.#blocks.filter(({ state }) => state === 'active')
  }
}

function complete(block: Block, stage: Stage, timeNs: bigint): void {
  block.stages.push([stage, timeNs])
  block.state = 'completed'
}

function stageOf({ stages }: Block): Stage {
  return (stages.at(-1) as Block['stages'][number])[0]
}

function recordOf({ id, number, txnCount, stages, executed }: Block): object {
  const [, startNs] = stages[0] as Block['stages'][number]
  const [stage, timeNs] = stages.at(-1) as Block['stages'][number]
  const before = stages.at(-2)
  return {
    block_hash: id,
    block_number: number,
    from_stage: before?.[0] ?? null,
    to_stage: stage,
    time_in_previous_stage_ms: before === undefined ? null : millis(before[1], timeNs),
    block_age_ms: millis(startNs, timeNs),
    txn_count: txnCount,
    gas_used: executed?.gasUsed ?? null,
    current_stage: stage,
    ...(executed === undefined ? {} : { eth_block_hash: executed.hash }),
    stage_timings_ms: Object.fromEntries(stages.map(([name, at]) => [name, millis(startNs, at)])),
    ...(executed === undefined ? {} : { execution_time_ms: executed.ms }),
    total_age_ms: millis(startNs, timeNs),
  }
}

function millis(from: bigint, to: bigint): number {
  return to > from ? Number(to - from) / 1e6 : 0
}
