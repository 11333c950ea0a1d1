import assert from 'node:assert/strict'
import { closeSync, openSync, writeSync } from 'node:fs'
import { describe, test } from 'node:test'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { EVENT } from '../../src/evm/event/type.ts'
import { BlockFold } from '../../src/evm/fold/block.ts'
import { createFoldLog, createFoldRing, foldBlocks } from '../../src/evm/fold/test-fold.ts'
import { RingFollower } from '../../src/evm/ring/follow.ts'
import { encodeRingHeader, HEADER_BYTES, readControl, ringFileBytes } from '../../src/evm/ring/layout.ts'
import { createRingReader } from '../../src/evm/ring/reader.ts'
import type { RingTarget } from '../../src/evm/ring/source.ts'
import { createMemorySource } from '../../src/evm/ring/test-memory-ring.ts'
import { type RingEvent, RingWriter } from '../../src/evm/ring/writer.ts'
import { recordBlock, type TestBlock } from '../../src/evm/test-block.ts'
import { type FileMapper, loadFileMapper } from '../../src/platform/files/mapped.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { openRingFile } from '../../src/platform/ring-file/reader.ts'
import { createRingFile, type RingFileWriter } from '../../src/platform/ring-file/writer.ts'

/** A real ring file of the smallest size, written by one thread at full speed and read by another. */
const GEOMETRY = { capacity: 2 ** 16, payloadBytes: 2 ** 27, contextBytes: 0 }
const PATTERNS = 16
const FIRST_RING_EVENTS = process.env['SLUICE_FULL'] === '1' ? 20_000_000 : 600_000
const SECOND_RING_EVENTS = 5_000
const DEADLINE_MS = process.env['SLUICE_FULL'] === '1' ? 600_000 : 60_000
const STALL_POLLS = 5_000

/** Shared between the threads: the position of each. */
const FLAG = { opened: 0, firstWritten: 1, secondWritten: 2 } as const

type WriterTask = { path: string; flags: SharedArrayBuffer; isMapped: boolean }

const WAYS = ['by position', 'through a mapping'] as const

if (isMainThread) defineTests()
else writeRings(workerData as WriterTask, await loadFileMapper())

function defineTests(): void {
  describe('a live ring, read too slowly: counts every event as read or lost, folds no block wrong, and follows a restart', () => {
    for (const writing of WAYS) {
      for (const reading of WAYS) {
        test(`written ${writing}, read ${reading}`, async () => {
          using folder = makeTestFolder()
          const mapper = await loadFileMapper()
          assert(mapper.ok)
          const flags = new SharedArrayBuffer(12)
          const seen = new Int32Array(flags)
          const task: WriterTask = { path: folder.file('ring'), flags, isMapped: writing === WAYS[1] }
          const writer = new Worker(new URL(import.meta.url), { workerData: task })
          const failed = new Promise<never>((_, reject) => writer.once('error', reject))
          const ended = new Promise<void>((resolve) => writer.once('exit', () => resolve()))
          const options = reading === WAYS[1] ? { mapper } : {}
          await Promise.race([Promise.resolve(follow(() => openRingFile(task.path, options), seen)), failed])
          await Promise.race([ended, failed])
        })
      }
    }
  })

  describe('a ring', () => {
    test('file and memory give the same events', () => {
      using folder = makeTestFolder()
      const ring = createFoldRing()
      for (let number = 1; number <= 3; number++) recordBlock(ring.recorder, patternBlock(number))
      ring.recorder.flush()
      const path = folder.file('ring')
      const handle = openSync(path, 'w')
      writeSync(handle, ring.image)
      closeSync(handle)
      const file = openRingFile(path) ?? assert.fail()
      const limits = { capacityMin: 1, capacityMax: 2 ** 20, payloadBytesMin: 1, payloadBytesMax: 2 ** 27 }
      const read = (source: Parameters<typeof createRingReader>[0]): Buffer[] => {
        const created = createRingReader(source, 'oldest', { limits, eventsMax: 100 })
        assert(created.ok)
        const { reader } = created
        const pieces: Buffer[] = []
        while (reader.poll(0).kind === 'events') {
          const { batch } = reader
          for (let at = 0; at < batch.count; at++) {
            pieces.push(
              Buffer.from(batch.descriptorBytes.slice(at * 64, at * 64 + 64)),
              Buffer.from(batch.payload(at) ?? []),
            )
          }
        }
        return pieces
      }
      const fromFile = read(file)
      assert(fromFile.length > 100)
      assert.deepEqual(fromFile, read(createMemorySource(ring.image)))
      file.close()
    })
  })
}

