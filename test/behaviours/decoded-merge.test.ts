import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { Engine } from '../../src/shreds/decoded/engine.ts'
import type { SlotReport } from '../../src/shreds/decoded/events.ts'
import { createLookupTables } from '../../src/shreds/decoded/lookup-tables.ts'
import { encodeUpstreamDelivery } from '../../src/shreds/decoded/messages.ts'
import { UpstreamMerge } from '../../src/shreds/decoded/node-streams/merge.ts'
import { encodeRecord, type UpstreamRecord } from '../../src/shreds/decoded/node-streams/records.ts'
import { OutputDelivery } from '../../src/shreds/decoded/output-delivery.ts'
import { createOutputMemory, openOutputWriter } from '../../src/shreds/decoded/output-ring.ts'
import { createDecodedSource, type DecodedDataSet, type DecodedSlot } from '../../src/shreds/decoded/source.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { parseTransaction } from '../../src/solana/transaction/transaction.ts'
import { deshredTransaction } from '../support/gateway/upstream-updates.ts'
import { createRandom } from '../support/process/property.ts'
import { type MadeBlock, makeBlock } from '../support/shreds/decoded-blocks.ts'
import { copyDataSet } from '../support/shreds/decoded-sets.ts'

const ENGINE = { slotsMax: 64, slotsBehindMax: 8, bytesMax: 64 * 1024 * 1024, shredsPerSlotMax: 32_768 }
const FIRST = 500

/** The engine's thread without a thread: shreds and records of a node in the order of the test. */
function createRig(window = { slotsMax: 64, bytesMax: 32 * 1024 * 1024 }) {
  const output = createOutputMemory(64 * 1024 * 1024)
  const records = createOutputMemory(16 * 1024 * 1024)
  const writer = openOutputWriter(output)
  const delivery = new OutputDelivery(writer, createLookupTables({ tablesMax: 16 }))
  const engine = new Engine(ENGINE, (event) => delivery.deliver(event))
  const merge = new UpstreamMerge(records, window, {
    newestSlot: () => engine.newestSlot,
    deliver: (place, update, hasUnknownTable) => delivery.deliverUpstream(place, update, hasUnknownTable),
  })
  delivery.merge = merge
  const sets: DecodedDataSet[] = []
  const slots: DecodedSlot[] = []
  const reading = createDecodedSource(output).read({
    onDataSet: (set) => void sets.push(copyDataSet(set)),
    onSlot: (slot) => void slots.push(slot),
    onLost: () => assert.fail('nothing is lost on the way'),
    onBatchEnd: () => undefined,
  })
  const queue = openOutputWriter(records)
  const reports: SlotReport[] = []
  return {
    ...{ engine, merge, delivery, sets, slots, reports },
    node(record: UpstreamRecord): void {
      queue.write(encodeRecord(record))
      assert.equal(merge.poll(), true)
    },
    push: (packet: Uint8Array) => engine.push(packet, 0, packet.length, 1e9, true),
    async end(): Promise<void> {
      engine.end()
      reports.push(...delivery.takeSlots())
      writer.write(encodeUpstreamDelivery({ slot: 1, startIndex: 0, endIndex: 0, arrivalNanos: 0 }, new Uint8Array()))
      await until('all is read', () => sets.at(-1)?.slot === 1)
      sets.pop()
    },
    [Symbol.dispose]: () => reading[Symbol.dispose](),
  }
}

function blocks(count: number, seed: number): MadeBlock[] {
  let chainedRoot = new Uint8Array(32)
  return Array.from({ length: count }, (_, i) => {
    const slot = FIRST + i
    const block = makeBlock(
      { slot, parentSlot: slot - 1, chainedRoot, batchBytes: [3000, 3000, 3000] },
      createRandom(seed + i),
    )
    chainedRoot = Uint8Array.from(block.lastRoot)
    return block
  })
}

/** What a node sends for a block, transaction by transaction. */
function nodeRecords({ slot, dataSets }: MadeBlock, stream = 1): UpstreamRecord[] {
  return dataSets.flatMap(({ from, to, transactions }) =>
    transactions.map((wire): UpstreamRecord => {
      const place = { slot, startIndex: from * 32, endIndex: to * 32 }
      return { kind: 'transaction', source: 0, stream, ...place, arrivalNanos: 1e9, ...deshredTransaction(place, wire) }
    }),
  )
}

