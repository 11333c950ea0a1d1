import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { createRandom, repeatsOf } from '../../../test/support/process/property.ts'
import { type BlockPlan, type MadeBlock, makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { LEADER, VERSION } from '../../../test/support/shreds/rig.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { Engine, type EngineOptions } from './engine.ts'
import type { DataSet, DecodedEvent, Gap, SlotReport } from './events.ts'
import { FEC_SET_BYTES } from './shred-cells.ts'

const MIB = 1024 * 1024
const DEFAULTS: EngineOptions = { slotsMax: 64, slotsBehindMax: 32, bytesMax: 64 * MIB, shredsPerSlotMax: 32_768 }

/** An engine and what it has emitted. */
function open(options: Partial<EngineOptions> = {}) {
  const events: DecodedEvent[] = []
  const engine = new Engine({ ...DEFAULTS, ...options }, (event) => events.push(event))
  let arrival = 0
  return {
    engine,
    events,
    push: (packets: readonly Uint8Array[], isVerified = true) =>
      packets.map((packet) => engine.push(packet, 0, packet.length, ++arrival, isVerified)),
    dataSets: () => events.filter((event): event is DataSet => event.kind === 'data-set'),
    gaps: () => events.filter((event): event is Gap => event.kind === 'gap'),
    reports: () => events.filter((event): event is SlotReport => event.kind === 'slot-report'),
  }
}

function blockOf(slot: number, batchBytes: readonly number[], change: Partial<BlockPlan> = {}, seed = slot): MadeBlock {
  return makeBlock({ slot, parentSlot: slot - 1, batchBytes, ...change }, createRandom(seed))
}

const packetsOf = (block: MadeBlock): Uint8Array[] => block.fecSets.flat()
const dataOf = (block: MadeBlock): Uint8Array[] => block.fecSets.flatMap((set) => set.slice(0, 32))

test('a data set is emitted with the shred that completes it, with the time of that shred', () => {
  const { push, events, dataSets } = open()
  const block = blockOf(10, [500, 500])
  const data = dataOf(block)
  push(data.slice(0, 31))
  assert.equal(events.length, 0)
  push(data.slice(31, 32))
  assert.deepEqual(
    dataSets().map(({ startIndex, endIndex, arrivalNanos, wasRecovered, isVerified }) => [
      startIndex,
      endIndex,
      arrivalNanos,
      wasRecovered,
      isVerified,
    ]),
    [[0, 32, 32, false, true]],
  )
})

test('the 32nd shred of any kind completes a FEC set, and further shreds change nothing', () => {
  const { push, dataSets, engine, reports } = open()
  const [set] = blockOf(10, [25_000]).fecSets
  assert.ok(set)
  push(set.slice(33))
  assert.equal(dataSets().length, 0)
  push(set.slice(5, 6))
  assert.deepEqual(
    dataSets().map(({ arrivalNanos, wasRecovered }) => [arrivalNanos, wasRecovered]),
    [[32, true]],
  )
  assert.deepEqual(new Set(push(set)), new Set(['accepted', 'duplicate']))
  assert.equal(dataSets().length, 1)
  assert.equal(engine.heldSets, 0)
  engine.end()
  assert.deepEqual([reports()[0]?.shreds, reports()[0]?.duplicates], [64, 32])
})

test('a data set without its predecessor waits until one shred shows that it ended there', () => {
  const { push, dataSets } = open()
  const block = blockOf(10, [500, 500, 500])
  push(block.fecSets[2] ?? [])
  push(block.fecSets[1]?.slice(0, 31) ?? [])
  assert.equal(dataSets().length, 0)
  push(block.fecSets[1]?.slice(31, 32) ?? [])
  assert.deepEqual(
    dataSets().map(({ startIndex }) => startIndex),
    [64],
    'the set before it was completed by the same shred, and its start is not known',
  )
  push(block.fecSets[0]?.slice(31, 32) ?? [])
  assert.deepEqual(
    dataSets().map(({ startIndex }) => startIndex),
    [64, 32],
  )
})

test('two versions of a FEC set are never mixed: one is delivered, and the slot is conflicting', () => {
  const seeds = repeatsOf({ short: 20, full: 200 })
  for (let seed = 0; seed < seeds; seed++) {
    const random = createRandom(seed)
    const plans = [
      [30_000, 500],
      [500, 60_000, 500],
      [500, 500],
    ]
    const versions = [1, 2].map((version) => blockOf(10, plans[random(3)] as number[], {}, seed * 10 + version))
    const { push, dataSets, engine, reports } = open()
    const packets = versions.flatMap(packetsOf).filter(() => random(4) > 0)
    for (let i = packets.length - 1; i > 0; i--) {
      const j = random(i + 1)
      ;[packets[i], packets[j]] = [packets[j] as Uint8Array, packets[i] as Uint8Array]
    }
    push(packets)
    engine.end()
    const indexes = new Set<number>()
    for (const { startIndex, endIndex, entriesBytes } of dataSets()) {
      for (let i = startIndex; i < endIndex; i++) {
        assert.ok(!indexes.has(i), `index ${i} is delivered twice, seed ${seed}`)
        indexes.add(i)
      }
      const isOfOneVersion = versions.some(({ dataSets: made }) =>
        made.some(({ from, bytes }) => from * 32 === startIndex && Buffer.compare(bytes, entriesBytes) === 0),
      )
      assert.ok(isOfOneVersion, `seed ${seed}`)
    }
    assert.ok(indexes.size > 0)
    assert.equal(reports()[0]?.isConflicting, true)
    assert.ok(engine.counts.fecSetsConflicting > 0)
    assert.equal(engine.heldSets, 0)
  }
})

test('a leader that signs many versions of its FEC sets takes a bounded number of them', () => {
  const { push, engine } = open()
  const outcomes = Array.from({ length: 80 }, (_, seed) => push(packetsOf(blockOf(10, [500], {}, seed)).slice(0, 1)))
  assert.equal(outcomes.flat().filter((outcome) => outcome === 'accepted').length, 65)
  assert.equal(engine.counts.shreds['too-many-versions'], 15)
  assert.ok(engine.heldSets <= 65)
})

test('shreds of the same slot with different parents are counted, and the slot is conflicting', () => {
  const { push, engine, reports } = open()
  const one = blockOf(10, [500, 500])
  const other = blockOf(10, [500, 500], { parentSlot: 8 })
  push(one.fecSets[0] ?? [])
  push(other.fecSets[1] ?? [])
  engine.end()
  assert.equal(engine.counts.parentsConflicting, 1)
  assert.deepEqual([reports()[0]?.isConflicting, reports()[0]?.parentSlot], [true, 9])
})

test('a slot is closed by age: what it lacks is a gap, its late shreds are counted, and no memory stays', () => {
  const { push, engine, gaps, reports } = open({ slotsBehindMax: 4 })
  const old = blockOf(10, [500, 500, 500])
  push(old.fecSets[0] ?? [])
  push(old.fecSets[1]?.slice(0, 31) ?? [])
  for (const slot of [11, 12, 13, 14]) push(packetsOf(blockOf(slot, [500])))
  assert.equal(reports().length, 0)
  push(packetsOf(blockOf(15, [500])))
  assert.deepEqual(
    gaps().map(({ slot, startIndex, endIndex, reason, dataSets }) => [slot, startIndex, endIndex, reason, dataSets]),
    [[10, 32, undefined, 'missing', 1]],
  )
  const [report] = reports()
  assert.deepEqual(
    [report?.slot, report?.closedBy, report?.isComplete, report?.dataSets, report?.fecSetsNotRecoverable],
    [10, 'age', false, 1, 1],
  )
  assert.deepEqual(push(old.fecSets[2]?.slice(0, 1) ?? []), ['late'])
  assert.equal(engine.heldSets, 0)
  assert.deepEqual([engine.counts.slots.age, engine.counts.slots.incomplete], [1, 1])
})

test('a slot of which nothing arrived is a gap, once its child names it', () => {
  const { push, engine, gaps } = open()
  push(packetsOf(blockOf(10, [500])))
  push(packetsOf(blockOf(12, [500])))
  engine.end()
  assert.deepEqual(
    gaps().map(({ slot, reason }) => [slot, reason]),
    [[11, 'slot-missing']],
  )
})

test('an outage of many slots is a gap for each slot of it, in order', () => {
  const { push, engine, gaps } = open()
  push(packetsOf(blockOf(10, [500])))
  push(packetsOf(blockOf(40, [500])))
  engine.end()
  assert.deepEqual(
    gaps().map(({ slot, reason }) => [slot, reason]),
    [...Array.from({ length: 28 }, (_, i) => [11 + i, 'slot-unknown']), [39, 'slot-missing']],
  )
  assert.deepEqual([engine.counts.gaps, engine.counts.slots.missing], [29, 1])
})

test('slots between a slot and the parent that it names are skipped: they are no gap', () => {
  const { push, engine, gaps } = open()
  push(packetsOf(blockOf(10, [500])))
  push(packetsOf(blockOf(20, [500], { parentSlot: 10 })))
  push(packetsOf(blockOf(30, [500], { parentSlot: 25 })))
  engine.end()
  assert.deepEqual(
    gaps().map(({ slot, reason }) => [slot, reason]),
    [...[21, 22, 23, 24].map((slot) => [slot, 'slot-unknown']), [25, 'slot-missing']],
  )
})

test('an outage before a slot whose parent is not known is reported too', () => {
  const { push, engine, gaps } = open()
  push(packetsOf(blockOf(10, [500])))
  // A coding shred does not name the parent.
  push(blockOf(13, [500]).fecSets[0]?.slice(40, 41) ?? [])
  engine.end()
  assert.deepEqual(
    gaps().map(({ slot, reason }) => [slot, reason]),
    [
      [11, 'slot-unknown'],
      [12, 'slot-unknown'],
      [13, 'missing'],
    ],
  )
})

test('of an outage of any length a limited number of slots is listed, the older ones as one range', () => {
  const { push, engine, gaps } = open()
  push(packetsOf(blockOf(10, [500])))
  push(packetsOf(blockOf(1_000_000, [500])))
  engine.end()
  const [range, next] = gaps()
  assert.deepEqual([range?.firstSlot, range?.slot, range?.reason], [11, 999_870, 'slot-unknown'])
  assert.deepEqual([next?.firstSlot, next?.slot, gaps().length], [undefined, 999_871, 1 + 128 + 1])
})

test('a batch that is not made of entries is reported as undecodable and not delivered', () => {
  const { push, engine, dataSets, gaps } = open()
  const block = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [500, 500] }, createRandom(1))
  const broken = makeBrokenBlock(block)
  push(broken)
  engine.end()
  assert.deepEqual(
    [dataSets().length, gaps().map(({ startIndex, endIndex, reason }) => [startIndex, endIndex, reason])],
    [1, [[0, 32, 'undecodable']]],
  )
  assert.equal(engine.counts.dataSetsUndecodable, 1)
})

