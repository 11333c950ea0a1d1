import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EVENT } from '../event/type.ts'
import { descriptorOffset, HEADER, RING_LIMITS } from './layout.ts'
import { createRingReader } from './reader.ts'
import { createMemoryRing, createMemorySource } from './test-memory-ring.ts'
import { createSmallRing, makeEvent, openReader, SMALL_LIMITS, takeAll } from './test-ring.ts'

describe('reading', () => {
  test('an empty ring is idle, a written one returns all events in order', () => {
    const { source, writer } = createSmallRing()
    const reader = openReader(source)
    assert.deepEqual(reader.poll(0), { kind: 'idle' })
    const events = [makeEvent(1, 5), makeEvent(2, 0), makeEvent(3, 40)]
    for (const event of events) writer.record(event)
    const { taken, gaps } = takeAll(reader)
    assert.deepEqual(
      taken.map(({ seqno, payload }) => [seqno, payload]),
      events.map(({ payload }, at) => [at + 1, payload]),
    )
    assert.deepEqual(gaps, [])
    assert.deepEqual(reader.stats, { eventsRead: 3, eventsLost: 0, gaps: 0, payloadsLost: 0 })
  })

  test('returns all fields of a descriptor', () => {
    const { source, writer } = createSmallRing()
    const timeNs = 1_769_023_528_961_704_761n
    writer.record(makeEvent(1, 20, { type: EVENT.STORAGE_ACCESS, timeNs, blockSeqno: 7, txnIndex: 3, accountIndex: 2 }))
    const reader = openReader(source)
    reader.poll(0)
    const { batch } = reader
    assert.deepEqual(
      [
        batch.type(0),
        batch.timeNs(0),
        batch.blockSeqno(0),
        batch.txnIndex(0),
        batch.accountIndex(0),
        batch.payloadSize(0),
      ],
      [EVENT.STORAGE_ACCESS, timeNs, 7, 3, 2, 20],
    )
  })

  test('the descriptor array and the payload buffer wrap in the middle of a batch', () => {
    // Registers set high, as the format document advises, so that both buffers wrap after a few events.
    const control = { lastSeqno: 3 * 16 - 2, nextPayloadByte: 5 * 4096 - 64, windowStart: 4 * 4096 }
    const { source, writer, image } = createSmallRing({ control })
    const events = Array.from({ length: 8 }, (_, mark) => makeEvent(mark, 50 + mark))
    writer.recordAll(events)
    const reader = openReader(source, { seqno: control.lastSeqno + 1 })
    const { taken } = takeAll(reader)
    assert.deepEqual(
      taken.map(({ seqno, payload }) => [seqno, payload]),
      events.map(({ payload }, at) => [47 + at, payload]),
    )
    const secondDescriptor = Buffer.from(image.buffer).readBigUInt64LE(descriptorOffset(reader.geometry, 49))
    assert.equal(secondDescriptor, 49n)
  })

  test('stops at an uncommitted event although later ones are committed', () => {
    const { source, writer } = createSmallRing()
    const slow = writer.steps([makeEvent(1, 8)])
    slow.next()
    writer.record(makeEvent(2, 8))
    const reader = openReader(source)
    assert.deepEqual(reader.poll(0), { kind: 'idle' })
    for (const _ of slow);
    assert.deepEqual(
      takeAll(reader).taken.map(({ seqno }) => seqno),
      [1, 2],
    )
    assert.equal(reader.stats.eventsLost, 0)
  })

  test('an event abandoned by a dead writer becomes a gap after abandonedMs, and only that event', () => {
    const { source, writer } = createSmallRing()
    writer.record(makeEvent(1, 8))
    writer.steps([makeEvent(2, 8)]).next()
    writer.record(makeEvent(3, 8))
    const reader = openReader(source, { seqno: 1 }, { abandonedMs: 3000 })
    assert.equal(takeAll(reader, 0).taken.length, 1)
    assert.deepEqual(reader.poll(100), { kind: 'idle' })
    assert.deepEqual(reader.poll(2999), { kind: 'idle' })
    assert.deepEqual(reader.poll(3100), { kind: 'gap', from: 2, to: 2, cause: 'uncommitted' })
    assert.deepEqual(
      takeAll(reader, 3100).taken.map(({ seqno }) => seqno),
      [3],
    )
  })

  test('waits for a writer that pauses', () => {
    const { source, writer } = createSmallRing()
    const paused = writer.steps([makeEvent(1, 8)])
    paused.next()
    const reader = openReader(source)
    assert.deepEqual(reader.poll(0), { kind: 'idle' })
    assert.deepEqual(reader.poll(1_000_000), { kind: 'idle' })
    for (const _ of paused);
    assert.equal(takeAll(reader, 1_000_001).taken.length, 1)
  })

  test('an event committed during the copy is returned with all its fields', () => {
    const { source, writer, geometry } = createSmallRing()
    const event = makeEvent(1, 8)
    const steps = writer.steps([event])
    steps.next()
    // A copy that runs downwards reads the fields first and the sequence number last; the commit happens in between.
    const downwards: typeof source = {
      ...source,
      read(offset, target, targetAt, length) {
        if (offset !== descriptorOffset(geometry, 1)) return source.read(offset, target, targetAt, length)
        source.read(offset + 8, target, targetAt + 8, length - 8)
        for (const _ of steps);
        source.read(offset, target, targetAt, 8)
      },
    }
    const reader = openReader(downwards)
    assert.deepEqual(takeAll(reader).taken, [{ seqno: 1, type: event.type, payload: event.payload }])
  })

  test('after finish a missing event is a gap at once', () => {
    const { source, writer } = createSmallRing()
    writer.steps([makeEvent(1, 8)]).next()
    writer.record(makeEvent(2, 8))
    writer.steps([makeEvent(3, 8)]).next()
    const reader = openReader(source)
    assert.deepEqual(reader.poll(0), { kind: 'idle' })
    reader.finish()
    const { taken, gaps } = takeAll(reader)
    assert.deepEqual(gaps, [
      [1, 1],
      [3, 3],
    ])
    assert.deepEqual(
      taken.map(({ seqno }) => seqno),
      [2],
    )
  })
})

