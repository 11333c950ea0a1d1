import { INDEX_MAX } from '../../solana/shred/shred.ts'
import { SLOT_MS_DEFAULT } from '../../solana/slot-pace.ts'
import type { ShredsOptions } from '../options.ts'

/** Limits of the relay that depend on the length of a slot. */
export type SlotLimits = {
  readonly shredsPerSlotMax: number
  /** Slots behind the newest that are still relayed, and slots that a packet may be ahead of it. */
  readonly window: { readonly backSlots: number; readonly aheadSlots: number }
}

type LimitOptions = Pick<ShredsOptions, 'shredsPerSlotMax' | 'window'>

/** The shortest slot of a public cluster (SIMD-0525). Memory is allotted for it, so the limits do not grow with shorter ones. */
const SLOT_MS_MIN = 200
/** The lengths of SIMD-0525 are 50 ms apart. */
const STEP_MS = 50
/** A learned length that exceeds a step by less is that step. */
const STEP_SHARE = 1.03

/** A configured number of shreds is never changed; the default shrinks in proportion to the slot. Slots of the configuration have 400 ms. */
export function slotLimitsOf(options: LimitOptions, slotMs: number): SlotLimits {
  const { backSlots, aheadSlots, backMs, aheadMs } = options.window
  const lengthMs = Math.max(SLOT_MS_MIN, slotMs)
  const inSlots = (slots: number | undefined, timeMs: number) =>
    Math.ceil((slots === undefined ? timeMs : slots * SLOT_MS_DEFAULT) / lengthMs)
  return {
    shredsPerSlotMax: options.shredsPerSlotMax ?? defaultShredsPerSlot(lengthMs),
    window: { backSlots: inSlots(backSlots, backMs), aheadSlots: inSlots(aheadSlots, aheadMs) },
  }
}

/** The largest limits that any length of a slot gives: what the relay allots memory for. */
export function slotLimitsMax(options: LimitOptions): SlotLimits {
  return { ...slotLimitsOf(options, SLOT_MS_MIN), shredsPerSlotMax: options.shredsPerSlotMax ?? INDEX_MAX }
}

/**
 * The limits of the engine of Decoded that depend on those of the relay. The newest slot of the engine may be as far ahead of the chain as the relay
 * lets a packet be: the slots up to there must stay open.
 */
export function decodedLimitsOf(options: LimitOptions & Pick<ShredsOptions, 'decoded'>): {
  readonly shredsPerSlotMax: number
  readonly slotsBehindMax: number
} {
  const { shredsPerSlotMax, window } = slotLimitsMax(options)
  return { shredsPerSlotMax, slotsBehindMax: Math.max(options.decoded.slotsBehindMax, window.aheadSlots) }
}

/** Rounded up to the next step, since a limit below that of the chain would drop valid shreds. */
function defaultShredsPerSlot(slotMs: number): number {
  const stepMs = Math.ceil(slotMs / STEP_SHARE / STEP_MS) * STEP_MS
  return Math.min(INDEX_MAX, (INDEX_MAX / SLOT_MS_DEFAULT) * Math.max(SLOT_MS_MIN, stepMs))
}
