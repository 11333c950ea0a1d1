/** Who may produce which slot of one epoch. */
export type LeaderSchedule = {
  readonly firstSlot: number
  /** Exclusive. */
  readonly endSlot: number
  /** Base58 identity; undefined outside the epoch. */
  leaderOf(slot: number): string | undefined
}

/** A leader keeps this many slots in a row. */
export const LEADER_SPAN_SLOTS = 4

/**
 * From the answer of `getLeaderSchedule`: identities with the slots they lead, counted from the epoch's first slot. Slots nobody leads
 * and slots outside the epoch have no leader.
 */
export function createLeaderSchedule(options: {
  firstSlot: number
  slotsInEpoch: number
  slotsByLeader: Readonly<Record<string, readonly number[]>>
}): LeaderSchedule {
  const { firstSlot, slotsInEpoch, slotsByLeader } = options
  const identities = Object.keys(slotsByLeader)
  // 0 means nobody; a whole epoch of 432 000 slots takes 1.7 MB.
  const leaders = new Uint32Array(slotsInEpoch)
  for (const [i, identity] of identities.entries()) {
    for (const offset of slotsByLeader[identity] ?? []) if (offset < slotsInEpoch) leaders[offset] = i + 1
  }
  return {
    firstSlot,
    endSlot: firstSlot + slotsInEpoch,
    leaderOf: (slot) => identities[(leaders[slot - firstSlot] ?? 0) - 1],
  }
}

/** Epochs of equal length from slot 0 on, as on a chain without warm-up. */
export function epochOf(slot: number, slotsPerEpoch: number): { epoch: number; slotIndex: number; firstSlot: number } {
  const epoch = Math.floor(slot / slotsPerEpoch)
  return { epoch, slotIndex: slot - epoch * slotsPerEpoch, firstSlot: epoch * slotsPerEpoch }
}
