/** A small world on a clock of its own: what happens in it follows from the seed alone. */
export type SimWorld<Seen extends string = string> = {
  readonly name: string
  /** One in so many seeds is enough where a history is long. */
  readonly oneIn?: number
  /** What must have happened at least once over many seeds; without it the runs would show nothing. */
  readonly events: readonly Seen[]
  /** Runs one history and counts what happened in it. Throws where the world broke one of its promises. */
  run(seed: number): Record<Seen, number> | Promise<Record<Seen, number>>
}

export type SeedRuns = { readonly firstSeed: number; readonly seeds: number; onSeed?(done: number): void }

export type SeedOutcome = {
  readonly seeds: number
  readonly seen: Readonly<Record<string, number>>
  /** Events that never happened. */
  readonly never: readonly string[]
}

/** The error of the first seed that fails says how to run that one alone. */
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
