import type { HealthOptions } from './options.ts'

/** What is known of a node's place in the chain. */
export type SlotHealth = {
  /** The newest processed slot it has shown; 0 while unknown. */
  readonly slot: number
  /** The newest slot it has received shreds of; 0 while unknown. */
  readonly shredSlot: number
  readonly isLagging: boolean
  readonly lagSlots: number
  /** Set while it lags. */
  readonly lagReason: 'behind-best' | 'behind-own-shreds' | undefined
  /** A slot that came with an answer or a notification. It can lag behind the node's head, so it only ever raises. */
  sawSlot(slot: number): boolean
  /** What the node says its head is; may take it back, as after a restart from a snapshot. */
  reportedHead(slot: number): boolean
  reportedShredSlot(slot: number): boolean
  /** Compares with the best of the pool; true when its place in the rotation changed. */
  assess(bestSlot: number): boolean
}

/** A head this far below the one known is a node that started over, not a fork or a balancer's other machine. */
const RESTART_SLOTS = 64

/** A node returns to the rotation only when it is well within the limit, so that one at the edge does not go in and out. */
const RETURN_SHARE = 0.5

export function createSlotHealth(options: Pick<HealthOptions, 'lagSlotsMax' | 'shredLagSlotsMax'>): SlotHealth {
  // Plain fields rather than getters: every call looks at them, for each node.
  const health: Writable<SlotHealth> = {
    slot: 0,
    shredSlot: 0,
    isLagging: false,
    lagSlots: 0,
    lagReason: undefined,
    sawSlot: raise,
    reportedHead(to) {
      if (to + RESTART_SLOTS >= health.slot) return raise(to)
      health.slot = to
      return true
    },
    reportedShredSlot(to) {
      const isNew = to !== health.shredSlot
      health.shredSlot = to
      return isNew
    },
    assess(bestSlot) {
      const { slot, shredSlot, isLagging: before } = health
      const share = before ? RETURN_SHARE : 1
      // Unknown is not unhealthy: a node that was not asked yet, or does not say, is in rotation.
      const lagSlots = slot === 0 ? 0 : Math.max(0, bestSlot - slot)
      const shredLag = slot === 0 || shredSlot === 0 ? 0 : shredSlot - slot
      health.lagSlots = lagSlots
      if (lagSlots > options.lagSlotsMax * share) health.lagReason = 'behind-best'
      else if (shredLag > options.shredLagSlotsMax * share) health.lagReason = 'behind-own-shreds'
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

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }
