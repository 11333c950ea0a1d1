import type { BlockTouches } from './block-accesses.ts'
import { keepFirst } from './key-order.ts'

/** Two contracts, by rank in address order with `a` before `b`, and the transactions that touched the storage of both. */
export type Edge = { a: number; b: number; txns: number }

/**
 * The edges with the highest counts; ties are broken by address. `byRank` holds the touched contracts in address order. Contracts are
 * processed as `a` in that order, so an edge of a later `a` never displaces an equal one found before, and a contract with no more
 * transactions than the lowest edge kept is skipped. This avoids quadratic cost for a block whose transactions touch thousands of
 * contracts each.
 */
export function findTopEdges(touches: BlockTouches, byRank: Uint32Array, length: number): Edge[] {
  const { starts } = touches.contractsOfTxn
  const { ranks, txnStarts, txnsOfRank } = invert(touches, byRank)
  // For each transaction the index of its next contract; those before it are done as `a`.
  const next = starts.slice(0, -1)
  const shared = new Uint32Array(byRank.length)
  const partners = new Uint32Array(byRank.length)
  const top: Edge[] = []
  for (let a = 0; a < byRank.length; a++) {
    const from = txnStarts[a] as number
    const to = txnStarts[a + 1] as number
    const isTooSmall = top.length === length && to - from <= (top.at(-1) as Edge).txns
    let found = 0
    for (let at = from; at < to; at++) {
      const txn = txnsOfRank[at] as number
      next[txn] = (next[txn] as number) + 1
      if (isTooSmall) continue
      const end = starts[txn + 1] as number
      for (let position = next[txn] as number; position < end; position++) {
        const b = ranks[position] as number
        if (shared[b] === 0) partners[found++] = b
        shared[b] = (shared[b] as number) + 1
      }
    }
    for (let at = 0; at < found; at++) {
      const b = partners[at] as number
      const txns = shared[b] as number
      shared[b] = 0
      if (top.length < length || mayEnter(top[length - 1] as Edge, a, b, txns)) {
        keepFirst(top, length, { a, b, txns }, comesFirst)
      }
    }
  }
  return top
}

/** The ranks of each transaction's contracts in order, and the transactions of each rank. */
function invert({ contractsOfTxn, contractTxns }: BlockTouches, byRank: Uint32Array) {
  const { starts, contracts } = contractsOfTxn
  const rankOf = new Uint32Array(contractTxns.length)
  const txnStarts = new Uint32Array(byRank.length + 1)
  for (let rank = 0; rank < byRank.length; rank++) {
    const contract = byRank[rank] as number
    rankOf[contract] = rank
    txnStarts[rank + 1] = (txnStarts[rank] as number) + (contractTxns[contract] as number)
  }
  const next = txnStarts.slice(0, -1)
  const txnsOfRank = new Uint32Array(txnStarts.at(-1) as number)
  const ranks = new Uint32Array(txnsOfRank.length)
  for (let txn = 0; txn + 1 < starts.length; txn++) {
    const from = starts[txn] as number
    const to = starts[txn + 1] as number
    for (let at = from; at < to; at++) {
      const rank = rankOf[contracts[at] as number] as number
      ranks[at] = rank
      const position = next[rank] as number
      next[rank] = position + 1
      txnsOfRank[position] = txn
    }
    sortPart(ranks, from, to)
  }
  return { ranks, txnStarts, txnsOfRank }
}

/** Most transactions touch few contracts, for which insertion sort is faster than a call of `sort`. */
function sortPart(ranks: Uint32Array, from: number, to: number): void {
  if (to - from > SHORT) {
    ranks.subarray(from, to).sort()
    return
  }
  for (let at = from + 1; at < to; at++) {
    const rank = ranks[at] as number
    let position = at
    while (position > from && (ranks[position - 1] as number) > rank) {
      ranks[position] = ranks[position - 1] as number
      position -= 1
    }
    ranks[position] = rank
  }
}

const SHORT = 16

/** Whether an edge comes before the last one kept; called for each edge of a block, so without allocating the edge. */
function mayEnter(last: Edge, a: number, b: number, txns: number): boolean {
  return txns > last.txns || (txns === last.txns && a === last.a && b < last.b)
}

function comesFirst(x: Edge, y: Edge): boolean {
  if (x.txns !== y.txns) return x.txns > y.txns
  return x.a !== y.a ? x.a < y.a : x.b < y.b
}
