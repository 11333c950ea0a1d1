import assert from 'node:assert/strict'
import { test } from 'node:test'
import { showAgo, showBytes, showDaysLeft, showLastDay } from './time.ts'

const NOW_MS = Date.parse('2026-11-16T20:00:00Z')

test('shows the last day on which a subscription works, and the days left', () => {
  assert.equal(showLastDay('2027-02-01T00:00:00.000Z'), '2027-01-31')
  assert.equal(showLastDay(null), 'no end')
  assert.equal(showDaysLeft('2026-11-19T00:00:00.000Z', NOW_MS), 'ends in 3 days')
  assert.equal(showDaysLeft('2026-11-17T00:00:00.000Z', NOW_MS), 'ends today')
  assert.equal(showDaysLeft('2026-11-16T00:00:00.000Z', NOW_MS), 'ended')
  assert.deepEqual([999, 1000, 12_345_678].map(showBytes), ['999 B', '1.0 kB', '12 MB'])
})

test('how long ago: the largest unit of which there are two', () => {
  const at = (ms: number) => showAgo(new Date(NOW_MS + ms).toISOString(), NOW_MS)
  assert.deepEqual(
    [-59_000, -60_000, -119 * 60_000, -2 * 3_600_000, -47 * 3_600_000, -49 * 3_600_000, 3 * 86_400_000].map(at),
    ['now', '1 min ago', '119 min ago', '2 h ago', '47 h ago', '2 d ago', 'in 3 d'],
  )
  assert.equal(showAgo(null, NOW_MS), '')
  assert.equal(showAgo('never', NOW_MS), '')
})
