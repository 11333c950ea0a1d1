import type { ContentionData } from '../../contract/stream-events.ts'
import { isAddress } from '../../ui/safe-text.ts'

export type ContractNode = {
  readonly address: string
  /** Share of touched slots that are contended, over the window: 0 to 1. */
  readonly score: number
  readonly contendedSlots: number
  readonly accesses: number
  /** Blocks of the window that list it as contended. */
  readonly blocks: number
}
export type ContractLink = { readonly a: string; readonly b: string; readonly sharedTxns: number }
export type ContractGraph = { readonly nodes: readonly ContractNode[]; readonly links: readonly ContractLink[] }

const NODES_MAX = 40
const LINKS_MAX = 80

type Sum = { contended: number; total: number; accesses: number; blocks: number; shared: number }

/**
 * Contracts that transactions touched together in these blocks, the most accessed first. Only a valid address becomes a node: the graph
 * library stores nodes as object properties, where a name like `__proto__` is unsafe.
 */
export function computeContractGraph(contentions: readonly ContentionData[]): ContractGraph {
  const sums = new Map<string, Sum>()
  const shared = new Map<string, ContractLink>()
  const sumOf = (address: string): Sum => {
    const known = sums.get(address)
    if (known !== undefined) return known
    const fresh = { contended: 0, total: 0, accesses: 0, blocks: 0, shared: 0 }
    sums.set(address, fresh)
    return fresh
  }
  for (const { top_contended_contracts, contract_edges } of contentions) {
    for (const contract of top_contended_contracts) {
      if (!isAddress(contract.address)) continue
      const sum = sumOf(contract.address)
      sum.contended += contract.contended_slots
      sum.total += contract.total_slots
      sum.accesses += contract.total_accesses
      sum.blocks += 1
    }
    for (const { contract_a: a, contract_b: b, shared_txn_count } of contract_edges) {
      if (!isAddress(a) || !isAddress(b)) continue
      sumOf(a).shared += shared_txn_count
      sumOf(b).shared += shared_txn_count
      const key = `${a} ${b}`
      shared.set(key, { a, b, sharedTxns: (shared.get(key)?.sharedTxns ?? 0) + shared_txn_count })
    }
  }
  const nodes = [...sums]
    .toSorted(([addressA, a], [addressB, b]) => weight(b) - weight(a) || (addressA < addressB ? -1 : 1))
    .slice(0, NODES_MAX)
    .map(([address, { contended, total, accesses, blocks }]) => ({
      address,
      score: total === 0 ? 0 : contended / total,
      contendedSlots: contended,
      accesses,
      blocks,
    }))
  const kept = new Set(nodes.map(({ address }) => address))
  const links = [...shared.values()]
    .filter(({ a, b }) => kept.has(a) && kept.has(b))
    .toSorted((a, b) => b.sharedTxns - a.sharedTxns || (a.a + a.b < b.a + b.b ? -1 : 1))
    .slice(0, LINKS_MAX)
  return { nodes, links }
}

function weight({ accesses, shared }: Sum): number {
  return accesses + shared
}
