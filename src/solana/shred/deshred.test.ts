import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSigningKey } from '../crypto/ed25519.ts'
import { isCompleteSlot, joinBatches } from './deshred.ts'
import { makeShreds } from './make.ts'
import { type DataShred, parseShred } from './shred.ts'

const batches = [40_000, 10, 31_000].map((length, i) => new Uint8Array(length).fill(i + 1))

/** Indexes 0..63 hold the first batch, 64..95 the second, 96..159 the third. */
const shreds: DataShred[] = makeShreds({
  slot: 5,
  parentSlot: 4,
  version: 1,
  batches,
  chainedRoot: new Uint8Array(32),
  leader: createSigningKey(new Uint8Array(32).fill(1)),
}).sets.flatMap(({ data }) =>
  data.map((packet) => {
    const result = parseShred(packet)
    assert.ok(result.ok && result.shred.kind === 'data')
    return result.shred
  }),
)

const without = (...indexes: number[]): DataShred[] => shreds.filter((shred) => !indexes.includes(shred.index))
const ranges = (some: DataShred[]): number[][] => joinBatches(some).map(({ from, to }) => [from, to])

test('returns all batches of a complete slot', () => {
  assert.equal(isCompleteSlot(shreds), true)
  const joined = joinBatches(shreds)
  assert.deepEqual(
    joined.map((batch) => batch.bytes),
    batches,
  )
  assert.deepEqual(ranges(shreds), [
    [0, 64],
    [64, 96],
    [96, 160],
  ])
})

test('leaves out a batch with a missing shred or an unknown start', () => {
  assert.deepEqual(ranges(without(3)), [
    [64, 96],
    [96, 160],
  ])
  // Without the shred that ends the first batch, the start of the second is unknown.
  assert.deepEqual(ranges(without(63)), [[96, 160]])
  assert.deepEqual(ranges(without(64)), [
    [0, 64],
    [96, 160],
  ])
  assert.deepEqual(ranges(without(159)), [
    [0, 64],
    [64, 96],
  ])
  assert.deepEqual(ranges(shreds.slice(70)), [[96, 160]])
  assert.deepEqual(ranges([]), [])
})

test('a slot is complete only with its first, its last and all shreds between', () => {
  for (const missing of [0, 50, 159]) assert.equal(isCompleteSlot(without(missing)), false)
  assert.equal(isCompleteSlot([]), false)
})
