import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { createRandom } from '../../../test/support/process/property.ts'
import { makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { copyDataSet } from '../../../test/support/shreds/decoded-sets.ts'
import { LEADER, VERSION } from '../../../test/support/shreds/rig.ts'
import { encodeParsedTransaction } from '../../../test/support/solana/encode-transaction.ts'
import { until } from '../../platform/process/test-wait.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'
import { encodeBlockMarker } from '../../solana/shred/block-marker.ts'
import { encodeEntries } from '../../solana/shred/entry.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { Engine } from './engine.ts'
import type { DecodedEvent, EngineStarted } from './events.ts'
import { encodeEvent } from './messages.ts'
import { createOutputMemory, openOutputWriter } from './output-ring.ts'
import { createDecodedSource, type DecodedDataSet, type DecodedSlot } from './source.ts'

const SMALL: ParsedTransaction = {
  version: 'legacy',
  signatures: [new Uint8Array(64).fill(5)],
  message: new Uint8Array(),
  header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 1 },
  staticKeys: [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)],
  recentBlockhash: new Uint8Array(32),
  instructions: [{ programIdIndex: 1, accounts: Uint8Array.of(0), data: new Uint8Array(8) }],
  addressTableLookups: [],
  config: null,
  wireLength: 0,
}

const NO_ADDRESSES = () => ({ ok: true, writable: [], readonly: [] }) as const

/** What an engine emits for one slot with one batch. */
function eventsOf(batch: Uint8Array): DecodedEvent[] {
  const events: DecodedEvent[] = []
  const options = { slotsMax: 4, slotsBehindMax: 4, bytesMax: 2 ** 26, shredsPerSlotMax: 32_768 }
  const engine = new Engine(options, (event) => events.push(event))
  const { sets } = makeShreds({
    slot: 10,
    parentSlot: 9,
    version: VERSION,
    batches: [batch],
    chainedRoot: new Uint8Array(32),
    leader: LEADER,
  })
  for (const { data } of sets) for (const packet of data) engine.push(packet, 0, packet.length, 1, true)
  engine.end()
  return events
}

/** Reads from a ring to which `write` appends. */
function open(onLost: (records: number) => void = () => assert.fail('nothing is lost')) {
  const memory = createOutputMemory(2 ** 23)
  const writer = openOutputWriter(memory)
  const sets: DecodedDataSet[] = []
  const slots: DecodedSlot[] = []
  const reading = createDecodedSource(memory).read({
    onDataSet: (set) => void sets.push(copyDataSet(set)),
    onSlot: (slot) => void slots.push(slot),
    onLost,
    onBatchEnd: () => undefined,
  })
  return {
    sets,
    slots,
    write: (event: DecodedEvent | EngineStarted) => void writer.write(encodeEvent(event, NO_ADDRESSES)),
    [Symbol.dispose]: () => reading[Symbol.dispose](),
  }
}

/** A batch with one entry that is longer than a part, and what an engine emits for it. */
function longEntry() {
  const block = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [500_000] }, createRandom(1))
  const transactions = block.dataSets[0]?.transactions ?? []
  const batch = encodeEntries([{ numHashes: 1n, hash: new Uint8Array(32).fill(3), transactions }])
  return { batch, transactions, events: eventsOf(batch) }
}

test('an entry that came in parts is passed on whole with its last part; its transactions come with each part', async () => {
  const { batch, transactions, events } = longEntry()
  const parts = events.filter(({ kind }) => kind === 'data-set').length
  assert.ok(parts > 2)
  using whole = open()
  using late = open()
  for (const event of events) whole.write(event)
  // This reader began between two parts.
  for (const event of events.slice(1)) late.write(event)
  await until('all parts are read', () => whole.sets.length === parts && late.sets.length === parts - 1)
  const [joined, ...others] = whole.sets.flatMap(({ entries }) => (entries === undefined ? [] : [entries]))
  assert.equal(Buffer.compare(joined ?? Buffer.of(), batch), 0)
  assert.deepEqual([others.length, whole.sets.at(-1)?.entries !== undefined], [0, true])
  const wires = whole.sets.flatMap((set) => set.transactions.map(({ parsed }) => parsed.wireLength))
  assert.deepEqual(
    wires,
    transactions.map(({ length }) => length),
  )
  assert.ok(late.sets.every(({ entries }) => entries === undefined))
  await until('the slot is completed', () => whole.slots.some(({ kind }) => kind === 'completed'))
  assert.deepEqual(
    whole.slots.map(({ kind, slot }) => [kind, slot]),
    [
      ['first-shred', 10],
      ['completed', 10],
    ],
  )
})

