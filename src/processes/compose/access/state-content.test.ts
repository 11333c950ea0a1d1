import assert from 'node:assert/strict'
import { test } from 'node:test'
import { restoredTips } from './state-content.ts'

const DAY = ['2026-11-01', 'account', 'payer', 3, 2, 1, 0, 5_000_000, 3_000_000]

test('tips of a backup are restored as they are, and a line that Sluice does not write is refused', () => {
  assert.deepEqual(restoredTips([{ kind: 'tip_day', value: DAY }]), [DAY])
  assert.deepEqual(restoredTips([{ kind: 'cursor', value: {} }]), [])
  for (const value of [
    null,
    {},
    DAY.slice(1),
    [...DAY, 1],
    [1, ...DAY.slice(1)],
    [...DAY.slice(0, -1), 1.5],
    [...DAY.slice(0, -1), '3000000'],
  ])
    assert.throws(() => restoredTips([{ kind: 'tip_day', value }]), { code: 'store-corrupt' }, JSON.stringify(value))
})