/** The leader signed a first batch that claims one entry more than it has. */
function makeBrokenBlock(block: MadeBlock): Uint8Array[] {
  const [first, second] = block.dataSets
  assert.ok(first && second)
  const bytes = Uint8Array.from(first.bytes)
  bytes[0] = (bytes[0] as number) + 1
  const { sets } = makeShreds({
    slot: block.slot,
    parentSlot: block.parentSlot,
    version: VERSION,
    batches: [bytes, second.bytes],
    chainedRoot: new Uint8Array(32),
    leader: LEADER,
  })
  return sets.flatMap(({ data }) => data)
}

test('FEC sets that two versions of a data set share go with the first that is finished, and are not read again', () => {
  const { push, engine, gaps } = open()
  const [made] = blockOf(10, [50_000]).dataSets
  assert.ok(made)
  // The leader signs the batch with a byte too few, and whole: the first FEC set is the same.
  const versions = [made.bytes.subarray(0, -1), made.bytes].map((bytes) =>
    makeShreds({
      slot: 10,
      parentSlot: 9,
      version: VERSION,
      batches: [bytes],
      chainedRoot: new Uint8Array(32),
      leader: LEADER,
    }).sets.flatMap(({ data }) => data),
  )
  for (const packets of versions) push(packets)
  engine.end()
  assert.deepEqual([engine.counts.dataSetsUndecodable, engine.counts.dataSetsConflicting], [1, 1])
  assert.deepEqual(
    gaps().map(({ reason }) => reason),
    ['undecodable'],
  )
})

