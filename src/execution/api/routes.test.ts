import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Stage } from '../../contract/stream-events.ts'
import { recordOf } from '../history/test-history.ts'
import { findLookup, type LookupDeps } from './lookups.ts'
import { findRoute, type RouteDeps } from './routes.ts'

/** Holds the blocks 7 and 2^53 - 2. */
const HELD: readonly number[] = [7, Number.MAX_SAFE_INTEGER - 1]
const NONE = { byNumber: () => undefined }
const routeDeps = {
  views: { lifecycle: { record: (number: number) => (HELD.includes(number) ? { number } : undefined) } },
  history: { proposals: NONE },
} as unknown as RouteDeps
const lookupDeps = { blocks: NONE, held: () => [] } as unknown as LookupDeps

function lifecycleStatus(number: string): number | undefined {
  return findRoute(`/v1/blocks/${number}/lifecycle`)?.(new URLSearchParams(), routeDeps).status
}

function transactionsStatus(number: string): number | undefined {
  const work = findLookup(`/v1/blocks/${number}/transactions`)?.(new URLSearchParams(), lookupDeps, {} as never)
  return (work?.next().value as { status: number } | undefined)?.status
}

test('a block number of any size that is not tracked is 404; what is no number is 400', () => {
  assert.deepEqual([lifecycleStatus('7'), lifecycleStatus('8')], [200, 404])
  const large = ['1000000000000000', '9007199254740993', `${2n ** 64n - 1n}`]
  for (const number of large)
    assert.deepEqual([lifecycleStatus(number), transactionsStatus(number)], [404, 404], number)
  for (const number of ['-1', '1.5', '0x7', '1e3', '%37', 'latest', ' 7', `${2n ** 64n}`, '9'.repeat(400)])
    assert.deepEqual([lifecycleStatus(number), transactionsStatus(number)], [400, 400], number)
})

test('of an untracked block the history has the stages if it was verified or rejected; others would have an old stage', () => {
  const statusOf = (stage: Stage): number | undefined => {
    const history = { proposals: { byNumber: () => ({ record: recordOf(8, stage) }) } }
    const deps = { ...routeDeps, history } as unknown as RouteDeps
    return findRoute('/v1/blocks/8/lifecycle')?.(new URLSearchParams(), deps).status
  }
  const stages: Stage[] = ['Proposed', 'Voted', 'Finalized', 'Verified', 'Rejected']
  assert.deepEqual(stages.map(statusOf), [404, 404, 404, 200, 200])
})
