import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExecRecorder } from '../event/recorder.ts'
import { EVENT } from '../event/type.ts'
import { descriptorOffset, HEADER } from './layout.ts'
import type { RingTarget } from './source.ts'
import { createSmallRing, decodeAll, makeEvent, openReader, takeAll } from './test-ring.ts'
import { RingWriter } from './writer.ts'

test('writes in the order of the format: counters, cleared descriptor, payload, committed descriptor', () => {
  const { geometry } = createSmallRing()
  const writes: [place: number, bytes: number][] = []
  const target: RingTarget = { write: (position, bytes) => writes.push([position, bytes.length]) }
  const writer = new RingWriter({ geometry, windowStepBytes: 256 }, target)
  writer.record(makeEvent(1, 20))
  const descriptor = descriptorOffset(geometry, 1)
  assert.deepEqual(writes, [
    [HEADER.lastSeqno, 16],
    [descriptor, 64],
    [descriptor + 16 * 64, 32],
    [descriptor, 64],
  ])
})

test('moves the window as in the example of the format', () => {
  const geometry = { capacity: 2 ** 16, payloadBytes: 2 ** 27, contextBytes: 0 }
  let windowStart: bigint | undefined
  const target: RingTarget = {
    write(position, bytes) {
      if (position === HEADER.windowStart) windowStart = new DataView(bytes.buffer).getBigUint64(0, true)
    },
  }
  const control = { lastSeqno: 0, nextPayloadByte: 117_440_512, windowStart: 0 }
  const writer = new RingWriter({ geometry, control }, target)
  assert.equal(windowStart, 0n)
  writer.record(makeEvent(1, 96))
  assert.equal(windowStart, 16_777_216n)
})

test('a group becomes readable with its last write, not before', () => {
  const { source, writer } = createSmallRing()
  const steps = writer.steps([makeEvent(1, 8), makeEvent(2, 8)])
  const counts: number[] = []
  while (steps.next().done !== true) counts.push(takeAll(openReader(source)).taken.length)
  assert.deepEqual(counts, [0, 0, 0, 2])
})

test('numbers that are left out are a gap, also where their descriptors had other events', () => {
  const { source, writer } = createSmallRing({ capacity: 16 })
  const reader = openReader(source, { seqno: 1 }, { abandonedMs: 0 })
  for (let mark = 1; mark <= 14; mark++) writer.record(makeEvent(mark, 8))
  assert.equal(takeAll(reader).taken.length, 14)
  writer.leaveOut(4)
  assert.equal(writer.lastSeqno, 18)
  assert.deepEqual(takeAll(reader).gaps, [], 'while there is no later event')
  assert.equal(writer.record(makeEvent(19, 8)), 19)
  const { taken, gaps } = takeAll(reader)
  assert.deepEqual(gaps, [[15, 18]])
  assert.deepEqual(
    taken.map(({ seqno, payload }) => [seqno, payload]),
    [[19, makeEvent(19, 8).payload]],
  )
  const late = takeAll(openReader(source, { seqno: 4 }, { abandonedMs: 0 }))
  assert.deepEqual([late.taken.length, late.gaps], [12, [[15, 18]]], 'of 16 descriptors four have no event')
})

test('an event too large for the ring is recorded as RECORD_ERROR with its truncated payload and its context', () => {
  const { source, writer } = createSmallRing({ payloadBytes: 2 ** 17, windowStepBytes: 2 ** 10 })
  const limit = 2 ** 17 - 2 ** 11
  const fits = makeEvent(1, limit - 16)
  const dropped = makeEvent(2, limit - 15, { type: EVENT.TXN_CALL_FRAME, blockSeqno: 9, txnIndex: 4 })
  writer.record(fits)
  const reader = openReader(source)
  reader.poll(0)
  assert.equal(reader.batch.type(0), fits.type)
  writer.record(dropped)
  reader.poll(0)
  const { batch } = reader
  assert.deepEqual(
    [batch.type(0), batch.blockSeqno(0), batch.txnIndex(0), batch.payloadSize(0)],
    [EVENT.RECORD_ERROR, 9, 4, 8192],
  )
  const [decoded] = decodeAll(openReader(source, { seqno: 2 }))
  assert(decoded?.ok === true && decoded.event.name === 'RECORD_ERROR')
  const { truncated_payload, ...fields } = decoded.event.payload
  assert.deepEqual(fields, {
    error_type: 2,
    dropped_event_type: EVENT.TXN_CALL_FRAME,
    truncated_payload_size: 8176,
    requested_payload_size: BigInt(limit - 15),
  })
  assert.equal(truncated_payload, `0x${Buffer.from(dropped.payload.subarray(0, 8176)).toString('hex')}`)
})

test('splits many events into groups of at most half the ring', () => {
  const { source, writer } = createSmallRing({ capacity: 64, payloadBytes: 8192, windowStepBytes: 512 })
  const events = Array.from({ length: 40 }, (_, mark) => makeEvent(mark, 100))
  writer.recordAll(events)
  assert.equal(writer.lastSeqno, 40)
  assert.deepEqual(
    takeAll(openReader(source)).taken.map(({ payload }) => payload),
    events.map(({ payload }) => payload),
  )
})

test('the recorder sets the block of every event, and none after the block has ended', () => {
  const { source, writer } = createSmallRing({ capacity: 64, payloadBytes: 8192 })
  const recorder = new ExecRecorder(writer)
  const at = { timeNs: 1n }
  recorder.add('BLOCK_QC', {}, at)
  assert.equal(recorder.add('BLOCK_START', { txn_count: 1n }, at), 2)
  recorder.add('TXN_PERF_EVM_ENTER', {}, { ...at, txnIndex: 0 })
  recorder.add('BLOCK_FINALIZED', {}, at)
  recorder.add('EVM_ERROR', {}, { ...at, txnIndex: 0 })
  recorder.add('BLOCK_END', {}, at)
  recorder.add('BLOCK_VERIFIED', {}, at)
  recorder.flush()
  recorder.add('BLOCK_START', {}, at)
  recorder.add('BLOCK_REJECT', { reason: 3 }, at)
  recorder.add('BLOCK_START', {}, at)
  recorder.add('EVM_ERROR', {}, at)
  recorder.add('TXN_END', {}, at)
  recorder.flush()
  const positions = decodeAll(openReader(source)).map((decoded) =>
    decoded.ok ? [decoded.event.blockSeqno, decoded.event.txnIndex] : [],
  )
  assert.deepEqual(positions, [
    [null, null],
    [2, null],
    [2, 0],
    [null, null],
    [2, 0],
    [2, null],
    [null, null],
    [8, null],
    [8, null],
    [10, null],
    [10, null],
    [null, null],
  ])
})
