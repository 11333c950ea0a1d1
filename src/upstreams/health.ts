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
  toldHead(slot: number): boolean
  toldShredSlot(slot: number): boolean
  /** Compares with the best of the pool; true when its place in the rotation changed. */
  assess(bestSlot: number): boolean
}

/** A head this far below the one known is a node that started over, not a fork or a balancer's other machine. */
const RESTART_SLOTS = 64

/** A node returns to the rotation only when it is well within the limit, so that one at the edge does not go in and out. */
const RETURN_SHARE = 0.5

export function createSlotHealth(options: Pick<HealthOptions, 'lagSlotsMax' | 'shredLagSlotsMax'>): SlotHealth {
  let slot = 0
  let shredSlot = 0
  let lagSlots = 0
  let lagReason: SlotHealth['lagReason']

  function raise(to: number): boolean {
    if (to <= slot) return false
    slot = to
    return true
  }

  return {
    get slot() {
      return slot
    },
    get shredSlot() {
      return shredSlot
    },
    get isLagging() {
      return lagReason !== undefined
    },
    get lagSlots() {
      return lagSlots
    },
    get lagReason() {
      return lagReason
    },
    sawSlot: raise,
    toldHead(to) {
      if (to + RESTART_SLOTS >= slot) return raise(to)
      slot = to
      return true
    },
    toldShredSlot(to) {
      const isNew = to !== shredSlot
      shredSlot = to
      return isNew
    },
    assess(bestSlot) {
      const before = lagReason
      const share = before === undefined ? 1 : RETURN_SHARE
      // Unknown is not unhealthy: a node that was not asked yet, or does not say, is in rotation.
      lagSlots = slot === 0 ? 0 : Math.max(0, bestSlot - slot)
      const shredLag = slot === 0 || shredSlot === 0 ? 0 : shredSlot - slot
      if (lagSlots > options.lagSlotsMax * share) lagReason = 'behind-best'
      else if (shredLag > options.shredLagSlotsMax * share) lagReason = 'behind-own-shreds'
      else lagReason = undefined
      return (before === undefined) !== (lagReason === undefined)
    },
  }
}
