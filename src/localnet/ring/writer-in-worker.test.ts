import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { startRingWriterWorker } from './writer-in-worker.ts'

test('the ring writer runs in its own thread, can be paused, and removes its file', async () => {
  using folder = makeTestFolder()
  const deps = { log: silentLogger, clock: systemClock, random: createSeededRandom(1) }
  const path = folder.file('ring')
  const writer = await startRingWriterWorker({ path, tps: 20, blockMs: 50 }, deps)
  assert(writer.labels.size > 20)
  await until('blocks are written', () => writer.stats().blocks > 3)
  await assert.rejects(startRingWriterWorker({ path }, deps), /is being written by another process/)
  await writer[Symbol.asyncDispose]()
  assert(!existsSync(path))
})
