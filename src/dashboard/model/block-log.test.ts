import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lifecycle, Stage } from '../../contract/stream-events.ts'
import { createBlockLog } from './block-log.ts'

const change = (from_stage: Stage | null, to_stage: Stage, block_age_ms: number): Lifecycle => ({
  block_hash: `0x${'7'.repeat(64)}`,
  block_number: 7,
  from_stage,
  to_stage,
  time_in_previous_stage_ms: null,
  block_age_ms,
  txn_count: 3,
  gas_used: null,
})

test('the times of a block that is executed again begin again', () => {
  const log = createBlockLog()
  log.addLifecycle(change(null, 'Proposed', 0), 1000)
  log.addLifecycle(change('Proposed', 'Voted', 400), 1400)
  log.addLifecycle(change('Voted', 'Rejected', 900), 1900)
  log.addLifecycle(change(null, 'Proposed', 0), 60_000)
  log.addLifecycle(change('Proposed', 'Finalized', 300), 60_300)
  const [block] = log.find(7)
  assert.deepEqual(block?.reachedMs, { Proposed: 0, Finalized: 300 })
  assert.equal(block?.timeMs, 60_000)
  assert.equal(log.medianBeforeMs('Finalized'), 300)
})

test('a snapshot of a proposed block keeps the time at which it was proposed', () => {
  const log = createBlockLog()
  log.addLifecycle(change(null, 'Proposed', 0), 1000)
  log.addLifecycle(change(null, 'Proposed', 0), undefined)
  assert.equal(log.timeMs(7), 1000)
})
