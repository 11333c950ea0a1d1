/** Who leads which slot. This chain has one validator, so the schedule has one name; its epochs are those of the chain. */
export type LeaderSchedule = {
  leaderOf(slot: number): string
  epochOf(slot: number): number
}

export function createLeaderSchedule(options: {
  readonly identity: string
  readonly slotsPerEpoch: number
}): LeaderSchedule {
  return {
    leaderOf: () => options.identity,
    epochOf: (slot) => Math.floor(slot / options.slotsPerEpoch),
  }
}
