import type { BlockAccesses, GroupedAccesses } from './block-accesses.ts'

/** How far a block could run in parallel, computed from the slots its transactions read and wrote. */
export type ConflictWaves = {
  /** Number of sequential waves. */
  depth: number
  /** Transactions in each of the first waves. */
  waves: number[]
  /** Transactions / depth. */
  factor: number
  /** round(100 × (1 − 1 / factor)). */
  score: number
  /** Share of transactions that must wait for an earlier one. These are not retries, which the ring does not record. */
  conflict_share: number
}

/** Maximum number of waves listed; a block may have as many as transactions. */
const WAVES_MAX = 64

/**
 * A transaction belongs to the wave after the last one in which an earlier transaction **wrote** a slot that it accesses. The highest
 * wave of the writers is stored per slot, so the time is linear in the accesses.
 */
export function computeWaves(block: BlockAccesses, { starts, slots }: GroupedAccesses): ConflictWaves {
  const writerWave = new Uint32Array(block.slots.size)
  const txnsInWave = new Uint32Array(block.txns + 2)
  let depth = 0
  for (let txn = 0; txn < block.txns; txn++) {
    const from = starts[txn] as number
    const to = starts[txn + 1] as number
    let wave = 1
    for (let at = from; at < to; at++) wave = Math.max(wave, (writerWave[(slots[at] as number) >>> 1] as number) + 1)
    for (let at = from; at < to; at++) {
      const slot = (slots[at] as number) >>> 1
      if (((slots[at] as number) & 1) === 1) writerWave[slot] = Math.max(writerWave[slot] as number, wave)
    }
    txnsInWave[wave] = (txnsInWave[wave] as number) + 1
    depth = Math.max(depth, wave)
  }
  if (depth === 0) return { depth: 0, waves: [], factor: 0, score: 0, conflict_share: 0 }
  const factor = block.txns / depth
  return {
    depth,
    waves: [...txnsInWave.subarray(1, 1 + Math.min(depth, WAVES_MAX))],
    factor,
    score: Math.round(100 * (1 - 1 / factor)),
    conflict_share: (block.txns - (txnsInWave[1] as number)) / block.txns,
  }
}
