/** Settings for a property test: the seed comes from `SLUICE_SEED` or the clock and is printed, so a run can be repeated. */
export function seedFor(name: string, runs = 200): { seed: number; numRuns: number } {
  const { SLUICE_SEED, SLUICE_FULL } = process.env
  const seed = SLUICE_SEED === undefined ? Date.now() % 2 ** 31 : Number(SLUICE_SEED)
  process.stdout.write(`# ${name}: SLUICE_SEED=${seed}\n`)
  return { seed, numRuns: SLUICE_FULL === '1' ? runs * 50 : runs }
}
