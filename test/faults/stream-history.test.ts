import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hubWorld } from '../sim/hub-world.ts'
import { runSeeds } from '../sim/run-seeds.ts'
import { repeatsOf, seedOf } from '../support/process/property.ts'

describe('the history of the stream', () => {
  test('over random histories no frame is repeated, no gap is hidden, and a resumed client gets the frames of an uninterrupted one', async (t) => {
    const outcome = await runSeeds(hubWorld, { firstSeed: seedOf(t), seeds: repeatsOf({ short: 60, full: 1000 }) })
    t.diagnostic(JSON.stringify(outcome.seen))
    assert.deepEqual(outcome.never, [], 'every kind of fault occurred in the runs')
  })
})
