import assert from 'node:assert/strict'
import { truncateSync } from 'node:fs'
import { test } from 'node:test'
import { ExecRecorder } from '../../src/evm/event/recorder.ts'
import { encodeRingHeader, ringFileBytes } from '../../src/evm/ring/layout.ts'
import { RingWriter } from '../../src/evm/ring/writer.ts'
import { recordBlock } from '../../src/evm/test-block.ts'
import type { SourceMessage } from '../../src/execution/source/message.ts'
import { startRingSource } from '../../src/execution/source/ring-source.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { createRingFile, type RingFileWriter } from '../../src/platform/ring-file/writer.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'

const GEOMETRY = { capacity: 2 ** 16, payloadBytes: 2 ** 27, contextBytes: 0 }
const BLOCKS = 20

/** A ring as a node makes it, with blocks of these numbers. */
function writeRing(path: string, from: number): RingFileWriter {
  const file = createRingFile(path, { bytes: ringFileBytes(GEOMETRY), header: encodeRingHeader(GEOMETRY) })
  const recorder = new ExecRecorder(new RingWriter({ geometry: GEOMETRY }, file))
  for (let number = from; number < from + BLOCKS; number++) {
    recordBlock(recorder, { number, txns: [{ accesses: [{ contract: number, slot: 1 }] }, { accesses: [] }] })
  }
  recorder.flush()
  return file
}

/** A node never truncates its ring; a careless `cp` onto it does. Neither read mode may end the process. */
for (const way of ['positional', 'mapped'] as const) {
  test(`${way}: a truncated ring is reported as unreadable, and the next one is read from its start`, async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    const reported: SourceMessage[] = []
    const of = <Kind extends SourceMessage['kind']>(kind: Kind) =>
      reported.filter((message): message is SourceMessage & { kind: Kind } => message.kind === kind)
    const blocks = () => of('contention').map(({ data }) => data.block_number)
    const first = writeRing(path, 1)
    await using _source = startRingSource(
      {
        kind: 'ring',
        path,
        mode: way,
        start: 'oldest',
        topAccessesMs: 1000,
        topAccessesResetMs: 60_000,
        blockBytesMax: 2 ** 20,
      },
      {
        log: { ...silentLogger, error: (fields) => assert.fail(`the thread died: ${JSON.stringify(fields)}`) },
        clock: systemClock,
        random: secureRandom,
        onMessages: (messages) => void reported.push(...messages),
      },
    )
    await until('the blocks are read', () => blocks().length === BLOCKS)
    assert.deepEqual(
      of('opened').map((message) => message.mode),
      [way],
    )
    truncateSync(path, 0)
    await until('the truncation is reported', () => of('failure').length === 1)
    assert.equal(of('failure')[0]?.failure?.code, 'refused')
    first[Symbol.dispose]()
    using _second = writeRing(path, 101)
    await until('the next ring is read', () => blocks().length === 2 * BLOCKS)
    assert.deepEqual(
      blocks(),
      [1, 101].flatMap((from) => Array.from({ length: BLOCKS }, (_, at) => from + at)),
    )
    // The path may have been checked between the two rings, when it did not exist.
    assert.equal(of('failure').at(-1)?.failure, undefined)
    assert.deepEqual(
      of('opened').map((message) => message.mode),
      [way, way],
    )
    assert.equal(of('restart').length, 1)
  })
}
