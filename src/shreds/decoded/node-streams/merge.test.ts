import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOutputMemory, openOutputWriter } from '../output-ring.ts'
import { UpstreamMerge } from './merge.ts'
import { encodeRecord, type UpstreamRecord } from './records.ts'

const RECORDS_BYTES = 64 * 1024
const SOURCE = { source: 0, stream: 1 } as const

function open(newestSlot: number | undefined = 99) {
  const memory = createOutputMemory(RECORDS_BYTES)
  const delivered: number[] = []
  const merge = new UpstreamMerge(
    memory,
    { slotsMax: 64, bytesMax: 1024 * 1024 },
    { newestSlot: () => newestSlot, deliver: ({ slot }) => void delivered.push(slot) },
  )
  const queue = openOutputWriter(memory)
  let signatures = 0
  const write = (record: UpstreamRecord): void => void queue.write(encodeRecord(record))
  const transaction = (slot: number, stream = 1): UpstreamRecord => {
    const signature = new Uint8Array(64)
    new DataView(signature.buffer).setUint32(0, ++signatures)
    const place = { slot, startIndex: 0, endIndex: 32, arrivalNanos: 1 }
    const update = new Uint8Array(200)
    return { kind: 'transaction', source: 0, stream, ...place, signature, hasUnknownTable: false, update }
  }
  return {
    ...{ merge, delivered, write, transaction },
    send(...records: UpstreamRecord[]): void {
      for (const record of records) {
        write(record)
        assert.equal(merge.poll(), true)
      }
    },
    fills: (slot: number) =>
      merge.fills({ kind: 'gap', slot, startIndex: 0, endIndex: 32, reason: 'missing', dataSets: 1 }),
  }
}

const slotsTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

test('whatever shows that something of a stream is missing ends what it fills', () => {
  const far = 2 ** 50
  const cases: [name: string, breaks: (rig: ReturnType<typeof open>) => void, fills: boolean][] = [
    ['nothing', () => undefined, true],
    ['a completed slot', ({ send }) => send({ kind: 'completed', ...SOURCE, slot: 112 }), true],
    ['a loss that the node reports', ({ send }) => send({ kind: 'incomplete', ...SOURCE, slot: 112 }), false],
    ['the end', ({ send }) => send({ kind: 'ended', ...SOURCE }), false],
    ['a slot that has left the window', ({ send, transaction }) => send(transaction(3)), false],
    ['a slot that cannot be', ({ send, transaction }) => send(transaction(far)), false],
  ]
  for (const [name, breaks, fills] of cases) {
    const rig = open()
    rig.send(...slotsTo(100, 112).map((slot) => rig.transaction(slot)))
    breaks(rig)
    if (name !== 'the end') rig.send(...slotsTo(113, 116).map((slot) => rig.transaction(slot)))
    assert.equal(rig.fills(107), fills, name)
    assert.ok(!rig.delivered.includes(far) && rig.delivered.includes(112))
  }
})

test('records that were lost on the way are counted, and end what the stream fills', () => {
  const { send, write, merge, transaction, fills } = open()
  send(...slotsTo(100, 112).map((slot) => transaction(slot)))
  for (let bytes = 0; bytes < 2 * RECORDS_BYTES; bytes += 200) write(transaction(113))
  assert.equal(merge.poll(), true)
  send(...slotsTo(113, 116).map((slot) => transaction(slot)))
  assert.ok(merge.counts.upstream.lost > 0)
  assert.equal(fills(107), false)
})

test('shreds have their turn after some records of nodes', () => {
  const { write, merge, transaction, delivered, send } = open()
  send(transaction(100))
  const count = 150
  for (let n = 0; n < count; n++) write(transaction(110))
  for (let n = 0; n < count; n++) write({ kind: 'completed', ...SOURCE, slot: 110 })
  assert.equal(merge.poll(), false, 'more waits')
  assert.equal(delivered.length, count)
  assert.equal(merge.poll(), true)
})

test('a new stream does not continue a jump of the one before', () => {
  const { send, transaction, delivered } = open()
  send(transaction(5000), transaction(5004, 2), transaction(5005, 2))
  assert.deepEqual(delivered, [])
  send(transaction(5008, 2))
  assert.deepEqual(delivered, [5008])
})

test('after a restart of the chain the streams of nodes are taken at lower slots', () => {
  const { merge, send, transaction, delivered } = open(undefined)
  send(...slotsTo(5000, 5010).map((slot) => transaction(slot)))
  send(...slotsTo(3, 20).map((slot) => transaction(slot)))
  assert.ok(!delivered.includes(20))
  merge.restart()
  send(...slotsTo(3, 20).map((slot) => transaction(slot)))
  assert.deepEqual(
    delivered.filter((slot) => slot <= 20),
    slotsTo(7, 20),
  )
})
