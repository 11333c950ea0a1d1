import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MergeWindow } from './merge-window.ts'

const signature = (n: number): Uint8Array => {
  const bytes = new Uint8Array(64)
  new DataView(bytes.buffer).setUint32(60, n)
  return bytes
}
const at = (slot: number, arrivalNanos: number, startIndex = 0) => ({
  ...{ slot, startIndex, endIndex: startIndex + 32, arrivalNanos },
})
const MIB = 1024 * 1024

test('the first source wins, in either order, and leads are measured once', () => {
  const window = new MergeWindow({ slotsMax: 8, bytesMax: MIB })
  assert.equal(window.takeOwn(at(100, 5e6), signature(1)), true)
  assert.equal(window.takeUpstream(at(100, 7e6), signature(1)), 'duplicate')
  assert.equal(window.takeUpstream(at(100, 9e6), signature(1)), 'duplicate')
  assert.equal(window.takeUpstream(at(100, 5e6), signature(2)), 'first')
  assert.equal(window.takeUpstream(at(100, 6e6), signature(2)), 'duplicate')
  assert.equal(window.nodeOnly(100), 1)
  assert.equal(window.takeOwn(at(100, 8e6), signature(2)), false)
  assert.equal(window.nodeOnly(100), 0)
  assert.deepEqual(window.takeLeads(), { own: [0.002], upstream: [0.003] })
  assert.deepEqual(window.takeLeads(), { own: [], upstream: [] })
  assert.equal(window.takeUpstream(at(101, 1), signature(1)), 'first', 'another slot is another place')
  assert.equal(window.takeOwn(at(100, 9e6), signature(1)), true, 'a block that has it twice is delivered as it is')
  assert.equal(window.takeOwn(at(100, 9e6), signature(2)), true, 'also where a node had it first')
  assert.equal(window.nodeOnly(100), 0)
})

test('a slot that leaves the window takes nothing of nodes, and is known as forgotten where only a node had a part of it', () => {
  const window = new MergeWindow({ slotsMax: 8, bytesMax: MIB })
  window.takeUpstream(at(100, 1), signature(1))
  window.takeOwn(at(101, 1), signature(2))
  window.takeOwn(at(110, 1), signature(3))
  assert.equal(window.takeUpstream(at(101, 1), signature(4)), 'late')
  assert.deepEqual([window.isForgotten(100), window.isForgotten(101)], [true, false])
  assert.equal(window.takeOwn(at(101, 1), signature(2)), true)
})

test('at bytesMax old slots are closed for nodes, and what only a node has delivered stays', () => {
  const window = new MergeWindow({ slotsMax: 1000, bytesMax: 200 * 10 })
  assert.equal(window.takeUpstream(at(100, 1), signature(0)), 'first')
  for (let n = 1; n < 30; n++) assert.equal(window.takeOwn(at(100 + n, 1), signature(n)), true)
  assert.equal(window.takeUpstream(at(105, 2), signature(5)), 'late', 'it was delivered, and is forgotten')
  assert.equal(window.takeUpstream(at(129, 2), signature(29)), 'duplicate')
  assert.equal(window.takeOwn(at(100, 1), signature(0)), false, 'never twice')
  const full = new MergeWindow({ slotsMax: 1000, bytesMax: 200 * 10 })
  const outcomes = Array.from({ length: 12 }, (_, n) => full.takeUpstream(at(100, 1), signature(n)))
  assert.deepEqual(outcomes.slice(9), ['first', 'full', 'full'])
  assert.equal(full.takeOwn(at(100, 1), signature(50)), true, 'the shreds are delivered whatever the memory')
})

test('a full window forgets the oldest slot first, and nothing for a slot that takes nothing', () => {
  const window = new MergeWindow({ slotsMax: 1000, bytesMax: 200 * 10 })
  window.setFloor(101)
  for (let n = 10; n > 0; n--) window.takeOwn(at(100 + n, 1), signature(n))
  assert.equal(window.takeUpstream(at(100, 1), signature(50)), 'late')
  assert.equal(window.takeOwn(at(100, 1), signature(51)), true)
  assert.equal(window.takeUpstream(at(101, 1), signature(1)), 'duplicate', 'it is still remembered')
  window.takeOwn(at(111, 1), signature(11))
  assert.equal(window.takeUpstream(at(101, 1), signature(1)), 'late')
  assert.equal(window.takeUpstream(at(102, 1), signature(2)), 'duplicate')
})

