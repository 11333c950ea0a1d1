import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isFull } from '../../support/process/property.ts'
import { compareSeen } from './compare.ts'
import { soakSwitch } from './switch.ts'

test('a chain that changes its consensus and slot length under load costs no row, charge, connection or receipt', async (t) => {
  const report = await soakSwitch({ seconds: isFull ? 300 : 24 })
  t.diagnostic(JSON.stringify(report))
  assert.deepEqual(report.violations, [])
  for (const what of ['calls', 'units', 'queries', 'transactions', 'landed', 'frames'])
    assert.ok((report.counts[what] ?? 0) > 10, `${what}: ${report.counts[what]}`)
  assert.ok(report.blocks.before > 10 && report.blocks.after > 10, JSON.stringify(report.blocks))
})

test('what was lost, came twice or is not in a block is a violation', () => {
  const blocks = new Map([
    [7, { blockhash: 'a', signatures: ['one', 'two'] }],
    [9, { blockhash: 'b', signatures: ['three'] }],
  ])
  const violationsOf = (seen: [number, string[]][], surplusFrom?: number): string[] => {
    const found: string[] = []
    compareSeen('logs', new Map(seen), blocks, (violation) => void found.push(violation), surplusFrom)
    return found
  }
  assert.deepEqual(
    violationsOf([
      [6, ['zero']],
      [7, ['two', 'one']],
      [9, ['three']],
      [10, ['four']],
    ]),
    [],
  )
  assert.deepEqual(
    violationsOf([
      [7, ['one']],
      [9, ['three']],
    ]),
    ['logs: slot 7: 1 of 2 transactions are missing'],
  )
  assert.deepEqual(
    violationsOf([
      [7, ['one', 'two', 'one']],
      [9, ['three']],
    ]),
    ['logs: slot 7: 1 transactions came twice'],
  )
  assert.deepEqual(
    violationsOf([
      [7, ['one', 'two', 'x']],
      [9, ['three']],
    ]),
    ['logs: slot 7: 1 transactions are not in the block'],
  )
  assert.deepEqual(
    violationsOf([
      [7, ['one', 'two']],
      [8, ['x']],
      [9, ['three']],
    ]),
    ['logs: slot 8 has no block'],
  )
  assert.deepEqual(
    violationsOf(
      [
        [7, ['one', 'two']],
        [9, ['three', 'three', 'x']],
      ],
      8,
    ),
    [],
  )
  assert.deepEqual(
    violationsOf(
      [
        [7, ['one', 'two']],
        [9, ['x']],
      ],
      8,
    ),
    ['logs: slot 9: 1 of 1 transactions are missing'],
  )
})
