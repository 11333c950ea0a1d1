import type { ContractFigures } from '../../contract/execution-history.ts'
import type { Hex } from '../../contract/stream-events.ts'
import type { Work } from '../../core/work.ts'
import type { History } from './history.ts'
import type { ProposalFigures } from './proposals.ts'

const SLOTS_MAX = 20
const NEIGHBOURS_MAX = 20
/** Blocks examined between two points at which the work can be interrupted. */
const STEP_BLOCKS = 32

/** What the last blocks and the newest TopAccesses have of a contract; undefined where neither has it. */
export function* contractFigures(
  history: Pick<History, 'proposals' | 'topAccesses'>,
  address: Hex,
  name: string | null,
): Work<ContractFigures | undefined> {
  const blocks = { number: [] as number[], accesses: [] as number[], total_slots: [] as number[] }
  const contended: number[] = []
  const slots = new Map<Hex, { slot: Hex; txn_count: number; blocks: number }>()
  const neighbours = new Map<Hex, number>()
  const executed = history.proposals.executed(Number.POSITIVE_INFINITY)
  let allAccesses = 0
  for (const [at, { number, figures }] of executed.entries()) {
    if (at % STEP_BLOCKS === 0) yield
    allAccesses += figures.accesses?.total_accesses ?? 0
    const found = contractOf(figures, address)
    if (found !== undefined) {
      blocks.number.push(number)
      blocks.accesses.push(found.total_accesses)
      blocks.total_slots.push(found.total_slots)
      contended.push(found.contended_slots)
    }
    for (const { address: owner, slot, txn_count } of figures.contention.top_contended_slots) {
      if (owner !== address) continue
      const before = slots.get(slot) ?? { slot, txn_count: 0, blocks: 0 }
      slots.set(slot, { slot, txn_count: before.txn_count + txn_count, blocks: before.blocks + 1 })
    }
    for (const { contract_a: a, contract_b: b, shared_txn_count } of figures.contention.contract_edges) {
      if (a !== address && b !== address) continue
      const other = a === address ? b : a
      neighbours.set(other, (neighbours.get(other) ?? 0) + shared_txn_count)
    }
  }
  const topAccesses = topAccessesOf(history.topAccesses, address)
  const isFound = blocks.number.length > 0 || slots.size > 0 || neighbours.size > 0
  if (!isFound && topAccesses === null) return undefined
  const [accesses, totalSlots, contendedSlots] = [blocks.accesses, blocks.total_slots, contended].map(sum) as Three
  const [first, last] = [executed[0], executed.at(-1)]
  return {
    address,
    name,
    window: {
      blocks: executed.length,
      from_block: first?.number ?? 0,
      to_block: last?.number ?? 0,
      from_ms: first?.timeMs ?? 0,
      to_ms: last?.timeMs ?? 0,
    },
    storage:
      blocks.number.length === 0
        ? null
        : {
            blocks: blocks.number.length,
            accesses,
            share: allAccesses === 0 ? 0 : Math.min(1, accesses / allAccesses),
            total_slots: totalSlots,
            contended_slots: contendedSlots,
            contention_score: totalSlots === 0 ? 0 : contendedSlots / totalSlots,
          },
    top_accesses: topAccesses,
    blocks: { ...blocks, contended_slots: contended },
    slots: [...slots.values()]
      .toSorted((a, b) => b.txn_count - a.txn_count || (a.slot < b.slot ? -1 : 1))
      .slice(0, SLOTS_MAX),
    neighbours: [...neighbours]
      .map(([other, shared_txn_count]) => ({ address: other, shared_txn_count }))
      .toSorted((a, b) => b.shared_txn_count - a.shared_txn_count || (a.address < b.address ? -1 : 1))
      .slice(0, NEIGHBOURS_MAX),
  }
}

type Three = [number, number, number]

/** Among the most accessed contracts of a block, else among the most contended ones. */
function contractOf({ accesses, contention }: ProposalFigures, address: Hex) {
  const isIt = (contract: { readonly address: Hex }): boolean => contract.address === address
  return accesses?.contracts.find(isIt) ?? contention.top_contended_contracts.find(isIt)
}

function topAccessesOf(report: History['topAccesses'], address: Hex): ContractFigures['top_accesses'] {
  const at = report?.data.account.findIndex(({ key }) => key === address) ?? -1
  const counted = report?.data.account[at]
  if (report === undefined || counted === undefined) return null
  const { count } = counted
  return { rank: at + 1, count, share: report.accountsSeen === 0 ? 0 : Math.min(1, count / report.accountsSeen) }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
