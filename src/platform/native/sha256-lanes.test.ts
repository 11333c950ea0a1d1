import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { createRandom, randomBytesOf, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { SHA256_DIGEST_BYTES, SHA256_INPUT_BYTES, SHA256_LANE_BYTES } from '../../core/sha256.ts'
import { loadSha256Lanes } from './sha256-lanes.ts'

test('each lane computes the digest of its own input, whatever the others have', async (t) => {
  const lanes = await loadSha256Lanes()
  if (process.arch !== 'x64') return assert.equal(lanes, undefined, 'exported on x64 only')
  assert.ok(lanes)
  const seed = seedOf(t)
  const random = createRandom(seed)
  for (let round = 0; round < repeatsOf({ short: 300, full: 20_000 }); round++) {
    const used: number = 1 + random(lanes.lanes)
    const expected: string[] = []
    for (let lane = 0; lane < used; lane++) {
      const length = random(4) === 0 ? random(SHA256_INPUT_BYTES + 1) : 960 + random(130)
      const from = lane * SHA256_LANE_BYTES
      lanes.inputs.set(randomBytesOf(random, length), from)
      lanes.lengths[lane] = length
      expected.push(hash('sha256', lanes.inputs.subarray(from, from + length), 'hex'))
    }
    lanes.run(used)
    const digests: string = Buffer.from(lanes.outputs.subarray(0, used * SHA256_DIGEST_BYTES)).toString('hex')
    assert.equal(digests, expected.join(''), `seed ${seed}, round ${round}`)
  }
})
