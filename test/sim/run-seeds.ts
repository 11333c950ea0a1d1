/** A small simulation on a virtual clock: its history is determined by the seed. */
export type SimWorld<Seen extends string = string> = {
  readonly name: string
  /** Long histories run only one seed in this many. */
  readonly oneIn?: number
  /** Events that must occur at least once over many seeds; otherwise the runs prove nothing. */
  readonly events: readonly Seen[]
  /** Runs one history and counts its events. Throws on a violated invariant. */
  run(seed: number): Record<Seen, number> | Promise<Record<Seen, number>>
}

export type SeedRuns = { readonly firstSeed: number; readonly seeds: number; onSeed?(done: number): void }

export type SeedOutcome = {
  readonly seeds: number
  readonly seen: Readonly<Record<string, number>>
  /** Events that never occurred. */
  readonly never: readonly string[]
}

/** The error of the first failing seed contains the command that runs only this seed. */
export async function runSeeds(world: SimWorld, { firstSeed, seeds, onSeed }: SeedRuns): Promise<SeedOutcome> {
  const seen: Record<string, number> = Object.fromEntries(world.events.map((event) => [event, 0]))
  for (let at = 0; at < seeds; at++) {
    const seed = firstSeed + at
    try {
      const counts = await world.run(seed)
      for (const event of world.events) seen[event] = (seen[event] ?? 0) + (counts[event] ?? 0)
    } catch (error) {
      throw new Error(`npm run sim -- --world ${world.name} --seed ${seed} --seeds 1   fails: ${String(error)}`, {
        cause: error,
      })
    }
    onSeed?.(at + 1)
  }
  return { seeds, seen, never: world.events.filter((event) => seen[event] === 0) }
}
