import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Landed, Receipt } from './receipt.ts'
import { createStats } from './stats.ts'
import { receiptOf } from './test-receipt.ts'

const LANDED: Landed = { slot: 1, confirmation: 'processed', error: null, unixMs: 2000 }

test('a reverted transaction is counted back, unless it landed before this process', () => {
  const stats = createStats([])
  const landed = (signature: string): Receipt => receiptOf(signature, { state: 'landed', landed: LANDED })
  const [here, before] = [landed('here'), landed('before')]
  stats.settled(here)
  stats.replaced(before)
  const read = () => [stats.read(0).landed, stats.read(0).tipLamports]
  assert.deepEqual(read(), [1, '1000000'])
  stats.replaced(here)
  assert.deepEqual(read(), [0, '0'])
})
