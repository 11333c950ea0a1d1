import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OpenSlots } from './open-slots.ts'

test('slots are in the order of their numbers, and one that was removed is not found', () => {
  const slots = new OpenSlots(4)
  for (const number of [12, 10, 11]) slots.open(number, 0)
  assert.deepEqual([slots.size, slots.oldest?.slot], [3, 10])
  const oldest = slots.find(10)
  assert.equal(oldest?.slot, 10)
  slots.removeOldest()
  assert.deepEqual([slots.size, slots.find(10), slots.oldest?.slot], [2, undefined, 11])
  slots.removeOldest()
  assert.deepEqual([slots.find(11), slots.find(12)?.slot], [undefined, 12])
})

test('the object of a closed slot is used again, as another slot', () => {
  const slots = new OpenSlots(4)
  const first = slots.open(10, 5)
  first.counts.duplicates = 3
  slots.removeOldest()
  slots.reuse(first)
  const second = slots.open(20, 7)
  assert.equal(second, first)
  assert.deepEqual([second.slot, second.counts.duplicates, second.firstShredNanos], [20, 0, 7])
  slots.removeOldest()
  assert.deepEqual([slots.size, slots.oldest], [0, undefined])
  slots.removeOldest()
  assert.equal(slots.size, 0)
})
