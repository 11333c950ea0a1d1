import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLeaderSchedule, epochOf } from './leader-schedule.ts'

test('slots are looked up from the first slot of the epoch', () => {
  const schedule = createLeaderSchedule({
    firstSlot: 1000,
    slotsInEpoch: 12,
    slotsByLeader: { alice: [0, 1, 2, 3, 8, 9, 10, 11, 12, 99], bob: [4, 5, 6] },
  })
  const leaders = Array.from({ length: 14 }, (_, i) => schedule.leaderOf(999 + i))
  const expected = [...Array(4).fill('alice'), ...Array(3).fill('bob'), undefined, ...Array(4).fill('alice')]
  assert.deepEqual(leaders, [undefined, ...expected, undefined])
  assert.equal(schedule.endSlot, 1012)
  assert.equal(schedule.leaderOf(Number.NaN), undefined)
  assert.equal(schedule.leaderOf(1000.5), undefined)
})

test('epochs without warm-up', () => {
  assert.deepEqual(epochOf(0, 432_000), { epoch: 0, slotIndex: 0, firstSlot: 0 })
  assert.deepEqual(epochOf(431_999, 432_000), { epoch: 0, slotIndex: 431_999, firstSlot: 0 })
  assert.deepEqual(epochOf(864_001, 432_000), { epoch: 2, slotIndex: 1, firstSlot: 864_000 })
})
