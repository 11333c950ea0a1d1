import type { TestContext } from 'node:test'
import fc from 'fast-check'
import { isFullRun, repeatsOf, seedOfRun } from '../../../src/core/test-seed.ts'

export { repeatsOf }

export const isFull = isFullRun()

export function seedOf(t: TestContext): number {
  const seed = seedOfRun()
  t.diagnostic(`SLUICE_SEED=${seed}`)
  return seed
}

const SEED_RANGE = /^(\d{1,10})-(\d{1,10})$/

/**
 * The seeds of a test that repeats something for each: so many from the seed of the run on, or those of SLUICE_SEEDS=FROM-TO, with which a long run is
 * split into parts, or one of them is repeated.
 */
export function seedsOf(t: TestContext, counts: { readonly short: number; readonly full: number }): number[] {
  const given = process.env['SLUICE_SEEDS']
  const [, from, to] = SEED_RANGE.exec(given ?? '') ?? []
  if (given !== undefined && !(Number(from) <= Number(to)))
    throw new Error(`SLUICE_SEEDS="${given}" is not a range of seeds: write 1-250`)
  const first = from === undefined ? seedOfRun() : Number(from)
  const count = to === undefined ? repeatsOf(counts) : Number(to) - first + 1
  t.diagnostic(`SLUICE_SEEDS=${first}-${first + count - 1}`)
  return Array.from({ length: count }, (_, at) => first + at)
}

/** Runs a property with a printed seed, `runs` times, or `full` times in the full check. */
export function checkProperty<T>(t: TestContext, property: fc.IProperty<T>, runs: number, full: number): void {
  fc.assert(property, { seed: seedOf(t), numRuns: repeatsOf({ short: runs, full }) })
}

/** A small seeded generator for loops too hot for fast-check: returns an integer in [0, below). */
export function createRandom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000) * below)
  }
}

export function randomBytesOf(random: (below: number) => number, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random(256))
}

/** A copy with one to three bytes changed, inserted, removed or cut off. */
export function mutate(bytes: Uint8Array, random: (below: number) => number): Uint8Array {
  let mutated = Uint8Array.from(bytes)
  for (let left = 1 + random(3); left > 0; left--) {
    // Lengths and counts are usually near the beginning; half of the changes are made there.
    const at = random(random(2) === 0 ? Math.min(mutated.length, 160) + 1 : mutated.length + 1)
    const rest = mutated.subarray(at)
    switch (random(6)) {
      case 0:
        mutated = Uint8Array.of(...mutated.subarray(0, at), random(256), ...rest)
        break
      case 1:
        mutated = Uint8Array.of(...mutated.subarray(0, at), ...rest.subarray(1))
        break
      case 2:
        mutated = mutated.slice(0, at)
        break
      case 3:
        if (at < mutated.length) mutated[at] = (mutated[at] as number) ^ (1 << random(8))
        break
      default:
        if (at < mutated.length) mutated[at] = random(4) === 0 ? random(256) : random(5)
    }
  }
  return mutated
}
