import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { repeatsOf, seedOf } from '../support/process/property.ts'
import { runSeeds } from './run-seeds.ts'
import { shareSeeds } from './share-seeds.ts'
import { WORLDS } from './worlds.ts'

const SEEDS = repeatsOf({ short: 40, full: 2000 })

describe('the simulator', () => {
  for (const world of WORLDS) {
    test(`${world.name} keeps its invariants on virtual time`, async (t) => {
      const seeds = Math.ceil(SEEDS / (world.oneIn ?? 1))
      const { seen, never } = await runSeeds(world, { firstSeed: seedOf(t), seeds })
      t.diagnostic(JSON.stringify(seen))
      assert.deepEqual(never, [])
    })
  }

  test('a seed in which the silence of a node was due after a time too short to pass', async () => {
    const world = WORLDS.find(({ name }) => name === 'pool')
    assert.ok(world)
    await runSeeds(world, { firstSeed: 175_874_805, seeds: 1 })
  })

  test('prints the command that runs only the failing seed', async () => {
    const world = {
      name: 'broken',
      events: ['runs'],
      run(seed: number) {
        if (seed === 9) throw new Error('an invariant was violated')
        return { runs: 1 }
      },
    }
    await assert.rejects(
      runSeeds(world, { firstSeed: 5, seeds: 10 }),
      /npm run sim -- --world broken --seed 9 --seeds 1 {3}fails: Error: an invariant was violated/,
    )
  })

  test('several threads count the same events as one', async () => {
    const [world] = WORLDS
    assert.ok(world)
    const runs = { firstSeed: 7, seeds: 5 }
    const alone = await runSeeds(world, runs)
    assert.ok(Object.values(alone.seen).some((count) => count > 0))
    assert.deepEqual(await shareSeeds(world.name, { ...runs, threads: 2 }), alone)
    await assert.rejects(shareSeeds('nowhere', { firstSeed: 7, seeds: 1, threads: 2 }), /unknown world nowhere/)
  })

  test('the same seed gives the same history', async () => {
    for (const world of WORLDS) assert.deepEqual(await world.run(7), await world.run(7), world.name)
  })
})
