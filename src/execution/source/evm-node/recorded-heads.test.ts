import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from '../../../evm/hex.ts'
import { RecordedHeads } from './recorded-heads.ts'

const hashOf = (number: number): Hex => `0x${number.toString(16).padStart(64, '0')}`

test('a chain without finality keeps its newest 8,192 heads', () => {
  const heads = new RecordedHeads()
  for (let number = 1; number <= 10_000; number++)
    heads.add({ number, hash: hashOf(number), parentHash: hashOf(number - 1) })
  const branch = heads.branchOf(hashOf(10_000), -1)
  assert.deepEqual([branch.length, branch[0]?.number], [8192, 10_000 - 8191])
  assert.deepEqual(heads.branchOf(hashOf(1), -1), [])
})