describe('lost events', () => {
  test('a lapped reader counts every missed event and continues with the newest', () => {
    const { source, writer } = createSmallRing({ capacity: 16 })
    const reader = openReader(source)
    for (let mark = 1; mark <= 40; mark++) writer.record(makeEvent(mark, 4))
    assert.deepEqual(reader.poll(0), { kind: 'gap', from: 1, to: 39, cause: 'lapped' })
    const { taken } = takeAll(reader)
    assert.deepEqual(taken, [{ seqno: 40, type: 18, payload: makeEvent(40, 4).payload }])
    assert.deepEqual(reader.stats, { eventsRead: 1, eventsLost: 39, gaps: 1, payloadsLost: 0 })
  })

  test('after a gap reading continues at the start of the newest block', () => {
    const { source, writer } = createSmallRing({ capacity: 16 })
    const reader = openReader(source)
    for (let mark = 1; mark <= 35; mark++) writer.record(makeEvent(mark, 4))
    writer.record(makeEvent(36, 8, { type: EVENT.BLOCK_START, blockSeqno: 36 }))
    for (let mark = 37; mark <= 40; mark++) writer.record(makeEvent(mark, 4, { blockSeqno: 36 }))
    assert.deepEqual(reader.poll(0), { kind: 'gap', from: 1, to: 35, cause: 'lapped' })
    assert.equal(takeAll(reader).taken.length, 5)
  })

  test('a lag of exactly the ring capacity loses no event', () => {
    for (const [count, lost] of [
      [16, 0],
      [17, 16],
    ] as const) {
      const { source, writer } = createSmallRing({ capacity: 16 })
      const reader = openReader(source)
      for (let mark = 1; mark <= count; mark++) writer.record(makeEvent(mark, 4))
      takeAll(reader)
      assert.equal(reader.stats.eventsLost, lost, `${count} events`)
    }
  })

  test('a payload outside the window is lost, its event is still returned', () => {
    const { source, writer } = createSmallRing({ capacity: 64, payloadBytes: 4096, windowStepBytes: 256 })
    const reader = openReader(source)
    for (let mark = 1; mark <= 5; mark++) writer.record(makeEvent(mark, 1000))
    const { taken, gaps } = takeAll(reader)
    assert.deepEqual(gaps, [])
    assert.deepEqual(
      taken.map(({ payload }) => payload !== undefined),
      [false, false, true, true, true],
    )
    assert.equal(writer.control.windowStart, 5120 - 4096 + 256)
    assert.equal(reader.stats.payloadsLost, 2)
  })

  test('a payload above eventBytesMax is lost, one larger than a batch is read', () => {
    const { source, writer } = createSmallRing()
    for (const size of [100, 600, 1200, 100]) writer.record(makeEvent(size, size))
    const { taken } = takeAll(openReader(source, { seqno: 1 }, { payloadBytes: 256, eventBytesMax: 1000 }))
    assert.deepEqual(
      taken.map(({ payload }) => payload?.length),
      [100, 600, undefined, 100],
    )
  })

  test('a last sequence number below what was read is reported as rewound', () => {
    const { source, writer, image } = createSmallRing()
    writer.recordAll([makeEvent(1, 8), makeEvent(2, 8)])
    const reader = openReader(source)
    takeAll(reader)
    Buffer.from(image.buffer).writeBigUInt64LE(1n, HEADER.lastSeqno)
    assert.deepEqual(reader.poll(0), { kind: 'rewound' })
  })
})

