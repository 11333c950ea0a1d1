import { closeSync, ftruncateSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { ExecRecorder } from '../../../src/evm/event/recorder.ts'
import { ringFileBytes } from '../../../src/evm/ring/layout.ts'
import { createMemoryRing, type MemoryRing } from '../../../src/evm/ring/test-memory-ring.ts'
import { RingWriter } from '../../../src/evm/ring/writer.ts'
import { idOf, recordBlock } from '../../../src/evm/test-block.ts'

/** The smallest ring that the format allows. */
const GEOMETRY = { capacity: 2 ** 16, payloadBytes: 2 ** 27, contextBytes: 0 }

export type TestRing = MemoryRing & { writer: RingWriter; recorder: ExecRecorder }

/** An empty ring in memory. */
export function createTestRing(): TestRing {
  const ring = createMemoryRing(GEOMETRY)
  const writer = new RingWriter({ geometry: GEOMETRY }, ring.target)
  return { ...ring, writer, recorder: new ExecRecorder(writer) }
}

/** Records two blocks, the first one finalized. */
export function fillTestRing({ recorder }: TestRing): void {
  for (let number = 1; number <= 2; number++) {
    const accesses = [{ contract: 7, slot: 1, isModified: true }]
    recordBlock(recorder, { number, txns: [{ accesses }, { accesses, logs: 2 }, { accesses: [] }] })
  }
  const timeNs = 1_800_000_001_000_000_000n
  recorder.add('BLOCK_FINALIZED', { id: idOf(1), block_number: 1n }, { timeNs })
  recorder.flush()
}

/** Writes the ring as files: uncompressed and sparse, and compressed. Only the used parts are written. */
export function writeRingFiles({ image, writer }: TestRing, path: { plain?: string; zstd?: string }): void {
  const used = 2 ** 21 + GEOMETRY.capacity * 64 + writer.control.nextPayloadByte
  const bytes = image.subarray(0, used)
  if (path.plain !== undefined) {
    const descriptor = openSync(path.plain, 'wx')
    writeSync(descriptor, bytes)
    ftruncateSync(descriptor, ringFileBytes(GEOMETRY))
    closeSync(descriptor)
  }
  if (path.zstd !== undefined) writeFileSync(path.zstd, zstdCompressSync(bytes))
}

/** `snapshot.ring` and `snapshot.zst`, which the help examples use. */
export function makeRingSnapshots(folder: string): void {
  const ring = createTestRing()
  fillTestRing(ring)
  writeRingFiles(ring, { plain: join(folder, 'snapshot.ring'), zstd: join(folder, 'snapshot.zst') })
}