test('1,000 slots are open at once within the memory of the option; one more closes the oldest', (t) => {
  const bytesMax = 48 * MIB
  const { push, engine, dataSets, reports } = open({ slotsMax: 1000, slotsBehindMax: 4096, bytesMax })
  const before = process.memoryUsage().rss
  const blocks = Array.from({ length: 1000 }, (_, i) => blockOf(100 + i, [500]))
  for (const block of blocks) push(packetsOf(block).slice(0, 31))
  assert.deepEqual([engine.openSlots, engine.heldSets, dataSets().length], [1000, 1000, 0])
  const held = engine.heldSets * FEC_SET_BYTES
  assert.ok(held <= bytesMax)
  t.diagnostic(
    `held ${(held / MIB).toFixed(1)} MiB of ${bytesMax / MIB}; process +${((process.memoryUsage().rss - before) / MIB).toFixed(0)} MiB with the packets of the test`,
  )
  push(packetsOf(blockOf(1100, [500])).slice(0, 1))
  assert.deepEqual([engine.openSlots, reports()[0]?.slot, reports()[0]?.closedBy], [1000, 100, 'count'])
  for (const block of blocks) push(packetsOf(block).slice(40, 41))
  assert.equal(dataSets().length, 999)
  assert.equal(engine.heldSets, 1)
})

test('at bytesMax the oldest slot is closed, and the only slot loses shreds by name', () => {
  const { push, engine, reports, dataSets } = open({ bytesMax: 4 * FEC_SET_BYTES })
  for (const slot of [10, 11, 12, 13]) push(packetsOf(blockOf(slot, [500])).slice(0, 5))
  assert.equal(reports().length, 0)
  push(packetsOf(blockOf(14, [500])).slice(0, 5))
  assert.deepEqual(
    reports().map(({ slot, closedBy }) => [slot, closedBy]),
    [[10, 'memory']],
  )
  const large = blockOf(20, [200_000])
  const outcomes = push(large.fecSets.flatMap((set) => set.slice(0, 20)))
  assert.ok(outcomes.includes('memory-full'))
  assert.ok(engine.heldSets <= 4)
  assert.equal(engine.openSlots, 1)
  assert.equal(dataSets().length, 0)
})
