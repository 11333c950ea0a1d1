import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { startRingSource } from '../../src/execution/source/ring-source.ts'
import { startRingWriter } from '../../src/localnet/ring/writer-service.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { startTestExecution } from '../support/execution/start.ts'
import { helloOf, openStream, type StreamReader } from '../support/execution/stream-reader.ts'

const RING = {
  kind: 'ring',
  start: 'newest-block',
  topAccessesMs: 200,
  topAccessesResetMs: 60_000,
  blockBytesMax: 2 ** 24,
} as const

test('a ring thread that dies is restarted: clients stay connected, get the gap, and sequence numbers continue', async () => {
  using folder = makeTestFolder()
  const path = folder.file('ring')
  await using _writer = await startRingWriter(
    { path, blockMs: 50, tps: 400, seed: 5 },
    { log: silentLogger, clock: systemClock },
  )
  const threadEntry = new URL('../support/execution/crashing-ring-thread.ts', import.meta.url)
  const deaths: unknown[] = []
  const log = { ...silentLogger, error: (fields: unknown) => void deaths.push(fields) }
  await using service = await startTestExecution({
    clock: systemClock,
    deps: {
      startSource: (onMessages) =>
        startRingSource({ ...RING, path }, { log, clock: systemClock, random: secureRandom, onMessages, threadEntry }),
    },
  })
  await using client = await openStream(`${service.ws}/v1/ws`)
  for (let death = 1; death <= 2; death++) {
    const before = blocksOf(client).length
    await until('blocks come', () => blocksOf(client).length > before + 1)
    writeFileSync(`${path}.die`, '')
    await until('the thread has died', () => deaths.length === death)
    await until('the gap is reported', () => warningsOf(client).length === death)
    const reported = client.frames.length
    await until('blocks come again', () => client.frames.slice(reported).some((frame) => 'ContentionData' in frame))
  }
  assert.equal(client.closed, undefined)
  for (const warning of warningsOf(client)) {
    assert(warning.type === 'ring_restart' && warning.previous_ring_seqno > 0)
  }
  const numbers = client.frames.slice(1 + helloOf(client).snapshot).flatMap(({ seq }) => (seq > 0 ? [seq] : []))
  assert(numbers.every((seq, at) => at === 0 || seq > (numbers[at - 1] as number)))
  // No block is reported twice. Several may be proposed under one number, so their ids distinguish them.
  const proposed = client.frames
    .slice(1 + helloOf(client).snapshot)
    .flatMap((frame) =>
      'Lifecycle' in frame && frame.Lifecycle.to_stage === 'Proposed' ? [frame.Lifecycle.block_hash] : [],
    )
  assert.equal(new Set(proposed).size, proposed.length)
})

function blocksOf(client: StreamReader): number[] {
  return client.frames.flatMap((frame) => ('ContentionData' in frame ? [frame.ContentionData.block_number] : []))
}

function warningsOf(client: StreamReader) {
  return client.frames.flatMap((frame) => ('Warning' in frame ? [frame.Warning] : []))
}
