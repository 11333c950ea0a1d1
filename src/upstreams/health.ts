import type { Writable } from '../core/records.ts'
import { SLOT_MS_DEFAULT } from '../solana/slot-pace.ts'
import type { LagLimits } from './lag-limits.ts'

/** What is known of a node's slot. */
export type SlotHealth = {
  /** The newest processed slot seen; 0 while unknown. */
  readonly slot: number
  /** The newest slot it has received shreds of; 0 while unknown. */
  readonly shredSlot: number
  readonly isLagging: boolean
  readonly lagSlots: number
  readonly lagMs: number
  /** It has received shreds of slots that it has not processed: its slots do not pass at the speed of the chain. */
  readonly isBehindShreds: boolean
  /** Set while it lags. */
  readonly lagReason: 'behind-best' | 'behind-own-shreds' | 'ahead-of-all' | 'no-slot' | undefined
  /** A slot from a response or a notification. It can lag behind the node's newest slot, so it only raises. */
  recordSlot(slot: number): boolean
  /** The node's newest slot by its own report; may go back, as after a restart from a snapshot. */
  recordReportedSlot(slot: number): boolean
  recordShredSlot(slot: number): boolean
  /** It has responded to the question for its slot, and named none. True when that is new. */
  recordNoSlot(): boolean
  /** Compares with the best slot of the pool; `isAhead` where this node's slot is far above it. True when `isLagging` changed. */
  assess(bestSlot: number, isAhead?: boolean): boolean
}

/** A slot this far below the known one means a restarted node, not a fork or another machine behind a load balancer. */
const RESTART_MS = 25_600

/** Hysteresis: a lagging node returns to rotation only when it is within this share of the limit. */
const RETURN_SHARE = 0.5

/** The slot of a node that lags for such a reason is no measure. */
export const UNKNOWN_LAG: readonly SlotHealth['lagReason'][] = ['ahead-of-all', 'no-slot']

export function createSlotHealth(limits: LagLimits, slotMs: () => number = () => SLOT_MS_DEFAULT): SlotHealth {
  let namesNone = false
  // Fields, not getters: they are read for each node at every call.
  const health: Writable<SlotHealth> = {
    slot: 0,
    shredSlot: 0,
    isLagging: false,
    lagSlots: 0,
    lagMs: 0,
    isBehindShreds: false,
    lagReason: undefined,
    recordSlot: raise,
    recordReportedSlot(to) {
      if ((health.slot - to) * slotMs() <= RESTART_MS) return raise(to)
      health.slot = to
      return true
    },
    recordShredSlot(to) {
      const isNew = to !== health.shredSlot
      health.shredSlot = to
      return isNew
    },
    recordNoSlot() {
      const isNew = !namesNone
      namesNone = true
      return isNew
    },
    assess(bestSlot, isAhead = false) {
      const { slot, shredSlot, isLagging: before } = health
      const share = before ? RETURN_SHARE : 1
      // A node whose slot is unknown is in rotation: it may not have been asked yet.
      const lagSlots = slot === 0 ? 0 : Math.max(0, bestSlot - slot)
      const shredLag = slot === 0 || shredSlot === 0 ? 0 : shredSlot - slot
      const lengthMs = slotMs()
      health.lagSlots = lagSlots
      health.lagMs = lagSlots * lengthMs
      health.isBehindShreds = shredLag * lengthMs > limits.shredLagMsMax * share
      if (isAhead) health.lagReason = 'ahead-of-all'
      else if (slot === 0 && namesNone && bestSlot > 0) health.lagReason = 'no-slot'
      else if (health.lagMs > limits.lagMsMax * share) health.lagReason = 'behind-best'
      else if (health.isBehindShreds) health.lagReason = 'behind-own-shreds'
      else health.lagReason = undefined
      health.isLagging = health.lagReason !== undefined
      return health.isLagging !== before
    },
  }

  function raise(to: number): boolean {
    if (to <= health.slot) return false
    health.slot = to
    return true
  }

  return health
}
