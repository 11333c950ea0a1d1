import type { Clock } from '../../core/clock.ts'
import type { IngestStatus } from './ingest.ts'

/** Blocks come every second; a restart of the database, or a gap that is fetched, takes seconds. */
const STALL_MINUTES = 3
/** Fewer slots than these may be skipped, or be the last ones of a chain that stands still. */
const BEHIND_SLOTS = 150

/**
 * Checks whether the tables stand still while the chain goes on, for instance before a block that cannot be decoded. Called every now and then;
 * `undefined` where nothing is to be written. Returns what is wrong, in the same words as long as it lasts.
 */
export function createStallCheck(
  clock: Pick<Clock, 'monotonicMs'>,
): (ingest: Pick<IngestStatus, 'headSlot' | 'tipSlot'> | undefined) => string | undefined {
  let lastSlot: number | undefined
  let sinceMs = clock.monotonicMs()

  return (ingest) => {
    if (ingest === undefined || ingest.headSlot !== lastSlot) {
      lastSlot = ingest?.headSlot
      sinceMs = clock.monotonicMs()
      return undefined
    }
    const isBehind = (ingest.tipSlot ?? 0) - (lastSlot ?? 0) > BEHIND_SLOTS
    if (!isBehind || clock.monotonicMs() - sinceMs < STALL_MINUTES * 60_000) return undefined
    const after = lastSlot === undefined ? '' : ` after slot ${lastSlot}`
    return `no block${after} was written for ${STALL_MINUTES} minutes, although the chain goes on; queries continue, \`sluice indexer status\` shows what is missing`
  }
}
