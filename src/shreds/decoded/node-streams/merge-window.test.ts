import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MergeWindow } from './merge-window.ts'

const signature = (n: number): Uint8Array => {
  const bytes = new Uint8Array(64)
  new DataView(bytes.buffer).setUint32(60, n)
  return bytes
}
const MIB = 1024 * 1024

test('the first source wins, in either order, and leads are measured once', () => {
  const window = new MergeWindow({ slotsMax: 8, bytesMax: MIB })
  assert.equal(window.takeOwn(100, signature(1), 5e6), true)
  assert.equal(window.takeUpstream(100, signature(1), 7e6), 'duplicate')
  assert.equal(window.takeUpstream(100, signature(1), 9e6), 'duplicate')
  assert.equal(window.takeUpstream(100, signature(2), 5e6), 'first')
  assert.equal(window.takeUpstream(100, signature(2), 6e6), 'duplicate')
  assert.equal(window.nodeOnly(100), 1)
  assert.equal(window.takeOwn(100, signature(2), 8e6), false)
  assert.equal(window.nodeOnly(100), 0)
  assert.deepEqual(window.takeLeads(), { own: [0.002], upstream: [0.003] })
  assert.deepEqual(window.takeLeads(), { own: [], upstream: [] })
  assert.equal(window.takeUpstream(101, signature(1), 1), 'first', 'another slot is another place')
  assert.equal(window.takeOwn(100, signature(1), 9e6), true, 'a block that has it twice is delivered as it is')
  assert.equal(window.takeOwn(100, signature(2), 9e6), true, 'also where a node had it first')
  assert.equal(window.nodeOnly(100), 0)
})

test('a slot that leaves the window takes nothing of nodes, and is known as forgotten where only a node had a part of it', () => {
  const window = new MergeWindow({ slotsMax: 8, bytesMax: MIB })
  window.takeUpstream(100, signature(1), 1)
  window.takeOwn(101, signature(2), 1)
  window.takeOwn(110, signature(3), 1)
  assert.equal(window.takeUpstream(101, signature(4), 1), 'late')
  assert.deepEqual([window.isForgotten(100), window.isForgotten(101)], [true, false])
  assert.equal(window.takeOwn(101, signature(2), 1), true)
})

test('at bytesMax old slots are closed for nodes, and what only a node has delivered stays', () => {
  const window = new MergeWindow({ slotsMax: 1000, bytesMax: 160 * 10 })
  assert.equal(window.takeUpstream(100, signature(0), 1), 'first')
  for (let n = 1; n < 30; n++) assert.equal(window.takeOwn(100 + n, signature(n), 1), true)
  assert.equal(window.takeUpstream(105, signature(5), 2), 'late', 'it was delivered, and is forgotten')
  assert.equal(window.takeUpstream(129, signature(29), 2), 'duplicate')
  assert.equal(window.takeOwn(100, signature(0), 1), false, 'never twice')
  const full = new MergeWindow({ slotsMax: 1000, bytesMax: 160 * 10 })
  const outcomes = Array.from({ length: 12 }, (_, n) => full.takeUpstream(100, signature(n), 1))
  assert.deepEqual(outcomes.slice(9), ['first', 'full', 'full'])
  assert.equal(full.takeOwn(100, signature(50), 1), true, 'the shreds are delivered whatever the memory')
})

test('a full window forgets the oldest slot first, and nothing for a slot that takes nothing', () => {
  const window = new MergeWindow({ slotsMax: 1000, bytesMax: 160 * 10 })
  window.setFloor(101)
  for (let n = 10; n > 0; n--) window.takeOwn(100 + n, signature(n), 1)
  assert.equal(window.takeUpstream(100, signature(50), 1), 'late')
  assert.equal(window.takeOwn(100, signature(51), 1), true)
  assert.equal(window.takeUpstream(101, signature(1), 1), 'duplicate', 'it is still remembered')
  window.takeOwn(111, signature(11), 1)
  assert.equal(window.takeUpstream(101, signature(1), 1), 'late')
  assert.equal(window.takeUpstream(102, signature(2), 1), 'duplicate')
})

test('a slot that is forgotten to make room for itself takes nothing of a node', () => {
  const window = new MergeWindow({ slotsMax: 1000, bytesMax: 160 * 10 })
  for (let n = 0; n < 10; n++) window.takeOwn(100, signature(n), 1)
  assert.equal(window.takeUpstream(100, signature(20), 1), 'late')
})

test('of a slot of both sources the part is forgotten that the shreds had', () => {
  const window = new MergeWindow({ slotsMax: 1000, bytesMax: 160 * 10 })
  assert.equal(window.takeUpstream(100, signature(1), 1), 'first')
  for (let n = 2; n < 20; n++) window.takeOwn(100, signature(n), 1)
  assert.equal(window.nodeOnly(100), 1)
  assert.equal(window.takeOwn(100, signature(1), 1), false, 'it was delivered')
})

test('the memory of slots that leave the window is free again, and leads are limited between two reports', () => {
  const window = new MergeWindow({ slotsMax: 8, bytesMax: 160 * 600 })
  for (const slot of [100, 200]) {
    for (let n = 0; n < 600; n++) assert.equal(window.takeUpstream(slot, signature(n), 1), 'first')
    for (let n = 0; n < 600; n++) window.takeOwn(slot, signature(n), 2)
  }
  assert.equal(window.takeLeads().upstream.length, 512)
})
