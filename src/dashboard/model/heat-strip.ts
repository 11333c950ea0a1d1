import type { ContentionData } from '../../contract/stream-events.ts'

export type HeatRow = { readonly address: string; readonly slot: string; readonly txnsTotal: number }

/** Columns are blocks, rows the hottest slots of the window; a cell is the number of transactions on a slot in a block. */
export type HeatStrip = {
  readonly blocks: readonly number[]
  readonly rows: readonly HeatRow[]
  /** One row after the other; 0 where a block does not list the slot. */
  readonly cells: Uint16Array
  readonly max: number
}

export const HEAT_ROWS_MAX = 12
const CELL_MAX = 65_535

export function computeHeatStrip(contentions: readonly ContentionData[]): HeatStrip {
  const totals = new Map<string, { row: HeatRow; txns: number }>()
  for (const { top_contended_slots } of contentions) {
    for (const { address, slot, txn_count } of top_contended_slots) {
      const key = `${address} ${slot}`
      const seen = totals.get(key)
      if (seen === undefined) totals.set(key, { row: { address, slot, txnsTotal: 0 }, txns: txn_count })
      else seen.txns += txn_count
    }
  }
  // Ties by key, so that rows keep their order from block to block.
  const top = [...totals]
    .toSorted(([keyA, a], [keyB, b]) => b.txns - a.txns || (keyA < keyB ? -1 : 1))
    .slice(0, HEAT_ROWS_MAX)
  const rowOf = new Map(top.map(([key], at) => [key, at]))
  const cells = new Uint16Array(top.length * contentions.length)
  let max = 0
  for (const [column, { top_contended_slots }] of contentions.entries()) {
    for (const { address, slot, txn_count } of top_contended_slots) {
      const row = rowOf.get(`${address} ${slot}`)
      if (row === undefined) continue
      cells[row * contentions.length + column] = Math.min(CELL_MAX, txn_count)
      max = Math.max(max, txn_count)
    }
  }
  return {
    blocks: contentions.map(({ block_number }) => block_number),
    rows: top.map(([, { row, txns }]) => ({ ...row, txnsTotal: txns })),
    cells,
    max,
  }
}
