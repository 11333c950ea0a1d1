/** Whether the long runs are on: `npm run test:full` sets it. */
export function isFullRun(): boolean {
  return process.env['SLUICE_FULL'] === '1'
}

/** How often a test repeats something: `full` times in the long form of this file, a share of that when all files run in their long form, or `short` times. */
export function repeatsOf({ short, full }: { readonly short: number; readonly full: number }): number {
  return isFullRun() ? Math.max(short, Math.ceil(full * Number(process.env['SLUICE_FULL_SHARE'] ?? 1))) : short
}

/** The seed of a test run: SLUICE_SEED, to repeat a run, or the time. Callers print it. */
export function seedOfRun(): number {
  const given = process.env['SLUICE_SEED']
  return given === undefined ? Date.now() % 2 ** 31 : Number(given)
}

/** Settings of a property test; prints the seed. */
export function seedFor(name: string, runs = 200): { seed: number; numRuns: number } {
  const seed = seedOfRun()
  process.stdout.write(`# ${name}: SLUICE_SEED=${seed}\n`)
  return { seed, numRuns: repeatsOf({ short: runs, full: runs * 50 }) }
}