test('data sets of other slots between the parts of an entry are passed on, and the entry stays whole', async () => {
  const { batch, events } = longEntry()
  const small = encodeEntries([{ numHashes: 1n, hash: new Uint8Array(32), transactions: [] }])
  const [other] = eventsOf(small)
  assert.ok(other !== undefined)
  using reading = open()
  for (const event of events) {
    reading.write(event)
    reading.write({ ...other, slot: 11 })
  }
  await until('all is read', () => reading.sets.filter(({ slot }) => slot === 11).length === events.length)
  const entriesOf = (slot: number) =>
    reading.sets.flatMap((set) => (set.slot === slot && set.entries !== undefined ? [Buffer.from(set.entries)] : []))
  const [joined, ...others] = entriesOf(10)
  assert.deepEqual([joined?.equals(batch), others.length], [true, 0])
  assert.equal(entriesOf(11).length, events.length)
})

test('an entry of which a part is missing is left out', async () => {
  const { events } = longEntry()
  const parts = events.filter(({ kind }) => kind === 'data-set')
  const last = parts.at(-1)
  assert.ok(last?.kind === 'data-set' && parts.length > 2)
  const tooLarge = { kind: 'gap', slot: 10, startIndex: 0, endIndex: 32, reason: 'too-large', dataSets: 1 } as const
  for (const missing of ['not read in time', 'too large', 'of an engine that was restarted']) {
    let lost = 0
    using reading = open((records) => void (lost += records))
    reading.write(parts[0] as DecodedEvent)
    await until('the first part is read', () => reading.sets.length === 1)
    if (missing === 'too large') reading.write(tooLarge)
    else if (missing === 'of an engine that was restarted') reading.write({ kind: 'started' })
    // More than the memory holds, before the reader has its turn.
    else for (let bytes = 0; bytes < 2 ** 24; bytes += last.entriesBytes.length) reading.write(last)
    await new Promise((resolve) => setImmediate(resolve))
    reading.write({ ...last, slot: 11 })
    await until('the last part is read', () => reading.sets.at(-1)?.slot === 11)
    assert.equal(lost > 0, missing === 'not read in time')
    assert.ok(
      reading.sets.every(({ entries }) => entries === undefined),
      missing,
    )
  }
})

test('a transaction that no packet could carry is passed on: only the format limits what a leader puts into a block', async () => {
  const parsed: ParsedTransaction = {
    ...SMALL,
    staticKeys: Array.from({ length: 200 }, (_, i) => new Uint8Array(32).fill(i)),
    instructions: [{ programIdIndex: 199, accounts: Uint8Array.of(0, 150), data: new Uint8Array(3000) }],
  }
  const wire = encodeParsedTransaction(parsed)
  using reading = open()
  for (const event of eventsOf(
    encodeEntries([{ numHashes: 1n, hash: new Uint8Array(32), transactions: [wire, wire] }]),
  ))
    reading.write(event)
  await until('the data set is read', () => reading.sets.length === 1)
  const transactions = reading.sets[0]?.transactions ?? []
  assert.deepEqual(
    transactions.map((each) => [each.parsed.staticKeys.length, each.parsed.wireLength, each.isVote]),
    [
      [200, wire.length, false],
      [200, wire.length, false],
    ],
  )
})

/** A reader, and how many data sets each of its turns had. */
function openTurns(onBatchEnd: () => Promise<void> | undefined = () => undefined) {
  const memory = createOutputMemory(2 ** 23)
  const writer = openOutputWriter(memory)
  const turns: number[] = []
  let sets = 0
  // However slow the machine is, no turn ends because of its time.
  const reading = createDecodedSource(memory, () => createTimeSlices(() => 0)).read({
    onDataSet: () => void (sets += 1),
    onSlot: () => undefined,
    onLost: () => assert.fail('nothing is lost'),
    onBatchEnd() {
      turns.push(sets)
      sets = 0
      return onBatchEnd()
    },
  })
  return {
    turns,
    write: (event: DecodedEvent) => void writer.write(encodeEvent(event, NO_ADDRESSES)),
    all: () => turns.reduce((sum, taken) => sum + taken, 0),
    [Symbol.dispose]: () => reading[Symbol.dispose](),
  }
}

test('data sets of one transaction, as nodes report them, are read in turns that grow too', async () => {
  const wire = encodeParsedTransaction(SMALL)
  const entries = encodeEntries([{ numHashes: 1n, hash: new Uint8Array(32), transactions: [wire] }])
  const [set] = eventsOf(entries)
  assert.ok(set?.kind === 'data-set')
  using reading = openTurns()
  for (let i = 0; i < 2000; i++) reading.write(set)
  await until('all are read', () => reading.all() === 2000)
  assert.ok(reading.turns.length <= 8, reading.turns.join())
})