const signatureOf = (wire: Uint8Array) => {
  const parse = parseTransaction(wire)
  assert.ok(parse.ok)
  return encodeBase58(parse.transaction.signatures[0] as Uint8Array)
}
const signaturesOf = (block: MadeBlock) => block.dataSets.flatMap(({ transactions }) => transactions.map(signatureOf))
const received = (sets: readonly DecodedDataSet[], slot: number) =>
  sets
    .filter((set) => set.slot === slot)
    .flatMap(({ transactions }) => transactions.map(({ parsed }) => encodeBase58(parsed.signatures[0] as Uint8Array)))

test('whichever source is first, each transaction comes once, complete, and in the order of its data set', async () => {
  for (let seed = 1; seed <= 8; seed++) {
    const random = createRandom(seed)
    using rig = createRig()
    const made = blocks(12, seed * 100)
    for (const block of made) {
      const shreds = block.fecSets.flat()
      const records = nodeRecords(block)
      // In the order of each source, mixed at random.
      while (shreds.length + records.length > 0) {
        const isNode = random(shreds.length + records.length * 20) >= shreds.length
        const record = isNode ? records.shift() : undefined
        if (record !== undefined) rig.node(record)
        else if (shreds.length > 0) rig.push(shreds.shift() as Uint8Array)
      }
    }
    await rig.end()
    for (const block of made) {
      assert.deepEqual(received(rig.sets, block.slot), signaturesOf(block), `slot ${block.slot}, seed ${seed}`)
      const entries = rig.sets.filter(({ slot, entries: given }) => slot === block.slot && given !== undefined)
      assert.equal(entries.length, block.dataSets.length, 'entries are those of the shreds, once')
    }
    assert.ok(rig.reports.every(({ isComplete }) => isComplete))
    const { first, upstream } = rig.merge.counts
    assert.ok(first.own > 0 && first.upstream > 0)
    assert.equal(first.own + first.upstream, made.flatMap(signaturesOf).length)
    assert.equal(upstream.first + upstream.duplicate + upstream.late, made.flatMap(signaturesOf).length)
  }
})

test('a data set that the shreds lack and a node has delivered is not lost; one that neither has is', async () => {
  using rig = createRig()
  const made = blocks(24, 7)
  const lost = { filled: FIRST + 8, both: FIRST + 10 }
  for (const block of made) {
    const { slot } = block
    const [, middle] = block.dataSets
    assert.ok(middle !== undefined)
    const isLost = slot === lost.filled || slot === lost.both
    for (const [set, packets] of block.fecSets.entries())
      if (!isLost || set < middle.from || set >= middle.to) for (const packet of packets) rig.push(packet)
    for (const record of nodeRecords(block)) {
      assert.ok(record.kind === 'transaction')
      if (slot !== lost.both || record.startIndex !== middle.from * 32) rig.node(record)
    }
  }
  await rig.end()
  const reportOf = (slot: number) => rig.reports.find((report) => report.slot === slot)
  for (const block of made) {
    const { slot } = block
    const report = reportOf(slot)
    assert.equal(report?.isComplete, slot !== lost.both, `slot ${slot}`)
    if (slot === lost.both) continue
    assert.deepEqual(received(rig.sets, slot).sort(), signaturesOf(block).sort())
    assert.equal(report?.transactions, signaturesOf(block).length)
  }
  assert.deepEqual([reportOf(lost.filled)?.dataSetsFromUpstream, reportOf(lost.filled)?.dataSetsLost], [1, 0])
  assert.equal(reportOf(lost.both)?.dataSetsLost, 1)
  assert.deepEqual(
    rig.slots.filter(({ kind }) => kind === 'lost').map(({ slot }) => slot),
    [lost.both],
  )
  assert.equal(rig.merge.counts.dataSetsFilled, 1)
  const { complete, incomplete } = rig.delivery.countsOf(rig.engine.counts).slots
  assert.deepEqual([complete, incomplete], [made.length - 1, 1])
})

test('a node that loses its stream within a slot fills nothing of it', async () => {
  using rig = createRig()
  const made = blocks(24, 9)
  const broken = FIRST + 8
  for (const block of made) {
    const [, middle] = block.dataSets
    assert.ok(middle !== undefined)
    for (const [set, packets] of block.fecSets.entries())
      if (block.slot !== broken || set < middle.from || set >= middle.to) for (const packet of packets) rig.push(packet)
    const records = nodeRecords(block, block.slot <= broken ? 1 : 2)
    for (const record of records) rig.node(record)
    if (block.slot === broken) rig.node({ kind: 'ended', source: 0, stream: 1 })
  }
  await rig.end()
  assert.deepEqual(
    rig.reports.filter(({ isComplete }) => !isComplete).map(({ slot }) => slot),
    [broken],
  )
})