describe('start', () => {
  /** Two blocks of four events, then a consensus event. */
  function twoBlocks() {
    const ring = createSmallRing({ capacity: 64 })
    ring.writer.record(makeEvent(0, 8, { type: EVENT.BLOCK_VERIFIED }))
    for (const blockSeqno of [2, 6]) {
      ring.writer.record(makeEvent(blockSeqno, 8, { type: EVENT.BLOCK_START, blockSeqno }))
      for (let mark = 1; mark < 4; mark++) ring.writer.record(makeEvent(mark, 8, { blockSeqno }))
    }
    return ring
  }

  test('at the newest block', () => {
    const ring = twoBlocks()
    assert.equal(openReader(ring.source, 'newest-block').cursor, 5)
    ring.writer.record(makeEvent(1, 8, { type: EVENT.BLOCK_QC }))
    assert.equal(openReader(ring.source, 'newest-block').cursor, 9, 'an event outside a block is its own start')
  })

  test('at the newest event when the start of its block is gone', () => {
    const { source, writer } = createSmallRing({ capacity: 16 })
    writer.record(makeEvent(1, 8, { type: EVENT.BLOCK_START, blockSeqno: 1 }))
    for (let mark = 2; mark <= 20; mark++) writer.record(makeEvent(mark, 8, { blockSeqno: 1 }))
    assert.equal(openReader(source, 'newest-block').cursor, 19)
  })

  test('at the newest committed event', () => {
    const ring = twoBlocks()
    ring.writer.steps([makeEvent(1, 8)]).next()
    assert.equal(openReader(ring.source, 'newest-block').cursor, 5)
  })

  test('at the oldest complete block', () => {
    assert.equal(openReader(twoBlocks().source, 'oldest').cursor, 1)
    const { source, writer } = createSmallRing({ capacity: 16 })
    for (let mark = 1; mark <= 30; mark++) {
      const isStart = mark % 5 === 0
      writer.record(makeEvent(mark, 8, isStart ? { type: EVENT.BLOCK_START, blockSeqno: mark } : {}))
    }
    assert.equal(openReader(source, 'oldest').cursor, 19, 'skips events that the writer overwrites next')
    const snapshot = { ...source, isStatic: true }
    assert.equal(openReader(snapshot, 'oldest').cursor, 14, 'no process writes to a snapshot')
  })

  test('after a block whose BLOCK_START payload has expired', () => {
    const { source, writer } = createSmallRing({ capacity: 64 })
    writer.record(makeEvent(1, 1000, { type: EVENT.BLOCK_START, blockSeqno: 1 }))
    for (let mark = 2; mark <= 4; mark++) writer.record(makeEvent(mark, 1000))
    writer.record(makeEvent(5, 8, { type: EVENT.BLOCK_START, blockSeqno: 5 }))
    assert.equal(openReader(source, 'oldest').cursor, 4)
  })

  test('at the first event of an empty ring', () => {
    const { source, writer } = createSmallRing()
    for (const start of ['oldest', 'newest-block'] as const) assert.equal(openReader(source, start).cursor, 0)
    writer.steps([makeEvent(1, 8)]).next()
    for (const start of ['oldest', 'newest-block'] as const) assert.equal(openReader(source, start).cursor, 0)
  })
})

describe('opening', () => {
  test('refuses a live file shorter than its header says; reads a short snapshot with zeros beyond its end', () => {
    const { image, writer } = createSmallRing()
    const event = makeEvent(1, 40)
    writer.record({ ...event, payload: Uint8Array.of(...event.payload.subarray(0, 32), 0, 0, 0, 0, 0, 0, 0, 0) })
    const cut = image.subarray(0, image.length - 4096 + 32)
    const live = createRingReader(createMemorySource(cut, { isStatic: false }), 'oldest', { limits: SMALL_LIMITS })
    assert(!live.ok)
    assert.equal(live.reason, 'too-short')
    const { taken, last } = takeAll(openReader(createMemorySource(cut)))
    assert.deepEqual(taken[0]?.payload?.subarray(32), new Uint8Array(8))
    assert.equal(last.kind, 'idle')
  })

  test('refuses an empty file and a file that is no ring', () => {
    for (const bytes of [new Uint8Array(0), new Uint8Array(10), new Uint8Array(4096)]) {
      const created = createRingReader(createMemorySource(bytes), 'oldest')
      assert(!created.ok)
      assert.equal(created.reason, 'not-a-ring')
    }
  })

  test('applies the limits of the format by default', () => {
    const { source } = createMemoryRing({ capacity: 16, payloadBytes: 4096, contextBytes: 0 })
    const created = createRingReader(source, 'oldest', { limits: RING_LIMITS })
    assert(!created.ok)
    assert.equal(created.reason, 'geometry')
  })
})
