import { type DataShred, isDataComplete, isLastInSlot, payloadOf } from './shred.ts'

/** A run of data shreds that makes one entry batch: indexes [from, to). */
export type Batch = { readonly from: number; readonly to: number; readonly bytes: Uint8Array }

/**
 * The entry batches of a slot's data shreds, which must be in index order without duplicates. A batch begins after a DATA_COMPLETE shred
 * (or at index 0) and is returned only when none of its shreds is missing.
 */
export function joinBatches(shreds: readonly DataShred[]): Batch[] {
  const batches: Batch[] = []
  let run: DataShred[] = []
  let isAnchored = false
  let next = 0
  for (const shred of shreds) {
    if (shred.index !== next) {
      run = []
      isAnchored = false
    }
    if (shred.index === 0) isAnchored = true
    next = shred.index + 1
    run.push(shred)
    if (!isDataComplete(shred)) continue
    if (isAnchored) batches.push({ from: (run[0] as DataShred).index, to: next, bytes: joinPayloads(run) })
    run = []
    isAnchored = true
  }
  return batches
}

/** Whether the shreds, in index order without duplicates, are a complete slot. */
export function isCompleteSlot(shreds: readonly DataShred[]): boolean {
  const last = shreds.at(-1)
  return last !== undefined && isLastInSlot(last) && last.index === shreds.length - 1
}

function joinPayloads(shreds: readonly DataShred[]): Uint8Array {
  const payloads = shreds.map(payloadOf)
  const bytes = new Uint8Array(payloads.reduce((sum, payload) => sum + payload.length, 0))
  let at = 0
  for (const payload of payloads) {
    bytes.set(payload, at)
    at += payload.length
  }
  return bytes
}
