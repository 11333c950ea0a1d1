import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createResultBudget, HeldResult } from './held-result.ts'
import { runQuery } from './run-query.ts'
import { openQueryDatabase } from './test-queries.ts'

test('the event loop runs between tokenising, parsing and translating a statement, which is no time of the query', async () => {
  using on = await openQueryDatabase()
  using connection = await on.database.connect()
  const budget = createResultBudget({ heldBytesMax: Infinity, heldBytesPerSubscription: Infinity })
  const result = new HeldResult({ owner: 'test', bytesMax: 1000, windowBytes: Infinity }, budget)
  const limits = { secondsMax: 30, rowsMax: 10, bytesMax: 1000 }
  const job = { query: 'select 1', parameters: {}, defaultFormat: 'TSV', settings: {}, limits }
  const steps: string[] = []
  await runQuery(connection, job, {
    nowMs: () => 0,
    slices: { isSpent: () => true, yield: async () => void steps.push('turn') },
    result,
    onHead: () => {},
    onRun: () => steps.push('run'),
    onWait: (isWaiting) => steps.push(isWaiting ? 'wait' : 'go on'),
  })
  const before = steps.slice(0, steps.indexOf('run'))
  assert.deepEqual(before.filter((step) => step === 'turn').length, 3)
  assert.deepEqual(
    before.filter((step) => step !== 'turn'),
    ['wait', 'go on', 'wait', 'go on', 'wait', 'go on'],
  )
  assert.equal(result.read().toString(), '1\n')
})
