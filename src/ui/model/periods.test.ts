import assert from 'node:assert/strict'
import { test } from 'node:test'
import { daysOf, periodOf, recentMonths } from './periods.ts'

const NOW_MS = Date.parse('2026-11-16T20:00:00Z')

test('yesterday is the complete UTC day before today', () => {
  const yesterday = periodOf('yesterday', NOW_MS)
  assert.deepEqual([yesterday.since, yesterday.until], ['2026-11-15', '2026-11-15'])
  assert.deepEqual(daysOf(yesterday), ['2026-11-15'])
  assert.equal(daysOf(periodOf('7d', NOW_MS)).length, 7)
  assert.deepEqual(daysOf(periodOf('today', Date.parse('2026-11-16'))), ['2026-11-16'])
  assert.equal(periodOf('last-month', NOW_MS).text, '2026-10-01 to 2026-10-31 (UTC)')
})

test('months go back over the turn of the year', () => {
  assert.deepEqual(recentMonths(Date.parse('2027-02-28T23:00:00Z'), 4), ['2027-02', '2027-01', '2026-12', '2026-11'])
})