test('shreds of a slot that has left the window are not delivered again, and reported', async () => {
  using rig = createRig({ slotsMax: 8, bytesMax: 1024 * 1024 })
  const made = blocks(24, 11)
  const late = made[6] as MadeBlock
  for (const block of made) for (const record of nodeRecords(block)) rig.node(record)
  for (const packet of late.fecSets.flat()) rig.push(packet)
  await rig.end()
  assert.deepEqual(received(rig.sets, late.slot), signaturesOf(late))
  const reasons = rig.slots.flatMap((slot) => (slot.kind === 'lost' ? [slot.reason] : []))
  assert.equal(reasons.length, late.dataSets.length)
  assert.match(reasons[0] ?? '', /^too-late: .*limit: decodedMergeSlots$/)
})

test('a slot that a node has wrong ends nothing: the window stays where the shreds and the other messages are', async () => {
  const far = 2 ** 50
  for (const [name, at] of [
    ['the first message of the first stream', 0],
    ['a message within a stream', 8],
    ['the first message of a new stream', 12],
  ] as const) {
    using rig = createRig()
    const made = blocks(20, 13)
    const wrong = nodeRecords(made[0] as MadeBlock)[0] as Extract<UpstreamRecord, { kind: 'transaction' }>
    for (const [i, block] of made.entries()) {
      const stream = i >= 12 ? 2 : 1
      if (i === at) {
        rig.node({ ...wrong, stream, slot: far })
        rig.node({ kind: 'completed', source: 0, stream, slot: far })
      }
      for (const record of nodeRecords(block, stream)) rig.node(record)
      for (const packet of block.fecSets.flat()) rig.push(packet)
    }
    await rig.end()
    for (const block of made) assert.deepEqual(received(rig.sets, block.slot), signaturesOf(block), name)
    const taken = made.slice(4).flatMap(signaturesOf).length
    assert.ok(rig.merge.counts.first.upstream >= taken, `${name}: ${rig.merge.counts.first.upstream} of ${taken}`)
    assert.deepEqual(
      rig.slots.filter(({ kind }) => kind === 'lost'),
      [],
      name,
    )
  }
})

test('a completed slot that a node has wrong does not hide what it has delivered', async () => {
  using rig = createRig()
  const made = blocks(24, 15)
  for (const [i, block] of made.entries()) {
    if (i === 2) rig.node({ kind: 'completed', source: 0, stream: 1, slot: 2 ** 50 })
    const isLost = block.slot === FIRST + 12
    for (const packet of isLost ? (block.fecSets[0] ?? []) : block.fecSets.flat()) rig.push(packet)
    for (const record of nodeRecords(block)) rig.node(record)
    rig.node({ kind: 'completed', source: 0, stream: 1, slot: block.slot })
  }
  await rig.end()
  assert.deepEqual(
    rig.reports.filter(({ isComplete }) => !isComplete).map(({ slot }) => slot),
    [],
  )
})

test('a stream far ahead of everything is taken once it goes on while nothing else does, and not before', async () => {
  const later = (block: MadeBlock): MadeBlock => ({ ...block, slot: block.slot + 1_000_000 })
  using rig = createRig()
  const made = blocks(20, 17)
  for (const block of made.slice(0, 8)) for (const packet of block.fecSets.flat()) rig.push(packet)
  // The shreds go on: the node is one of another chain.
  for (const block of made.slice(8, 14)) {
    for (const record of nodeRecords(later(block))) rig.node(record)
    for (const packet of block.fecSets.flat()) rig.push(packet)
  }
  assert.equal(rig.merge.counts.first.upstream, 0)
  // The shreds have ended: it is the only source.
  for (const block of made.slice(14)) for (const record of nodeRecords(later(block))) rig.node(record)
  await rig.end()
  const [first, ...rest] = made.slice(18).map(later)
  assert.ok(first !== undefined && rig.merge.counts.first.upstream > 0)
  for (const block of rest) assert.deepEqual(received(rig.sets, block.slot), signaturesOf(block))
})
