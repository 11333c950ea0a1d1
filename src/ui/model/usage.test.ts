import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barsByDay, sumUsage } from './usage.ts'

test('usage is summed by name, and days without usage are empty bars', () => {
  const row = (from: string, subscription: string, units: number) => ({
    from: `${from}T00:00:00.000Z`,
    subscription,
    interface: 'rpc',
    calls: 1,
    units,
    refused: 0,
  })
  const rows = [row('2026-11-14', 'a', 5), row('2026-11-16', 'b', 20), row('2026-11-16', 'a', 1)]
  assert.deepEqual(
    sumUsage(rows, ({ subscription }) => subscription).map(({ name, units, calls }) => [name, units, calls]),
    [
      ['b', 20, 1],
      ['a', 6, 2],
    ],
  )
  const bars = barsByDay(rows, ['2026-11-14', '2026-11-15', '2026-11-16'])
  assert.deepEqual(
    bars.map(({ parts }) => parts.map(({ value }) => value)),
    [[5], [0], [21]],
  )
})

test('lines of the account endpoints, which name their day, are in the bar of that day', () => {
  const line = { day: '2026-11-15', interface: 'ws', calls: 2, units: 7, refused: 0 }
  assert.deepEqual(barsByDay([line], ['2026-11-14', '2026-11-15']), [
    { label: '2026-11-14', parts: [{ name: 'ws', value: 0 }] },
    { label: '2026-11-15', parts: [{ name: 'ws', value: 7 }] },
  ])
})
