import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { SET_BACK_SLOTS, StreamPosition } from './stream-position.ts'

const update = (slot: number) => ({ slot, messages: 1, hasUnread: false })
const PING = { slot: undefined, messages: 1, hasUnread: false }

test('continues from the slot of the last update, however far its node or the others are', () => {
  const position = new StreamPosition(1000)
  position.open(undefined, 1000)
  assert.equal(position.nextFromSlot, 960, 'no update yet')
  // The node sends its stream 200 slots late.
  position.onPiece(update(800), 1000)
  assert.equal(position.nextFromSlot, 760)
  // A backlog: the last message of many is a ping.
  position.onPiece({ slot: undefined, messages: 9, hasUnread: false }, 1001)
  assert.equal(position.nextFromSlot, 760)
  position.onPiece(update(802), 1001)
  // Finality of a slot comes after updates of newer ones.
  position.onPiece(update(770), 1002)
  assert.equal(position.nextFromSlot, 762)
})

test('a ping that comes alone is as far as the node', () => {
  const position = new StreamPosition(1000)
  position.open(undefined, 1000)
  position.onPiece(update(1001), 1001)
  position.onPiece(PING, 1025)
  assert.equal(position.nextFromSlot, 1025 - SET_BACK_SLOTS)
  position.onPiece(update(1020), 1026)
  assert.equal(position.nextFromSlot, 1020 - SET_BACK_SLOTS)
})

test('within a replay it is set back too, but not below the slot that was asked for', () => {
  const position = new StreamPosition(1000)
  position.open(700, 1000)
  assert.equal(position.nextFromSlot, 700)
  position.onPiece(update(720), 1001)
  assert.equal(position.nextFromSlot, 700)
  position.onPiece(update(800), 1001)
  assert.equal(position.nextFromSlot, 760)
  position.onPiece(PING, 1002)
  assert.equal(position.nextFromSlot, 760, 'a node pings while it replays')
})

test('a replay without updates ends when the node is far past its end', () => {
  const position = new StreamPosition(1000)
  position.open(900, 1000)
  position.onPiece(PING, 1039)
  assert.equal(position.nextFromSlot, 900)
  position.onPiece(PING, 1040)
  assert.equal(position.nextFromSlot, 1000)
  position.onPiece(PING, 5000)
  assert.equal(position.nextFromSlot, 4960)
})

test('updates that cannot be read are as far as the node, also many at once', () => {
  const position = new StreamPosition(1000)
  position.open(undefined, 1000)
  position.onPiece({ slot: undefined, messages: 3, hasUnread: true }, 1999)
  assert.equal(position.nextFromSlot, 1959)
})

test('a slot to come is no lower bound, and no slot is below 0', () => {
  const position = new StreamPosition(10)
  position.open(2000, 10)
  assert.equal(position.nextFromSlot, 0)
  position.onPiece(update(100), 100)
  assert.equal(position.nextFromSlot, 60)
})

test('for any filters, replay and speed of the client no update is missing at the next node, and an idle stream stays near its node', (t) => {
  const step = fc.record({
    headSlots: fc.constantFrom(0, 1, 1, 1),
    matches: fc.boolean(),
    pings: fc.constantFrom(false, false, true),
    reads: fc.constantFrom(0, 2, 3, 50, 50),
  })
  const options = fc.record({ replaySlots: fc.option(fc.nat({ max: 150 })), isSparse: fc.boolean() })
  const property = fc.property(options, fc.array(step, { maxLength: 150 }), ({ replaySlots, isSparse }, steps) => {
    let head = 1000
    /** The stream has got the slots up to this one at the node; what matched waits in the queue. */
    let cursor = head - (replaySlots ?? 0)
    const queue: (number | undefined)[] = []
    const position = new StreamPosition(head)
    position.open(replaySlots === null ? undefined : cursor + 1, head)
    for (const { headSlots, matches, pings, reads } of steps) {
      head += headSlots
      // Past slots come faster than new ones.
      for (let left = 8; left > 0 && cursor < head; left--) {
        cursor += 1
        if (matches && !isSparse) queue.push(cursor)
      }
      if (pings) queue.push(undefined)
      const piece = queue.splice(0, reads)
      if (piece.length > 0) position.onPiece({ slot: piece.at(-1), messages: piece.length, hasUnread: false }, head)
      const missing = queue.find((slot) => slot !== undefined) ?? cursor + 1
      assert.ok(position.nextFromSlot <= missing, `${position.nextFromSlot} is after ${missing}`)
    }
    position.onPiece(PING, head + 100)
    assert.equal(position.nextFromSlot, head + 100 - SET_BACK_SLOTS)
  })
  checkProperty(t, property, 300, 20_000)
})
