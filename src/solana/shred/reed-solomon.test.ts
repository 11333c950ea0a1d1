import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, randomBytesOf, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { combine, encodingMatrix, gfMultiply } from '../../../test/support/shreds/decoder.ts'
import { divide, multiply } from './galois-field.ts'
import { encodeShards, recoverShards } from './reed-solomon.ts'

test('multiplication agrees with a bitwise implementation, and division inverts it', () => {
  for (let a = 0; a < 256; a++) {
    for (let b = 0; b < 256; b++) {
      assert.equal(multiply(a, b), gfMultiply(a, b))
      if (b > 0) assert.equal(divide(multiply(a, b), b), a)
    }
  }
})

test('coding shards equal those of the Vandermonde matrix, for lengths around word boundaries', (t) => {
  const random = createRandom(seedOf(t))
  const matrix = encodingMatrix()
  for (const length of [1, 2, 3, 4, 5, 987, 923]) {
    const data = Array.from({ length: 32 }, () => randomBytesOf(random, length))
    const all = combine(matrix, data).map((shard) => Uint8Array.from(shard))
    assert.deepEqual(all.slice(0, 32), data)
    assert.deepEqual(encodeShards(data), all.slice(32))
  }
})

test('recovers all shards from any 32 of 64', (t) => {
  const random = createRandom(seedOf(t))
  const runs = repeatsOf({ short: 60, full: 2000 })
  for (let run = 0; run < runs; run++) {
    const length = 1 + random(40)
    const data = Array.from({ length: 32 }, () => randomBytesOf(random, length))
    const all = [...data, ...encodeShards(data)]
    const lost = shuffled(64, random).slice(0, 1 + random(32))
    const given = all.map((shard, i) => (lost.includes(i) ? undefined : shard))
    assert.deepEqual(recoverShards(given), all)
  }
  const data = Array.from({ length: 32 }, () => randomBytesOf(random, 9))
  const code = encodeShards(data)
  assert.deepEqual(recoverShards([...data.map(() => undefined), ...code]), [...data, ...code])
  assert.deepEqual(recoverShards(data), [...data, ...code])
})

test('recovers nothing from 31 shards', () => {
  const data = Array.from({ length: 32 }, (_, i) => Uint8Array.of(i))
  assert.equal(recoverShards(data.slice(1)), undefined)
  assert.equal(recoverShards([]), undefined)
})

function shuffled(count: number, random: (below: number) => number): number[] {
  const order = Array.from({ length: count }, (_, i) => i)
  for (let i = count - 1; i > 0; i--) {
    const j = random(i + 1)
    ;[order[i], order[j]] = [order[j] as number, order[i] as number]
  }
  return order
}
