import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { makeBlock } from '../../../test/support/decoded-blocks.ts'
import { encodeParsedTransaction } from '../../../test/support/encode-transaction.ts'
import { createRandom } from '../../../test/support/property.ts'
import { LEADER, VERSION } from '../../../test/support/shreds.ts'
import { until } from '../../platform/process/test-wait.ts'
import { encodeEntries } from '../../solana/shred/entry.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { Engine } from './engine.ts'
import type { DecodedEvent } from './events.ts'
import { encodeEvent } from './messages.ts'
import { createOutputMemory, openOutputWriter } from './output-ring.ts'
import { createDecodedSource, type DecodedDataSet, type DecodedSlot } from './source.ts'

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
function open() {
  const memory = createOutputMemory(2 ** 23)
  const writer = openOutputWriter(memory)
  const sets: DecodedDataSet[] = []
  const slots: DecodedSlot[] = []
  const reading = createDecodedSource(memory).read({
    onDataSet: (set) => void sets.push(set),
    onSlot: (slot) => void slots.push(slot),
    onLost: () => assert.fail('nothing is lost'),
    onBatchEnd: () => undefined,
  })
  return {
    sets,
    slots,
    write: (event: DecodedEvent) => void writer.write(encodeEvent(event, NO_ADDRESSES)),
    [Symbol.dispose]: () => reading[Symbol.dispose](),
  }
}

test('an entry that came in parts is passed on whole with its last part; its transactions come with each part', async () => {
  const { transactions } = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [500_000] }, createRandom(1))
    .dataSets[0] ?? {
    transactions: [],
  }
  const batch = encodeEntries([{ numHashes: 1n, hash: new Uint8Array(32).fill(3), transactions }])
  const events = eventsOf(batch)
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

test('a transaction that no packet could carry is passed on: only the format limits what a leader puts into a block', async () => {
  const parsed: ParsedTransaction = {
    version: 'legacy',
    signatures: [new Uint8Array(64).fill(5)],
    message: new Uint8Array(),
    header: { numRequiredSignatures: 1, numReadonlySigned: 0, numReadonlyUnsigned: 1 },
    staticKeys: Array.from({ length: 200 }, (_, i) => new Uint8Array(32).fill(i)),
    recentBlockhash: new Uint8Array(32),
    instructions: [{ programIdIndex: 199, accounts: Uint8Array.of(0, 150), data: new Uint8Array(3000) }],
    addressTableLookups: [],
    config: null,
    wireLength: 0,
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