test('the next turn is not read before the end of the one before', async () => {
  const [set] = eventsOf(encodeEntries([{ numHashes: 1n, hash: new Uint8Array(32), transactions: [] }]))
  assert.ok(set?.kind === 'data-set')
  const { promise, resolve } = Promise.withResolvers<void>()
  using reading = openTurns(() => promise)
  for (let i = 0; i < 40; i++) reading.write(set)
  await until('a turn is read', () => reading.turns.length === 1)
  for (let i = 0; i < 3; i++) await new Promise((done) => setImmediate(done))
  assert.deepEqual(reading.turns, [32])
  resolve()
  await until('all are read', () => reading.all() === 40)
})

test('of what waits, the oldest data set is passed on alone, and each turn takes more than the one before until nothing waits', async () => {
  const block = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [20_000] }, createRandom(1))
  const [set] = eventsOf(block.dataSets[0]?.bytes ?? new Uint8Array())
  assert.ok(set?.kind === 'data-set' && set.transactions.length > 16 && set.transactions.length < 64)
  using reading = openTurns()
  const { turns, write, all } = reading
  for (const count of [20, 2]) {
    turns.length = 0
    for (let i = 0; i < count; i++) write(set)
    await until('all are read', () => all() === count)
    const growing = turns.slice(0, -1)
    assert.equal(turns[0], 1, `also after it had caught up: ${turns.join()}`)
    assert.deepEqual(
      growing,
      growing.toSorted((a, b) => a - b),
    )
    assert.ok(turns.length <= 6, String(turns))
    // The reader waits again.
    await new Promise((resolve) => setImmediate(resolve))
  }
})

test('a reader is informed of each slot of an outage, and of the slots before them as a range', async () => {
  const gap = { kind: 'gap', startIndex: 0, endIndex: undefined, reason: 'slot-unknown', dataSets: 1 } as const
  using reading = open()
  reading.write({ ...gap, firstSlot: 11, slot: 38 })
  reading.write({ ...gap, slot: 39 })
  reading.write({ ...gap, slot: 40, reason: 'slot-missing' })
  await until('all are read', () => reading.slots.length === 3)
  assert.deepEqual(
    reading.slots.map((slot) => [slot.kind, slot.slot, slot.kind === 'lost' && slot.reason]),
    [
      ['lost', 38, 'slot-unknown: no shred of slots 11 to 38 arrived in time; skipped slots have none'],
      ['lost', 39, 'slot-unknown: no shred of slot 39 arrived in time; skipped slots have none'],
      ['lost', 40, 'slot-missing: at least 1 data sets from shred 0 on were not decoded'],
    ],
  )
})

test('after an engine has begun anew, lower slots are announced as any other', async () => {
  const { events } = longEntry()
  const set = events.find(({ kind }) => kind === 'data-set')
  assert.ok(set?.kind === 'data-set')
  using reading = open()
  reading.write({ kind: 'started' })
  reading.write({ ...set, slot: 500 })
  reading.write({ kind: 'started' })
  reading.write({ ...set, slot: 3 })
  await until('both are read', () => reading.sets.length === 2)
  assert.deepEqual(
    reading.slots.map(({ kind, slot }) => [kind, slot]),
    [
      ['first-shred', 500],
      ['lost', 500],
      ['first-shred', 3],
    ],
  )
})

test('the first shred of each slot is announced once, before anything else of it, also where a newer slot came first', async () => {
  const [set] = eventsOf(encodeEntries([{ numHashes: 1n, hash: new Uint8Array(32), transactions: [] }]))
  assert.ok(set?.kind === 'data-set')
  const bytes = encodeBlockMarker({ variant: 'update-parent', parentSlot: 95, parentBlockId: new Uint8Array(32) })
  const place = { startIndex: 0, endIndex: 32, arrivalNanos: 1 }
  using reading = open()
  for (const slot of [101, 100, 101, 100]) reading.write({ ...set, slot })
  reading.write({ ...place, kind: 'marker', slot: 99, bytes, isParentUpdate: true })
  reading.write({ ...set, slot: 99 })
  await until('all are read', () => reading.sets.length === 5)
  assert.deepEqual(
    reading.slots.map(({ kind, slot }) => [kind, slot]),
    [
      ['first-shred', 101],
      ['first-shred', 100],
      ['first-shred', 99],
      ['parent-changed', 99],
    ],
  )
})
