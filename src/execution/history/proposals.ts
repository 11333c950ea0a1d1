import type { LifecycleRecord } from '../../contract/execution-routes.ts'
import type { ConflictData, ContentionData, Hex } from '../../contract/stream-events.ts'
import type { ContractAccesses } from '../../evm/fold/contention.ts'

/** The figures of an executed proposal. */
export type ProposalFigures = {
  readonly contention: ContentionData
  readonly conflicts: ConflictData
  readonly accesses: ContractAccesses | undefined
}

/** One proposal. Its parts arrive in any order. */
export type Proposal = {
  readonly id: Hex
  readonly number: number
  /** When it was proposed, else when it was first heard of. */
  timeMs: number
  blockTimeMs: number | undefined
  /** When it was executed to its end. */
  endedMs: number | undefined
  /** It is in the sums of its second. */
  isCounted: boolean
  gasLimit: number | undefined
  tps: number | undefined
  record: LifecycleRecord | undefined
  figures: ProposalFigures | undefined
}

export type ProposalsDeps = {
  /** The figures of a proposal are there, or are no longer. */
  readonly onFigures: (figures: ProposalFigures, isThere: boolean) => void
}

/** The last proposals, in the order in which they were proposed. */
export class Proposals {
  readonly #max: number
  readonly #deps: ProposalsDeps
  readonly #byId = new Map<Hex, Proposal>()
  readonly #byNumber = new Map<number, Proposal[]>()
  #floor = Number.NEGATIVE_INFINITY

  constructor(options: { readonly proposalsMax: number }, deps: ProposalsDeps) {
    this.#max = options.proposalsMax
    this.#deps = deps
  }

  get size(): number {
    return this.#byId.size
  }

  get first(): Proposal | undefined {
    return this.#byId.values().next().value
  }

  /** Proposals up to this number were kept before. One that is not kept any more is not added again, in the place of a newer one. */
  get floor(): number {
    return this.#floor
  }

  raiseFloor(number: number): void {
    this.#floor = Math.max(this.#floor, number)
  }

  values(): Iterable<Proposal> {
    return this.#byId.values()
  }

  byId(id: Hex): Proposal | undefined {
    return this.#byId.get(id)
  }

  /** The finalized proposal of a number, else the latest one. */
  byNumber(number: number): Proposal | undefined {
    const proposals = this.#byNumber.get(number)
    return proposals?.find(isFinalized) ?? proposals?.at(-1)
  }

  ofNumber(number: number): readonly Proposal[] {
    return this.#byNumber.get(number) ?? []
  }

  /** The finalized proposal of a number. */
  finalized(number: number): Proposal | undefined {
    return this.#byNumber.get(number)?.find(isFinalized)
  }

  /** The proposal with this id; added where it is new, in the place of the oldest one. Undefined where it is older than those. */
  obtain(id: Hex, number: number, timeMs: number): Proposal | undefined {
    const known = this.#byId.get(id)
    if (known !== undefined) return known
    if (number <= this.#floor) return undefined
    const proposal: Proposal = {
      id,
      number,
      timeMs,
      blockTimeMs: undefined,
      endedMs: undefined,
      isCounted: false,
      gasLimit: undefined,
      tps: undefined,
      record: undefined,
      figures: undefined,
    }
    this.#byId.set(id, proposal)
    this.#byNumber.set(number, [...(this.#byNumber.get(number) ?? []), proposal])
    if (this.#byId.size > this.#max) {
      const oldest = this.first as Proposal
      this.#remove(oldest)
      this.raiseFloor(oldest.number)
    }
    return proposal
  }

  setFigures(proposal: Proposal, figures: ProposalFigures): void {
    if (proposal.figures !== undefined) this.#deps.onFigures(proposal.figures, false)
    proposal.figures = figures
    this.#deps.onFigures(figures, true)
  }

  /** The last proposals with figures, one per number, oldest first: those of the finalized proposal, else of the latest one. */
  executed(max: number): (Proposal & { readonly figures: ProposalFigures })[] {
    const chosen = new Map<number, Proposal & { readonly figures: ProposalFigures }>()
    for (const proposal of this.#byId.values()) {
      const before = chosen.get(proposal.number)
      if (hasFigures(proposal) && (before === undefined || !isFinalized(before))) chosen.set(proposal.number, proposal)
    }
    return [...chosen.values()].slice(-max)
  }

  clear(): void {
    while (this.first !== undefined) this.#remove(this.first)
    this.#floor = Number.NEGATIVE_INFINITY
  }

  #remove(proposal: Proposal): void {
    this.#byId.delete(proposal.id)
    const others = this.#byNumber.get(proposal.number)?.filter((one) => one !== proposal) ?? []
    if (others.length > 0) this.#byNumber.set(proposal.number, others)
    else this.#byNumber.delete(proposal.number)
    if (proposal.figures !== undefined) this.#deps.onFigures(proposal.figures, false)
  }
}

function isFinalized({ record }: Proposal): boolean {
  return record?.current_stage === 'Finalized' || record?.current_stage === 'Verified'
}

function hasFigures(proposal: Proposal): proposal is Proposal & { readonly figures: ProposalFigures } {
  return proposal.figures !== undefined
}

/** Every contract that the figures name. */
export function addressesOf({ contention, accesses }: ProposalFigures): Set<Hex> {
  return new Set([
    ...(accesses?.contracts.map(({ address }) => address) ?? []),
    ...contention.top_contended_contracts.map(({ address }) => address),
    ...contention.top_contended_slots.map(({ address }) => address),
    ...contention.contract_edges.flatMap(({ contract_a, contract_b }) => [contract_a, contract_b]),
  ])
}
