import type { HistoryContention } from '../../contract/execution-history.ts'
import type { Hex } from '../../contract/stream-events.ts'
import { keepFirst } from '../../evm/fold/key-order.ts'
import type { Proposals } from './proposals.ts'

/** Blocks whose lists are in the document. */
const BLOCKS_MAX = 300
/** Slots and contracts in the document. The page shows fewer; the hashes of all would not compress. */
const SLOTS_MAX = 64
const CONTRACTS_MAX = 64

/** Something that blocks list, with its sum over them. `rank` is its index in the document; undefined where it is not there. */
type Weighed = { readonly address: Hex; readonly slot: Hex; weight: number; rank: number | undefined }

/** Slots by address and slot: joining the two texts to one key would take longer than everything else. */
class Weights {
  readonly #all: Weighed[] = []
  readonly #byAddress = new Map<Hex, Map<Hex, Weighed>>()

  add(address: Hex, slot: Hex, weight: number): void {
    const known = this.find(address, slot)
    if (known !== undefined) {
      known.weight += weight
      return
    }
    const added: Weighed = { address, slot, weight, rank: undefined }
    this.#all.push(added)
    const ofAddress = this.#byAddress.get(address)
    if (ofAddress === undefined) this.#byAddress.set(address, new Map([[slot, added]]))
    else ofAddress.set(slot, added)
  }

  find(address: Hex, slot: Hex): Weighed | undefined {
    return this.#byAddress.get(address)?.get(slot)
  }

  /** The heaviest, which get their ranks. */
  rank(max: number): Weighed[] {
    const top: Weighed[] = []
    for (const one of this.#all) keepFirst(top, max, one, comesFirst)
    for (const [rank, one] of top.entries()) one.rank = rank
    return top
  }
}

/** Ties by key, so that the order is the same from document to document. */
function comesFirst(a: Weighed, b: Weighed): boolean {
  if (a.weight !== b.weight) return a.weight > b.weight
  return a.address === b.address ? a.slot < b.slot : a.address < b.address
}

const NO_SLOT: Hex = '0x'

/** The lists of the last blocks, with an index instead of each slot and address. */
export function contentionColumns(proposals: Pick<Proposals, 'executed'>): HistoryContention {
  const blocks = proposals.executed(BLOCKS_MAX)
  const slots = new Weights()
  const contracts = new Weights()
  for (const { figures } of blocks) {
    const { top_contended_slots, top_contended_contracts, contract_edges } = figures.contention
    for (const { address, slot, txn_count } of top_contended_slots) slots.add(address, slot, txn_count)
    for (const { address, total_accesses } of top_contended_contracts) contracts.add(address, NO_SLOT, total_accesses)
    for (const { contract_a, contract_b, shared_txn_count } of contract_edges) {
      contracts.add(contract_a, NO_SLOT, shared_txn_count)
      contracts.add(contract_b, NO_SLOT, shared_txn_count)
    }
  }
  const rankedSlots = slots.rank(SLOTS_MAX)
  const rankedContracts = contracts.rank(CONTRACTS_MAX)
  const rankOf = (address: Hex): number | undefined => contracts.find(address, NO_SLOT)?.rank
  return {
    slots: rankedSlots.map(({ address, slot }) => [address, slot]),
    contracts: rankedContracts.map(({ address }) => address),
    number: blocks.map(({ number }) => number),
    id: blocks.map(({ id }) => id),
    top_contended_slots: blocks.map(({ figures }) =>
      figures.contention.top_contended_slots.flatMap(({ address, slot, txn_count, access_count }) => {
        const rank = slots.find(address, slot)?.rank
        return rank === undefined ? [] : [rank, txn_count, access_count]
      }),
    ),
    top_contended_contracts: blocks.map(({ figures }) =>
      figures.contention.top_contended_contracts.flatMap(({ address, ...sums }) => {
        const rank = rankOf(address)
        return rank === undefined ? [] : [rank, sums.total_slots, sums.contended_slots, sums.total_accesses]
      }),
    ),
    contract_edges: blocks.map(({ figures }) =>
      figures.contention.contract_edges.flatMap(({ contract_a, contract_b, shared_txn_count }) => {
        const [a, b] = [rankOf(contract_a), rankOf(contract_b)]
        return a === undefined || b === undefined ? [] : [a, b, shared_txn_count]
      }),
    ),
  }
}
