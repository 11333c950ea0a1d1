import { ServiceError } from '../core/error.ts'
import { CONSENSUS_NAMES, type Consensus, SLOT_MS_MAX, SLOT_MS_MIN } from './options.ts'

/** What can be changed on a running chain; undefined members stay as they are. */
export type ChainChange = { readonly slotMs?: number; readonly consensus?: Consensus }

/** Throws when the change is empty or a value is not allowed. */
export function parseChainChange(input: unknown): ChainChange {
  const { slotMs, consensus } = (input ?? {}) as { readonly slotMs?: unknown; readonly consensus?: unknown }
  if (slotMs === undefined && consensus === undefined)
    throw new ServiceError('invalid-value', 'nothing to change', { fix: 'Give --slot-ms, --consensus or both.' })
  return {
    ...(slotMs === undefined ? {} : { slotMs: parseSlotMs(slotMs) }),
    ...(consensus === undefined ? {} : { consensus: parseConsensus(consensus) }),
  }
}

function parseSlotMs(value: unknown): number {
  if (Number.isInteger(value) && Number(value) >= SLOT_MS_MIN && Number(value) <= SLOT_MS_MAX) return Number(value)
  throw new ServiceError(
    'invalid-value',
    `${JSON.stringify(value)} is not a slot length: give a whole number from ${SLOT_MS_MIN} to ${SLOT_MS_MAX}`,
  )
}

function parseConsensus(value: unknown): Consensus {
  const found = CONSENSUS_NAMES.find((name) => name === value)
  if (found !== undefined) return found
  throw new ServiceError(
    'invalid-value',
    `${JSON.stringify(value)} is not a consensus: give ${CONSENSUS_NAMES.join(' or ')}`,
  )
}
