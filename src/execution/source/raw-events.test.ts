import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RawEvent } from '../../contract/stream-events.ts'
import { ExecRecorder } from '../../evm/event/recorder.ts'
import { PAYLOAD_LOST } from '../../evm/ring/event-batch.ts'
import { createSmallRing, openReader } from '../../evm/ring/test-ring.ts'
import { RawEvents } from './raw-events.ts'

test('block numbers above 2^53 - 1 are strings in raw events, inside and outside a block', () => {
  for (const [block_number, shown] of [
    [2n ** 53n - 1n, 9_007_199_254_740_991],
    [2n ** 53n, '9007199254740992'],
    [2n ** 53n + 2n, '9007199254740994'],
    [2n ** 63n, '9223372036854775808'],
  ] as const) {
    const ring = createSmallRing({ capacity: 64 })
    const recorder = new ExecRecorder(ring.writer)
    recorder.add('BLOCK_START', { block_number }, { timeNs: 1n })
    recorder.add('BLOCK_END', {}, { timeNs: 2n })
    recorder.flush()
    const qc = new ExecRecorder(ring.writer)
    qc.add('BLOCK_QC', { block_number }, { timeNs: 3n })
    qc.flush()
    const raw = new RawEvents()
    raw.select({ names: ['BlockStart', 'BlockEnd', 'BlockQC'], version: 1 })
    raw.applySelection()
    const reader = openReader(ring.source)
    const events: RawEvent[] = []
    while (reader.poll(0).kind === 'events') for (let at = 0; at < reader.batch.count; at++) raw.add(reader.batch, at)
    for (const { json } of raw.takeFrame() ?? []) events.push(JSON.parse(json) as RawEvent)
    assert.deepEqual(
      events.map(({ event_name, block_number: found }) => [event_name, found]),
      [
        ['BlockStart', shown],
        ['BlockEnd', shown],
        ['BlockQC', shown],
      ],
    )
  }
})

test('events of a block whose BLOCK_START payload has expired have no block number', () => {
  const ring = createSmallRing({ capacity: 64 })
  const recorder = new ExecRecorder(ring.writer)
  recorder.add('BLOCK_START', { block_number: 812n }, { timeNs: 1n })
  recorder.add('BLOCK_END', {}, { timeNs: 2n })
  recorder.add('BLOCK_START', { block_number: 813n }, { timeNs: 3n })
  recorder.add('BLOCK_END', {}, { timeNs: 4n })
  recorder.flush()
  const raw = new RawEvents()
  raw.select({ names: ['BlockEnd'], version: 1 })
  raw.applySelection()
  const reader = openReader(ring.source)
  assert.equal(reader.poll(0).kind, 'events')
  const { batch } = reader
  assert.equal(batch.count, 4)
  batch.payloadAt[0] = PAYLOAD_LOST
  for (let at = 0; at < batch.count; at++) raw.add(batch, at)
  assert.deepEqual(
    raw.takeFrame()?.map(({ json }) => (JSON.parse(json) as RawEvent).block_number),
    [null, 813],
  )
})
