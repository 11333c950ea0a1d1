import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSeededRandom, randomInt } from '../../src/core/random.ts'
import { seedFor } from '../../src/core/test-seed.ts'
import { encodeRingHeader, ringFileBytes } from '../../src/evm/ring/layout.ts'
import type { RingReader } from '../../src/evm/ring/reader.ts'
import { makeEvent, openReader } from '../../src/evm/ring/test-ring.ts'
import { RingWriter } from '../../src/evm/ring/writer.ts'
import { loadFileMapper } from '../../src/platform/files/mapped.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { openRingFile, type RingFileOptions } from '../../src/platform/ring-file/reader.ts'
import { createRingFile } from '../../src/platform/ring-file/writer.ts'

/** The result of one poll as text, to compare two readers. */
function take(reader: RingReader): string {
  const result = reader.poll(0)
  if (result.kind !== 'events') return JSON.stringify(result)
  const { batch } = reader
  return Array.from({ length: batch.count }, (_, at) => {
    const descriptor = batch.descriptorBytes.subarray(at * 64, at * 64 + 64)
    return `${Buffer.from(descriptor).toString('hex')} ${Buffer.from(batch.payload(at) ?? []).toString('hex')}`
  }).join('\n')
}

test('positional reads and a mapping give the same events at any time, for any way of writing', async () => {
  const mapper = await loadFileMapper()
  assert(mapper.ok, mapper.ok ? '' : mapper.reason)
  let [events, gaps] = [0, 0]
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const random = createSeededRandom(seed)
      using folder = makeTestFolder()
      const path = folder.file('ring')
      const geometry = { capacity: 2 ** (3 + randomInt(random, 5)), payloadBytes: 2 ** 12, contextBytes: 0 }
      const header = encodeRingHeader(geometry)
      const isMapped = random.float() < 0.5
      using file = createRingFile(path, { bytes: ringFileBytes(geometry), header, mapper, isMapped })
      const writer = new RingWriter({ geometry, windowStepBytes: 256 }, file)
      const eventsMax = 1 + randomInt(random, 40)
      const readers = ([{}, { mapper }] satisfies RingFileOptions[]).map((options) => {
        const opened = openRingFile(path, options) ?? assert.fail()
        return { opened, reader: openReader(opened, { seqno: 1 }, { eventsMax }) }
      })
      for (let round = 0; round < 40; round++) {
        for (let count = randomInt(random, 12); count > 0; count--) {
          writer.record(makeEvent(writer.lastSeqno + 1, randomInt(random, 200)))
        }
        const [byPosition, mapped] = readers.map(({ reader }) => take(reader))
        assert.equal(mapped, byPosition)
      }
      const stats = readers.map(({ reader }) => reader.stats)
      assert.deepEqual(stats[1], stats[0])
      events += stats[0]?.eventsRead ?? 0
      gaps += stats[0]?.gaps ?? 0
      for (const { opened } of readers) opened.close()
    }),
    seedFor('ring ways', 40),
  )
  assert(events > 1000 && gaps > 10, `${events} events, ${gaps} gaps`)
})
