/** The long figures are run by `npm run test:full`. */
export function isFullRun(): boolean {
  return process.env['SLUICE_FULL'] === '1'
}

/** The seed of a test run: given, so that a run can be repeated, or the clock's. Whoever takes it prints it. */
export function seedOfRun(): number {
  const given = process.env['SLUICE_SEED']
  return given === undefined ? Date.now() % 2 ** 31 : Number(given)
}

/** Settings of a property test, with a seed that is printed. */
export function seedFor(name: string, runs = 200): { seed: number; numRuns: number } {
  const seed = seedOfRun()
  process.stdout.write(`# ${name}: SLUICE_SEED=${seed}\n`)
  return { seed, numRuns: isFullRun() ? runs * 50 : runs }
}