test('a slot that is forgotten to make room for itself takes nothing of a node', () => {
  const window = new MergeWindow({ slotsMax: 1000, bytesMax: 200 * 10 })
  for (let n = 0; n < 10; n++) window.takeOwn(at(100, 1), signature(n))
  assert.equal(window.takeUpstream(at(100, 1), signature(20)), 'late')
})

test('of a slot of both sources the part is forgotten that the shreds had', () => {
  const window = new MergeWindow({ slotsMax: 1000, bytesMax: 200 * 10 })
  assert.equal(window.takeUpstream(at(100, 1), signature(1)), 'first')
  for (let n = 2; n < 20; n++) window.takeOwn(at(100, 1), signature(n))
  assert.equal(window.nodeOnly(100), 1)
  assert.equal(window.takeOwn(at(100, 1), signature(1)), false, 'it was delivered')
})

test('the memory of slots that leave the window is free again, and leads are limited between two reports', () => {
  const window = new MergeWindow({ slotsMax: 8, bytesMax: 200 * 600 })
  for (const slot of [100, 200]) {
    for (let n = 0; n < 600; n++) assert.equal(window.takeUpstream(at(slot, 1), signature(n)), 'first')
    for (let n = 0; n < 600; n++) window.takeOwn(at(slot, 2), signature(n))
  }
  assert.equal(window.takeLeads().upstream.length, 512)
})

test('a transaction that the leader sends again after a change of the parent comes again, from the first source', () => {
  const window = new MergeWindow({ slotsMax: 8, bytesMax: MIB })
  assert.equal(window.takeUpstream(at(100, 1, 0), signature(1)), 'first')
  // In the same slot, behind the marker at 32 that is not known yet.
  assert.equal(window.takeUpstream(at(100, 2, 64), signature(1)), 'first')
  window.setVoidBefore(100, 32)
  assert.equal(window.takeOwn(at(100, 3, 64), signature(1)), false)
  assert.equal(window.takeUpstream(at(100, 4, 64), signature(1)), 'duplicate')
  assert.equal(window.nodeOnly(100), 1, 'the void one')
  assert.equal(window.takeOwn(at(100, 5, 96), signature(1)), true)
  assert.equal(window.takeUpstream(at(100, 6, 96), signature(1)), 'duplicate')
  assert.deepEqual(window.takeLeads(), { own: [1e-9], upstream: [1e-9] })
})

test('what a change of the parent has made void is not taken from a node any more, and in no other slot', () => {
  const window = new MergeWindow({ slotsMax: 8, bytesMax: MIB })
  window.setVoidBefore(100, 64)
  const outcomes = [0, 32, 64].map((start) => window.takeUpstream(at(100, 1, start), signature(start)))
  assert.deepEqual(outcomes, ['void', 'void', 'first'])
  assert.equal(window.takeUpstream(at(101, 1), signature(1)), 'first')
  // Nothing is kept of a slot that has left the window.
  window.takeOwn(at(200, 1), signature(2))
  window.setVoidBefore(100, 96)
  assert.equal(window.takeUpstream(at(100, 1), signature(3)), 'late')
})

test('a transaction of a node that does not name its data set is the same wherever it is', () => {
  const window = new MergeWindow({ slotsMax: 8, bytesMax: MIB })
  const nowhere = { slot: 100, startIndex: 0, endIndex: 0, arrivalNanos: 1 }
  window.setVoidBefore(100, 32)
  assert.equal(window.takeUpstream(nowhere, signature(1)), 'first')
  assert.equal(window.takeOwn(at(100, 2, 64), signature(1)), false)
  assert.equal(window.takeOwn(at(100, 2, 64), signature(2)), true)
  assert.equal(window.takeUpstream(nowhere, signature(2)), 'duplicate')
})
