import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import type { SlotReport } from './events.ts'
import { createSlotHistory } from './slot-history.ts'

const CLOSED: SlotReport = {
  kind: 'slot-report',
  slot: 7,
  parentSlot: 6,
  transactions: 10,
  dataSets: 3,
  ...{ markers: 0, parentUpdates: 0, dataSetsLost: 0, fecSets: 4, fecSetsRecovered: 1, fecSetsNotRecoverable: 0 },
  ...{ shreds: 100, duplicates: 0, firstShredNanos: 0, lastShredNanos: 250e6 },
  ...{ isComplete: true, isConflicting: false, closedBy: 'age' },
}

test('the report has the newest slots first, with dates, and sums over all since the start', () => {
  const clock = createManualClock()
  const history = createSlotHistory(clock)
  const startMs = clock.nowMs()
  const nanos = clock.monotonicMs() * 1e6
  clock.advance(1000)
  for (let slot = 0; slot < 300; slot++) {
    const lost = slot % 10 === 0 ? 2 : 0
    history.add({
      ...CLOSED,
      slot,
      dataSetsLost: lost,
      isComplete: lost === 0,
      firstShredNanos: nanos,
      lastShredNanos: nanos + 250e6,
    })
  }
  const { slots, ...totals } = history.report()
  assert.deepEqual(totals, { slots_complete: 270, slots_incomplete: 30, transactions: 3000, data_sets_lost: 60 })
  assert.deepEqual([slots.length, slots[0]?.slot, slots.at(-1)?.slot], [240, 299, 60])
  assert.equal(slots[0]?.first_shred_at, new Date(startMs).toISOString())
  assert.equal(slots[0]?.last_shred_at, new Date(startMs + 250).toISOString())
})
