import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import { silentLogger } from '../host/logger.ts'
import { createMetricsRegistry } from '../host/metrics-registry.ts'
import { indexerMetrics } from './metrics.ts'
import { createQueryDesk } from './query-desk.ts'
import type { QueryJob } from './query-run.ts'
import { StoreGone, type StoreProcess } from './store-process.ts'

const JOB = { limits: { secondsMax: 100 } } as QueryJob

test('a database process that is slow to die is ended once, and its query is blamed once', async () => {
  const clock = createManualClock()
  using registry = createMetricsRegistry()
  const answer = Promise.withResolvers<never>()
  let kills = 0
  const store = {
    ask: () => answer.promise,
    residentBytes: () => 1000,
    kill: () => void (kills += 1),
  } as unknown as StoreProcess
  using desk = createQueryDesk(
    { concurrent: 4, concurrentPerSubscription: 2, residentBytesMax: 999 },
    { store: () => store, clock, log: silentLogger, metrics: indexerMetrics(registry) },
  )
  const asked = desk.ask('greedy', JOB, new AbortController().signal)
  clock.advance(2000)
  assert.equal(kills, 1)
  answer.reject(new StoreGone('the database process ended'))
  await assert.rejects(asked, { type: 'MEMORY_LIMIT_EXCEEDED' })
  await assert.rejects(
    desk.ask('greedy', JOB, new AbortController().signal),
    (error: { retryAfterSeconds: number }) => {
      assert.ok(error.retryAfterSeconds <= 30, `${error.retryAfterSeconds} s for the first time`)
      return true
    },
  )
})
