import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Stage } from '../../contract/stream-events.ts'
import { idOf } from '../../evm/test-block.ts'
import { recordOf } from '../history/test-history.ts'
import { LifecycleView } from './lifecycle-view.ts'

function viewOf(...records: [number: number, variant: number, stage: Stage][]): LifecycleView {
  const view = new LifecycleView()
  for (const [number, variant, stage] of records) view.update(recordOf(number, stage, variant))
  return view
}

test('the record of a number is the newest proposal, also if that was rejected', () => {
  const view = viewOf([100, 1, 'Proposed'], [100, 2, 'Proposed'], [100, 2, 'Rejected'])
  assert.equal(view.record(100)?.block_hash, idOf(100, 2))
  view.update(recordOf(100, 'Finalized', 1))
  assert.equal(view.record(100)?.block_hash, idOf(100, 1), 'the finalized one')
})

test('a rejected block that is proposed again is active', () => {
  const view = viewOf([100, 1, 'Proposed'], [100, 1, 'Rejected'], [101, 1, 'Proposed'], [100, 1, 'Proposed'])
  assert.deepEqual(
    view.activeChanges().map(({ block_number }) => block_number),
    [100, 101],
  )
  assert.deepEqual([view.size, view.records().length, view.stageOf(idOf(100, 1))], [2, 2, 'Proposed'])
})
