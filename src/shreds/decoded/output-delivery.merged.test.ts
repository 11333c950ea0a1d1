import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deshredTransaction } from '../../../test/support/gateway/upstream-updates.ts'
import { createRandom } from '../../../test/support/process/property.ts'
import { makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { SubscribeUpdateDeshredTransactionSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'
import { Engine } from './engine.ts'
import type { DataSet, SlotReport } from './events.ts'
import { createLookupTables } from './lookup-tables.ts'
import { type DecodedMessage, decodeMessage } from './messages.ts'
import { UpstreamMerge } from './node-streams/merge.ts'
import { encodeRecord } from './node-streams/records.ts'
import { OutputDelivery } from './output-delivery.ts'
import { createOutputMemory, openOutputReader, openOutputWriter } from './output-ring.ts'

const ENGINE = { slotsMax: 8, slotsBehindMax: 4, bytesMax: 64 * 1024 * 1024, shredsPerSlotMax: 32_768 }
const SLOT = 500
/** Far enough before the slot that its transactions are taken from a node. */
const FIRST_SLOT = SLOT - 8

type Place = Pick<DataSet, 'slot' | 'startIndex' | 'endIndex'>

/** The delivery of the engine with the stream of one node. A record holds a quarter of the memory. */
function createRig(memoryBytes: number) {
  const memory = createOutputMemory(memoryBytes)
  const records = openOutputReader(memory)
  const upstream = createOutputMemory(4 * 1024 * 1024)
  const queue = openOutputWriter(upstream)
  const delivery = new OutputDelivery(openOutputWriter(memory), createLookupTables({ tablesMax: 4096 }))
  const merge = new UpstreamMerge(
    upstream,
    { slotsMax: 64, bytesMax: 16 * 1024 * 1024 },
    {
      newestSlot: () => FIRST_SLOT,
      deliver: (place, update, hasUnknownTable) => delivery.deliverUpstream(place, update, hasUnknownTable),
    },
  )
  delivery.merge = merge
  const sendFromNode = ({ slot, startIndex, endIndex }: Place, wire: Uint8Array): void => {
    const place = { slot, startIndex, endIndex }
    const given = deshredTransaction(place, wire)
    queue.write(encodeRecord({ kind: 'transaction', source: 0, stream: 1, ...place, arrivalNanos: 1, ...given }))
    merge.poll()
  }
  const [earlier] = decode(FIRST_SLOT, [500]).wires
  sendFromNode({ slot: FIRST_SLOT, startIndex: 0, endIndex: 32 }, earlier as Uint8Array)
  return {
    ...{ delivery, merge, sendFromNode },
    read(): DecodedMessage[] {
      const messages: DecodedMessage[] = []
      for (let record = records.next(); record !== undefined; record = records.next())
        messages.push(decodeMessage(record.payload))
      return messages
    },
  }
}

/** The data sets of a block, its report, and its transactions in wire form. */
function decode(slot: number, batchBytes: readonly number[]) {
  const block = makeBlock({ slot, parentSlot: slot - 1, batchBytes }, createRandom(slot))
  const sets: DataSet[] = []
  const reports: SlotReport[] = []
  const engine = new Engine(ENGINE, (event) => {
    if (event.kind === 'data-set') sets.push(event)
    if (event.kind === 'slot-report') reports.push(event)
  })
  for (const packet of block.fecSets.flat()) engine.push(packet, 0, packet.length, 1, true)
  while (engine.work());
  engine.end()
  const [report] = reports
  assert.ok(report !== undefined)
  return { sets, report, wires: block.dataSets.flatMap(({ transactions }) => transactions) }
}

const hasTables = ({ addressTableLookups }: DataSet['transactions'][number]) => addressTableLookups.length > 0

test('counts a transaction without loaded addresses where it is delivered, from the shreds or from a node', () => {
  const { delivery, sendFromNode, read } = createRig(1024 * 1024)
  const { sets, wires } = decode(SLOT, [20_000])
  const [set] = sets
  assert.ok(set !== undefined)
  const ofNode = Math.floor(wires.length / 2)
  for (const wire of wires.slice(0, ofNode)) sendFromNode(set, wire)
  const unresolvedOfNode = set.transactions.slice(0, ofNode).filter(hasTables).length
  const unresolved = set.transactions.filter(hasTables).length
  assert.ok(unresolvedOfNode > 0 && unresolvedOfNode < unresolved)
  assert.equal(delivery.unresolved, unresolvedOfNode)
  delivery.deliver(set)
  assert.equal(delivery.unresolved, unresolved)
  assert.equal(read().filter(({ kind }) => kind === 'upstream-transaction').length, ofNode)
})

test('transactions of a data set that is too large are taken from a node, and its slot counts those', () => {
  const { delivery, merge, sendFromNode, read } = createRig(256 * 1024)
  const { sets, report, wires } = decode(SLOT, [2000, 100_000])
  const [small, large] = sets
  assert.ok(small !== undefined && large !== undefined)
  const sent = 3
  for (const set of sets) delivery.deliver(set)
  const ofLarge = wires.slice(small.transactions.length)
  for (const wire of ofLarge.slice(0, sent)) sendFromNode(large, wire)
  assert.equal(merge.counts.first.own, small.transactions.length)
  const unresolved = [...small.transactions, ...large.transactions.slice(0, sent)].filter(hasTables).length
  assert.equal(delivery.unresolved, unresolved)
  delivery.deliver(report)
  assert.deepEqual(
    read().map(({ kind }) => kind),
    ['data-set', 'gap', ...Array(sent).fill('upstream-transaction'), 'slot-report'],
  )
  const [delivered] = delivery.takeSlots()
  assert.equal(delivered?.transactions, small.transactions.length + sent)
})

test('the report of a slot counts the transactions of delivered parts, not those of parts that are too large or too late', () => {
  const { sets, report } = decode(SLOT, [2000, 2000, 2000])
  const total = sets.reduce((sum, { transactions }) => sum + transactions.length, 0)
  const [first] = sets
  assert.ok(first !== undefined && sets.length === 3)
  const reported = (loss: 'none' | 'too-large' | 'too-late'): number | undefined => {
    const { delivery, merge } = createRig(64 * 1024)
    let isForgotten = false
    delivery.merge = {
      ...{ isForgotten: () => isForgotten, fills: () => false, changeParent: () => undefined },
      ...{ takeOwn: (set) => merge.takeOwn(set), transactionsOf: (slot) => merge.transactionsOf(slot) },
    }
    for (const [at, set] of sets.entries()) {
      const part = { isContinuation: false, isContinued: false, isLast: at === 2 }
      const place = { startIndex: first.startIndex, endIndex: sets.at(-1)?.endIndex ?? 0 }
      const entriesBytes = loss === 'too-large' && at > 0 ? new Uint8Array(64 * 1024) : set.entriesBytes
      isForgotten = loss === 'too-late' && at > 0
      delivery.deliver({ ...set, ...place, entriesBytes, part })
    }
    delivery.deliver(report)
    return delivery.takeSlots()[0]?.transactions
  }
  assert.equal(reported('none'), total)
  assert.equal(reported('too-large'), first.transactions.length)
  assert.equal(reported('too-late'), first.transactions.length)
})

test('a message of a node with more table indexes than a transaction can have is delivered as it came', () => {
  const memory = createOutputMemory(1024 * 1024)
  const records = openOutputReader(memory)
  const tables = createLookupTables({ tablesMax: 16 })
  const delivery = new OutputDelivery(openOutputWriter(memory), tables)
  const key = new Uint8Array(32).fill(7)
  const loadedOf = (indexes: number) => {
    const message = {
      ...{ header: { numRequiredSignatures: 1 }, accountKeys: [new Uint8Array(32)], versioned: true },
      addressTableLookups: [{ accountKey: key, writableIndexes: new Uint8Array(indexes) }],
    }
    const transaction = { transaction: { signatures: [new Uint8Array(64)], message } }
    const update = encodeMessage(SubscribeUpdateDeshredTransactionSchema, { slot: BigInt(SLOT), transaction })
    delivery.deliverUpstream({ slot: SLOT, startIndex: 0, endIndex: 32, arrivalNanos: 1 }, update, true)
    const record = records.next()
    const delivered = record && decodeMessage(record.payload)
    assert.ok(delivered?.kind === 'upstream-transaction')
    assert.deepEqual(delivered.update, update)
    return delivered.loaded?.writable.length
  }
  assert.equal(loadedOf(255), undefined, 'the table is requested')
  const data = new Uint8Array(56 + 32)
  data[0] = 1
  tables.update({ key, data, slot: SLOT })
  assert.deepEqual([loadedOf(255), loadedOf(256)], [255, undefined])
  assert.equal(delivery.unresolved, 2)
})

test('a transaction that comes again after a change of the parent is delivered again, and nothing of a node that is void', () => {
  const { delivery, merge, sendFromNode, read } = createRig(1024 * 1024)
  const { sets, wires } = decode(SLOT, [2000])
  const [set] = sets
  const [again, late] = wires
  assert.ok(set !== undefined && again !== undefined && late !== undefined)
  const first = { slot: SLOT, startIndex: 0, endIndex: 32 }
  const marker = { ...first, startIndex: 32, endIndex: 64 }
  const second = { ...first, startIndex: 64, endIndex: 96 }
  sendFromNode(first, again)
  delivery.deliver({ kind: 'marker', ...marker, bytes: new Uint8Array(8), isParentUpdate: true, arrivalNanos: 1 })
  sendFromNode(first, late)
  delivery.deliver({ ...set, ...second })
  sendFromNode(second, again)
  const messages = read()
  const kinds = messages.map(({ kind }) => kind)
  assert.deepEqual(kinds, ['upstream-transaction', 'marker', 'data-set'])
  const [, , delivered] = messages
  assert.ok(delivered?.kind === 'data-set' && delivered.transactions.length === wires.length)
  assert.ok(delivered.transactions.every(({ wasDelivered }) => !wasDelivered))
  assert.deepEqual([merge.counts.upstream.first, merge.counts.upstream.duplicate], [1, 1])
})