/** Follows the path to the end of the second ring, pausing at times until the first ring has overwritten its position. */
function follow(open: () => ReturnType<typeof openRingFile>, seen: Int32Array): void {
  const truth = Array.from({ length: PATTERNS }, (_, pattern) => foldBlocks([patternBlock(pattern)]).contention[0])
  const log = createFoldLog()
  const fold = new BlockFold({ seed: 5 }, log.sink)
  using slow = new RingFollower(open, { start: 'oldest', checkMs: 20, reader: { eventsMax: 16 } })
  const deadline = performance.now() + DEADLINE_MS
  let restarts = 0
  for (let polls = 1; performance.now() < deadline; polls++) {
    if (slow.batch !== undefined && polls % STALL_POLLS === 0) {
      waitToBeLapped(open(), slow, () => Atomics.load(seen, FLAG.firstWritten) > 0 || performance.now() > deadline)
    }
    const isLast = Atomics.load(seen, FLAG.secondWritten) > 0
    const result = slow.poll(performance.now())
    if (result.kind === 'opened') {
      Atomics.store(seen, FLAG.opened, 1)
      Atomics.notify(seen, FLAG.opened)
      if (result.previousSeqno !== undefined) restarts += 1
      if (result.previousSeqno !== undefined) fold.restart()
    } else if (result.kind === 'gap') fold.gap()
    else if (result.kind === 'events' && slow.batch !== undefined) fold.fold(slow.batch)
    else if (result.kind === 'idle' && isLast && restarts === 1) break
  }
  const written = Atomics.load(seen, FLAG.firstWritten) + Atomics.load(seen, FLAG.secondWritten)
  const { eventsRead, eventsLost, gaps } = slow.stats
  assert.equal(restarts, 1)
  assert.equal(eventsRead + eventsLost, written, 'every event is accounted for')
  assert(gaps > 0 && eventsLost > 0, 'the reader was lapped')
  assert(log.contention.length > 10, `${log.contention.length} blocks were folded`)
  for (const { data, extras } of log.contention) {
    const expected = truth[data.block_number % PATTERNS] ?? assert.fail()
    const { block_number, block_id } = data
    assert.deepEqual(
      [data, extras],
      [
        { ...expected.data, block_number, block_id },
        { ...expected.extras, block_number, block_id },
      ],
    )
  }
  assert.deepEqual(log.incomplete, [])
}

/** Polls the counters of the ring until the reader is overtaken or the ring is complete. */
function waitToBeLapped(file: ReturnType<typeof openRingFile>, { cursor }: RingFollower, isOver: () => boolean): void {
  const header = new Uint8Array(HEADER_BYTES)
  while (file !== undefined && !isOver()) {
    file.read(0, header, 0, HEADER_BYTES)
    if (readControl(header).lastSeqno > cursor + GEOMETRY.capacity) break
  }
  file?.close()
}

/** Blocks differ in what they access, so that a mixture of two equals neither. */
function patternBlock(number: number): TestBlock {
  const pattern = number % PATTERNS
  const txns = Array.from({ length: 6 + pattern }, (_, txn) => ({
    accesses: Array.from({ length: 1 + ((txn * 7 + pattern) % 5) }, (__, access) => ({
      contract: 1 + ((txn + access * pattern) % 9),
      slot: (txn * access + pattern) % 13,
      isModified: (txn + access) % 3 === 0,
    })),
    logs: txn % 3,
  }))
  return { number, txns }
}

/** The other thread: writes two rings one after another, like a restarted node. */
function writeRings({ path, flags, isMapped }: WriterTask, mapper: FileMapper): void {
  const seen = new Int32Array(flags)
  const patterns = Array.from({ length: PATTERNS }, (_, pattern) => eventsOf(patternBlock(pattern)))
  const create = (): RingFileWriter =>
    createRingFile(path, { bytes: ringFileBytes(GEOMETRY), header: encodeRingHeader(GEOMETRY), mapper, isMapped })
  {
    using first = create()
    Atomics.wait(seen, FLAG.opened, 0)
    Atomics.store(seen, FLAG.firstWritten, writeBlocks(first, patterns, FIRST_RING_EVENTS))
  }
  const second = create()
  Atomics.store(seen, FLAG.secondWritten, writeBlocks(second, patterns, SECOND_RING_EVENTS))
}

function writeBlocks(target: RingTarget, patterns: readonly RingEvent[][], eventsMin: number): number {
  const writer = new RingWriter({ geometry: GEOMETRY }, target)
  for (let number = 1; writer.lastSeqno < eventsMin; number++) {
    const blockSeqno = writer.lastSeqno + 1
    const events = (patterns[number % PATTERNS] ?? []).map((event) => ({ ...event, blockSeqno }))
    const start = events[0] as RingEvent
    start.payload = start.payload.slice()
    const view = new DataView(start.payload.buffer)
    view.setBigUint64(24, BigInt(number), false)
    view.setBigUint64(32, BigInt(number), true)
    writer.recordAll(events)
  }
  return writer.lastSeqno
}

function eventsOf(block: TestBlock): RingEvent[] {
  const { recorder, reader } = createFoldRing()
  recordBlock(recorder, block)
  recorder.flush()
  const events: RingEvent[] = []
  while (reader.poll(0).kind === 'events') {
    const { batch } = reader
    for (let at = 0; at < batch.count; at++) {
      const payload = batch.payload(at)?.slice() ?? assert.fail()
      events.push({
        type: batch.type(at),
        payload,
        timeNs: batch.timeNs(at),
        blockSeqno: 0,
        txnIndex: batch.txnIndex(at),
        accountIndex: batch.accountIndex(at),
      })
    }
  }
  assert.equal(events[0]?.type, EVENT.BLOCK_START)
  return events
}
