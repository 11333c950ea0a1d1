import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../../test/support/process/property.ts'
import { makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { until } from '../../platform/process/test-wait.ts'
import { encodeBlockMarker } from '../../solana/shred/block-marker.ts'
import { Engine } from './engine.ts'
import { createEngineCounts } from './events.ts'
import { createLookupTables } from './lookup-tables.ts'
import { type DecodedMessage, decodeMessage } from './messages.ts'
import { OutputDelivery } from './output-delivery.ts'
import { createOutputMemory, openOutputReader, openOutputWriter } from './output-ring.ts'
import { createDecodedSource, type DecodedSlot } from './source.ts'

const ENGINE = { slotsMax: 8, slotsBehindMax: 4, bytesMax: 64 * 1024 * 1024, shredsPerSlotMax: 32_768 }
const MEMORY_BYTES = 256 * 1024

function createOutput() {
  const memory = createOutputMemory(MEMORY_BYTES)
  const records = openOutputReader(memory)
  const delivery = new OutputDelivery(openOutputWriter(memory), createLookupTables({ tablesMax: 16 }))
  const read = (): DecodedMessage[] => {
    const messages: DecodedMessage[] = []
    for (let record = records.next(); record !== undefined; record = records.next()) {
      assert.equal(record.lost, 0, 'a reader lacks nothing')
      messages.push(decodeMessage(record.payload))
    }
    return messages
  }
  return { memory, delivery, read }
}

test('a data set larger than a record is a gap with its name, and its slot is not complete', () => {
  const { delivery, read } = createOutput()
  const engine = new Engine(ENGINE, (event) => delivery.deliver(event))
  const block = makeBlock({ slot: 500, parentSlot: 499, batchBytes: [2000, 100_000, 2000] }, createRandom(3))
  for (const packet of block.fecSets.flat()) engine.push(packet, 0, packet.length, 0, true)
  engine.end()
  const messages = read()
  const [, large] = block.dataSets
  assert.ok(large !== undefined)
  assert.deepEqual(
    messages.map(({ kind }) => kind),
    ['data-set', 'gap', 'data-set', 'slot-report'],
  )
  assert.deepEqual(messages[1], {
    kind: 'gap',
    slot: 500,
    startIndex: large.from * 32,
    endIndex: large.to * 32,
    reason: 'too-large',
    dataSets: 1,
  })
  const report = messages[3]
  assert.ok(report?.kind === 'slot-report')
  assert.deepEqual([report.isComplete, report.dataSets, report.dataSetsLost], [false, 2, 1])
  assert.deepEqual(delivery.takeSlots(), [report])
  assert.equal(delivery.dataSetsTooLarge, 1)
  const { slots } = delivery.countsOf(engine.counts)
  assert.deepEqual([slots.complete, slots.incomplete], [0, 1])
})

test('readers learn of a data set that was too large, and of a changed parent', async () => {
  const { memory, delivery } = createOutput()
  const slots: DecodedSlot[] = []
  using _reading = createDecodedSource(memory).read({
    onDataSet: () => undefined,
    onSlot: (slot) => void slots.push(slot),
    onLost: () => assert.fail('nothing is lost on the way'),
    onBatchEnd: () => undefined,
  })
  const marker = encodeBlockMarker({ variant: 'update-parent', parentSlot: 495, parentBlockId: new Uint8Array(32) })
  const place = { slot: 500, arrivalNanos: 0 }
  delivery.deliver({ kind: 'marker', ...place, startIndex: 32, endIndex: 64, bytes: marker, isParentUpdate: true })
  const entriesBytes = new Uint8Array(MEMORY_BYTES)
  delivery.deliver({
    ...{ kind: 'data-set', ...place, startIndex: 64, endIndex: 320, entriesBytes, entries: 1, transactions: [] },
    ...{ wasRecovered: false, isVerified: true, part: undefined },
  })
  await until('all are read', () => slots.length === 3)
  assert.deepEqual(slots, [
    { kind: 'first-shred', slot: 500, parentSlot: undefined },
    { kind: 'parent-changed', slot: 500, parentSlot: 495, voidBeforeIndex: 32 },
    {
      kind: 'lost',
      slot: 500,
      parentSlot: undefined,
      reason: 'too-large: the data set of shreds 64 to 320 was not delivered; limit: decodedDataSetBytes',
      isDecoded: true,
    },
  ])
})

test('a changed parent is announced whatever its length field and trailing bytes, and without a parent where its form is not known', async () => {
  const exact = encodeBlockMarker({ variant: 'update-parent', parentSlot: 495, parentBlockId: new Uint8Array(32) })
  const otherLength = exact.with(11, 42)
  const trailing = Uint8Array.of(...exact, 0)
  const otherVersion = exact.with(13, 2)
  for (const [bytes, parentSlot] of [
    [exact, 495],
    [otherLength, 495],
    [trailing, 495],
    [otherVersion, undefined],
  ] as const) {
    const { memory, delivery } = createOutput()
    const slots: DecodedSlot[] = []
    using _reading = createDecodedSource(memory).read({
      ...{ onDataSet: () => undefined, onLost: () => undefined, onBatchEnd: () => undefined },
      onSlot: (slot) => void slots.push(slot),
    })
    const place = { slot: 500, startIndex: 0, endIndex: 32, arrivalNanos: 0 }
    delivery.deliver({ kind: 'marker', ...place, bytes, isParentUpdate: true })
    await until('all are read', () => slots.length === 2)
    assert.deepEqual(slots[1], { kind: 'parent-changed', slot: 500, parentSlot, voidBeforeIndex: 0 })
  }
})

test('counts the transactions that are delivered without loaded addresses', () => {
  const { delivery, read } = createOutput()
  let withTables = 0
  const engine = new Engine(ENGINE, (event) => {
    if (event.kind === 'data-set')
      withTables += event.transactions.filter(({ addressTableLookups }) => addressTableLookups.length > 0).length
    delivery.deliver(event)
  })
  const block = makeBlock({ slot: 500, parentSlot: 499, batchBytes: [20_000] }, createRandom(5))
  for (const packet of block.fecSets.flat()) engine.push(packet, 0, packet.length, 0, true)
  const transactions = read().flatMap((message) => (message.kind === 'data-set' ? [...message.transactions] : []))
  assert.ok(withTables > 0 && withTables < transactions.length)
  assert.equal(transactions.filter(({ isUnresolved }) => isUnresolved).length, withTables)
  assert.equal(delivery.unresolved, withTables)
})

test('a slot is announced as complete once: by the engine, or with its report where nodes have filled its gaps', () => {
  const kindsOf = (plan: { gaps: number; isFilled: boolean; isTooLarge: boolean }) => {
    const { delivery, read } = createOutput()
    const merge = {
      takeOwn: () => undefined,
      isForgotten: () => false,
      fills: () => plan.isFilled,
      transactionsOf: () => 0,
    }
    delivery.merge = merge as unknown as NonNullable<typeof delivery.merge>
    const place = { slot: 500, arrivalNanos: 0, startIndex: 0, endIndex: 32 }
    if (plan.isTooLarge)
      delivery.deliver({
        ...{ kind: 'data-set', ...place, entriesBytes: new Uint8Array(MEMORY_BYTES), entries: 1, transactions: [] },
        ...{ wasRecovered: false, isVerified: true, part: undefined },
      })
    if (plan.gaps > 0)
      delivery.deliver({ kind: 'gap', slot: 500, startIndex: 0, endIndex: 32, reason: 'missing', dataSets: plan.gaps })
    const isComplete = plan.gaps === 0
    if (isComplete) delivery.deliver({ kind: 'slot-completed', slot: 500, parentSlot: 499, transactions: 3 })
    const report = { slot: 500, parentSlot: 499, transactions: 3, dataSets: 1, dataSetsLost: plan.gaps, isComplete }
    delivery.deliver({ kind: 'slot-report', ...report } as unknown as Parameters<typeof delivery.deliver>[0])
    return read().map(({ kind }) => kind)
  }
  const plain = { gaps: 0, isFilled: false, isTooLarge: false }
  assert.deepEqual(kindsOf(plain), ['slot-completed', 'slot-report'])
  assert.deepEqual(kindsOf({ ...plain, isTooLarge: true }), ['gap', 'slot-report'])
  assert.deepEqual(kindsOf({ ...plain, gaps: 1 }), ['gap', 'slot-report'])
  assert.deepEqual(kindsOf({ ...plain, gaps: 1, isFilled: true }), ['slot-completed', 'slot-report'])
})

test('parts of one data set, and a marker, that are larger than a record are one loss each, and leave the number of data sets right', () => {
  const { delivery, read } = createOutput()
  const place = { slot: 500, arrivalNanos: 0, startIndex: 0, endIndex: 320 }
  const set = {
    ...({ kind: 'data-set', ...place, entriesBytes: new Uint8Array(MEMORY_BYTES), entries: 1 } as const),
    ...{ transactions: [], wasRecovered: false, isVerified: true },
  }
  const part = { isContinuation: false, isContinued: false }
  for (const isLast of [false, false, true]) delivery.deliver({ ...set, part: { ...part, isLast } })
  const bytes = new Uint8Array(MEMORY_BYTES)
  delivery.deliver({ ...place, kind: 'marker', startIndex: 320, endIndex: 352, bytes, isParentUpdate: false })
  const report = { slot: 500, parentSlot: 499, transactions: 0, dataSets: 3, dataSetsLost: 0, isComplete: true }
  delivery.deliver({ kind: 'slot-report', ...report } as unknown as Parameters<typeof delivery.deliver>[0])
  const messages = read()
  // One for every part: what is around it cannot be joined.
  assert.deepEqual(
    messages.map((message) => (message.kind === 'gap' ? message.dataSets : message.kind)),
    [1, 0, 0, 1, 'slot-report'],
  )
  const reported = messages.at(-1)
  assert.ok(reported?.kind === 'slot-report')
  assert.deepEqual([reported.dataSets, reported.dataSetsLost, reported.isComplete], [2, 2, false])
  assert.equal(delivery.dataSetsTooLarge, 2)
})

test('parts of one data set that come too late are one loss, and a missing slot that a node has delivered is none', () => {
  const { delivery, read } = createOutput()
  const merge = { takeOwn: () => undefined, isForgotten: () => true, fills: () => true, transactionsOf: () => 0 }
  delivery.merge = merge as unknown as NonNullable<typeof delivery.merge>
  const set = {
    ...({ kind: 'data-set', slot: 500, arrivalNanos: 0, startIndex: 0, endIndex: 320 } as const),
    ...{ entriesBytes: new Uint8Array(100), entries: 1, transactions: [], wasRecovered: false, isVerified: true },
  }
  const part = { isContinuation: false, isContinued: false }
  for (const isLast of [false, false, true]) delivery.deliver({ ...set, part: { ...part, isLast } })
  const report = { slot: 500, parentSlot: 499, transactions: 0, dataSets: 1, dataSetsLost: 0, isComplete: true }
  delivery.deliver({ kind: 'slot-report', ...report } as unknown as Parameters<typeof delivery.deliver>[0])
  const gap = { kind: 'gap', startIndex: 0, endIndex: undefined, dataSets: 1 } as const
  delivery.deliver({ ...gap, slot: 501, reason: 'slot-missing' })
  delivery.deliver({ ...gap, slot: 502, reason: 'slot-unknown' })
  const [lost, reported, ...others] = read()
  assert.deepEqual([lost?.kind, others], ['gap', []])
  assert.ok(lost?.kind === 'gap' && reported?.kind === 'slot-report')
  assert.deepEqual([lost.reason, lost.dataSets], ['too-late', 1])
  assert.deepEqual([reported.dataSets, reported.dataSetsLost, reported.isComplete], [0, 1, false])
  const counts = createEngineCounts()
  counts.slots.complete = 1
  counts.slots.missing = 1
  const { complete, incomplete, missing } = delivery.countsOf(counts).slots
  assert.deepEqual([complete, incomplete, missing], [0, 1, 0])
  // What a node has delivered of a single slot is not known for a range of them.
  delivery.deliver({ ...gap, firstSlot: 510, slot: 600, reason: 'slot-unknown' })
  const [range] = read()
  assert.ok(range?.kind === 'gap' && range.firstSlot === 510 && range.slot === 600)
  // Nothing is kept of a slot behind its report, and a limited number of reports for the next message.
  for (let n = 0; n < 1100; n++)
    delivery.deliver({ kind: 'slot-report', ...report } as unknown as Parameters<typeof delivery.deliver>[0])
  const slots = delivery.takeSlots()
  assert.deepEqual([slots.length, slots.at(-1)?.isComplete, delivery.takeSlots()], [1024, true, []])
})
