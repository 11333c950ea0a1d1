import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import type { Execution } from '../../../execution/service.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import { superviseExecution } from './supervise-execution.ts'

test('a drain that is given up reaches the service that is draining', async () => {
  const clock = createManualClock()
  const drains: number[] = []
  const cut = Promise.withResolvers<void>()
  const execution = {
    address: { host: '127.0.0.1', port: 1 },
    ended: new Promise<void>(() => {}),
    beginLameDuck() {},
    drain(deadlineMs: number) {
      drains.push(deadlineMs)
      if (deadlineMs === 0) cut.resolve()
      return cut.promise
    },
    async [Symbol.asyncDispose]() {},
  } as unknown as Execution
  const kept = await superviseExecution({
    ...{ clock, random: secureRandom, log: silentLogger, lifecycle: { degraded() {} } },
    start: async () => execution,
  })
  const drained = kept.drain(17_000)
  await clock.advanceAsync(0)
  assert.deepEqual(drains, [17_000])
  await kept.drain(0)
  assert.deepEqual(drains, [17_000, 0])
  await drained
})
