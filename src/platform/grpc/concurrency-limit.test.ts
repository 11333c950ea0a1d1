import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConcurrencyLimit } from './concurrency-limit.ts'

test('runs at most runningMax tasks at once; the others start in order, also after a failure', async () => {
  const limit = createConcurrencyLimit(2)
  const started: number[] = []
  const policies = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
  const runs = policies.map(({ promise }, at) =>
    limit.run(async () => {
      started.push(at)
      await promise
      return at
    }),
  )
  await new Promise(setImmediate)
  assert.deepEqual([started, limit.running], [[0, 1], 2])
  policies[1]?.reject(new Error('failed'))
  await assert.rejects(runs[1] as Promise<number>, /failed/)
  await new Promise(setImmediate)
  assert.deepEqual([started, limit.running], [[0, 1, 2], 2])
  for (const policy of policies) policy.resolve()
  assert.deepEqual(await Promise.all([runs[0], runs[2], runs[3], runs[4]]), [0, 2, 3, 4])
  assert.deepEqual([started, limit.running], [[0, 1, 2, 3, 4], 0])
})
