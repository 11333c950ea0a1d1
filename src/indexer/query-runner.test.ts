import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createQueryRunner } from './query-runner.ts'
import { openQueryDatabase } from './test-queries.ts'

const HEAVY =
  'SELECT count(*) FROM transactions a, transactions b, transactions c, transactions d WHERE a.fee + b.fee + c.fee + d.fee = 1'
const job = (query: string, secondsMax: number) => ({
  query,
  parameters: {},
  defaultFormat: 'JSON',
  settings: {},
  limits: { secondsMax, rowsMax: 100, bytesMax: 100_000 },
})

test('who leaves before the query has begun takes it along, too', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database)
  const asked = runner.run(1, job(HEAVY, 600))
  runner.interrupt(1)
  const answer = await asked
  assert.deepEqual([answer.ok, answer.ok || answer.type], [false, 'QUERY_WAS_CANCELLED'])
})

test('a query ends at its limit, and one beside it does not notice', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database)
  const [long, short] = await Promise.all([
    runner.run(1, job(HEAVY, 0.2)),
    runner.run(2, job('SELECT count(*) FROM blocks', 600)),
  ])
  assert.deepEqual([long.ok, long.ok || long.type], [false, 'TIMEOUT_EXCEEDED'])
  assert.equal(short.ok, true)
})
