import { execFileSync } from 'node:child_process'
import { closeSync, ftruncateSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../../src/core/error.ts'
import { ExecRecorder } from '../../../src/evm/event/recorder.ts'
import { BlockFold } from '../../../src/evm/fold/block.ts'
import { createFoldLog } from '../../../src/evm/fold/test-fold.ts'
import { createRingReader } from '../../../src/evm/ring/reader.ts'
import type { RingSource } from '../../../src/evm/ring/source.ts'
import { createMemoryRing } from '../../../src/evm/ring/test-memory-ring.ts'
import { RingWriter } from '../../../src/evm/ring/writer.ts'
import { recordBlock } from '../../../src/evm/test-block.ts'
import { loadFileMapper } from '../../../src/platform/files/mapped.ts'
import { loadRingMapper, openLiveRing } from '../../../src/platform/ring-file/reader.ts'

/**
 * Runs in its own mount namespace: mounts a hugetlbfs on the given folder, creates a ring there as a node does (through a mapping: this
 * file system does not support writes) and reads it with positioned reads and through a mapping. Prints the results as JSON.
 */
const folder = process.argv[2] as string
const path = join(folder, 'ring')
let stage = 'mount'
try {
  execFileSync('mount', ['-t', 'hugetlbfs', 'none', folder], { stdio: 'pipe' })
  const mapper = await loadFileMapper()
  if (!mapper.ok) throw new Error(mapper.reason)
  stage = 'map'
  const ring = createMemoryRing({ capacity: 2 ** 16, payloadBytes: 2 ** 27, contextBytes: 0 })
  const recorder = new ExecRecorder(new RingWriter({ geometry: ring.geometry }, ring.target))
  for (let number = 1; number <= 20; number++) {
    recordBlock(recorder, { number, txns: [{ accesses: [{ contract: number, slot: 1 }] }, { accesses: [] }] })
  }
  recorder.flush()
  const descriptor = openSync(path, 'wx+')
  ftruncateSync(descriptor, ring.image.length)
  const file = mapper.map(descriptor, { isWritable: true })
  file.write(0, ring.image)
  file.close()
  closeSync(descriptor)
  stage = 'read'
  const byPosition = openLiveRing(path, await loadRingMapper(path, 'positional'))
  const mapped = openLiveRing(path, await loadRingMapper(path, 'auto'))
  if (byPosition === undefined || mapped === undefined) throw new Error('the ring does not exist')
  const [positional, throughMapping, expected] = [byPosition, mapped, ring.source].map(foldAll)
  byPosition.close()
  mapped.close()
  const ways = [byPosition.mode, mapped.mode]
  console.log(JSON.stringify({ stage: 'done', ways, positional, throughMapping, expected }))
} catch (error) {
  const detail = (error as { stderr?: Buffer }).stderr?.toString().trim()
  console.log(JSON.stringify({ stage, message: detail || messageOf(error) }))
}

/** The complete fold of the ring, as text. */
function foldAll(source: RingSource): string {
  const created = createRingReader(source, { seqno: 1 })
  if (!created.ok) throw new Error(created.message)
  const { sink, ...log } = createFoldLog()
  const fold = new BlockFold({ seed: 1 }, sink)
  while (created.reader.poll(0).kind === 'events') fold.fold(created.reader.batch)
  return JSON.stringify({ log, stats: created.reader.stats, top: fold.topAccesses.publish() })
}
