import assert from 'node:assert/strict'
import { test } from 'node:test'
import { restoredTips } from './state-content.ts'

const DAY = ['2026-11-01', 'account', 'payer', 3, 2, 1, 0, 5_000_000, 3_000_000]

test('tips of a backup are restored as they are, and a line that Sluice does not write is refused', () => {
  assert.deepEqual(restoredTips([{ kind: 'tip_day', value: DAY }]), { days: [DAY], counted: undefined })
  assert.deepEqual(restoredTips([{ kind: 'cursor', value: {} }]), { days: [], counted: undefined })
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

test('the transactions that these tips include are restored, and a line that Sluice does not write is refused', () => {
  const row = ['signature', 'landed', '2026-11-01', 'account', 'payer', 1_000_000, 1_793_500_000_000]
  const mark = { kind: 'tip_counted', value: { ms: 7 } } as const
  const restore = (value: unknown) => restoredTips([{ kind: 'tip_recent', value }, mark])
  assert.deepEqual(restore(row).counted, { countedMs: 7, recent: [row] })
  for (const value of [null, {}, row.slice(1), [...row, 1], [...row.slice(0, -1), 1.5], [...row.slice(0, -1), '7']])
    assert.throws(() => restore(value), { code: 'store-corrupt' }, JSON.stringify(value))
  for (const value of [{}, { ms: '7' }, { ms: 1.5 }])
    assert.throws(
      () => restoredTips([{ kind: 'tip_counted', value }]),
      { code: 'store-corrupt' },
      JSON.stringify(value),
    )
})
