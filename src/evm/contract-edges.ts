import type { BlockTouches } from './block-touches.ts'
import { keepFirst } from './top-list.ts'

/** Two contracts, by rank in address order with `a` before `b`, and the transactions that touched the storage of both. */
export type Edge = { a: number; b: number; txns: number }

/**
 * The edges with the highest counts; of equal ones those that come first in address order. `rankOf` gives each contract its place in
 * that order. Contracts are taken as `a` in that order, so an edge found later never displaces an equal one found before; and a
 * contract of no more transactions than the lowest edge kept cannot contribute any more. This keeps a block whose transactions touch
 * thousands of contracts each from costing the square of that number.
 */
export function findTopEdges(touches: BlockTouches, rankOf: Uint32Array, length: number): Edge[] {
  const { byRank, txnStarts, txnsOfRank } = invert(touches, rankOf)
  const { starts, contracts: ranks } = byRank
  // Where in the list of a transaction its next contract stands; everything before has had its turn as `a`.
  const next = starts.slice(0, -1)
  const shared = new Uint32Array(rankOf.length)
  const partners = new Uint32Array(rankOf.length)
  const top: Edge[] = []
  for (let a = 0; a < rankOf.length; a++) {
    const from = txnStarts[a] as number
    const to = txnStarts[a + 1] as number
    const isHopeless = top.length === length && to - from <= (top.at(-1) as Edge).txns
    let found = 0
    for (let at = from; at < to; at++) {
      const txn = txnsOfRank[at] as number
      next[txn] = (next[txn] as number) + 1
      if (isHopeless) continue
      const end = starts[txn + 1] as number
      for (let place = next[txn] as number; place < end; place++) {
        const b = ranks[place] as number
        if (shared[b] === 0) partners[found++] = b
        shared[b] = (shared[b] as number) + 1
      }
    }
    for (let at = 0; at < found; at++) {
      const b = partners[at] as number
      keepFirst(top, length, { a, b, txns: shared[b] as number }, comesFirst)
      shared[b] = 0
    }
  }
  return top
}

/** Contracts of each transaction in rank order, and the transactions of each rank. */
function invert({ contractsOfTxn, contractTxns }: BlockTouches, rankOf: Uint32Array) {
  const { starts, contracts } = contractsOfTxn
  const txnStarts = new Uint32Array(rankOf.length + 1)
  for (let contract = 0; contract < rankOf.length; contract++) {
    txnStarts[(rankOf[contract] as number) + 1] = contractTxns[contract] as number
  }
  for (let rank = 0; rank < rankOf.length; rank++)
    txnStarts[rank + 1] = (txnStarts[rank + 1] as number) + (txnStarts[rank] as number)
  const next = txnStarts.slice(0, -1)
  const txnsOfRank = new Uint32Array(txnStarts.at(-1) as number)
  const ranks = new Uint32Array(txnsOfRank.length)
  for (let txn = 0; txn + 1 < starts.length; txn++) {
    const from = starts[txn] as number
    const to = starts[txn + 1] as number
    for (let at = from; at < to; at++) {
      const rank = rankOf[contracts[at] as number] as number
      ranks[at] = rank
      const place = next[rank] as number
      next[rank] = place + 1
      txnsOfRank[place] = txn
    }
    ranks.subarray(from, to).sort()
  }
  return { byRank: { starts, contracts: ranks }, txnStarts, txnsOfRank }
}

function comesFirst(x: Edge, y: Edge): boolean {
  if (x.txns !== y.txns) return x.txns > y.txns
  return x.a !== y.a ? x.a < y.a : x.b < y.b
}
