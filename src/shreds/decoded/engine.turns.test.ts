import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../../test/support/process/property.ts'
import { type MadeBlock, makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { Engine, type EngineOptions } from './engine.ts'
import type { DecodedEvent, SlotReport } from './events.ts'
import { FEC_SET_BYTES } from './shred-cells.ts'

const OPTIONS: EngineOptions = {
  slotsMax: 64,
  slotsBehindMax: 32,
  bytesMax: 64 * 1024 * 1024,
  shredsPerSlotMax: 32_768,
}
/** What one shred or one step may do: about 10 ms on a slow processor. */
const SLOTS_PER_TURN = 8
const PARTS_PER_TURN = 8

/** An engine that counts, for each call of it, the slots that it closed and the parts of data sets that it delivered. */
function open(options: Partial<EngineOptions> = {}) {
  const events: DecodedEvent[] = []
  const engine = new Engine({ ...OPTIONS, ...options }, (event) => events.push(event))
  const most = { slots: 0, parts: 0 }
  const turn = <T>(run: () => T): T => {
    const before = events.length
    const result = run()
    const emitted = events.slice(before)
    most.slots = Math.max(most.slots, emitted.filter(({ kind }) => kind === 'slot-report').length)
    most.parts = Math.max(most.parts, emitted.filter(({ kind }) => kind === 'data-set').length)
    return result
  }
  return {
    engine,
    events,
    most,
    push: (packets: readonly Uint8Array[], arrivalNanos = 0) =>
      packets.map((packet) => turn(() => engine.push(packet, 0, packet.length, arrivalNanos, true))),
    work: () => turn(() => engine.work()),
    advance: (nowNanos: number) => turn(() => engine.advance(nowNanos)),
    reports: () => events.filter((event): event is SlotReport => event.kind === 'slot-report'),
  }
}

function blockOf(slot: number, batchBytes: readonly number[] = [500]): MadeBlock {
  return makeBlock({ slot, parentSlot: slot - 1, batchBytes }, createRandom(slot))
}

/** The 32 data shreds of the first FEC set. */
const firstSet = (block: MadeBlock): readonly Uint8Array[] => block.fecSets[0]?.slice(0, 32) ?? []
const firstShred = (slot: number): readonly Uint8Array[] => firstSet(blockOf(slot)).slice(0, 1)

test('1,000 slots that one shred makes due are closed in steps and in order, and none of them takes another shred', () => {
  const { push, work, reports, most, engine } = open({ slotsMax: 1100, slotsBehindMax: 1050 })
  const slots = Array.from({ length: 1000 }, (_, i) => 100 + i)
  for (const slot of slots) push(firstShred(slot))
  push(firstSet(blockOf(5000)))
  assert.ok(reports().length <= SLOTS_PER_TURN)
  const last = firstSet(blockOf(1099))
  assert.deepEqual(push(last.slice(1, 2)), ['late'], 'a slot that is due')
  assert.deepEqual(push(firstShred(5001)), ['accepted'], 'shreds are taken in between')
  while (work());
  assert.deepEqual(
    reports().map(({ slot, closedBy }) => [slot, closedBy]),
    slots.map((slot) => [slot, 'age']),
  )
  assert.equal(most.slots, SLOTS_PER_TURN)
  assert.deepEqual([engine.openSlots, engine.counts.slots.age, work()], [2, 1000, false])
})

test('slots that are due are closed for their age, also where the limit of slots closes them', () => {
  const { push, reports, most } = open({ slotsMax: 40, slotsBehindMax: 50 })
  for (let slot = 100; slot < 140; slot++) push(firstShred(slot))
  push(firstSet(blockOf(139)))
  push(firstSet(blockOf(500)))
  push(firstShred(501))
  assert.deepEqual(new Set(reports().map(({ closedBy }) => closedBy)), new Set(['count', 'age']))
  assert.equal(reports().filter(({ closedBy }) => closedBy === 'count').length, 1, 'before 500 had a complete FEC set')
  assert.ok(most.slots <= SLOTS_PER_TURN)
})

test('silent slots are closed in steps', () => {
  const { push, advance, reports, most } = open({ silentSlotsMax: 8 })
  for (let slot = 100; slot < 150; slot++) push(firstShred(slot))
  push(firstSet(blockOf(131)))
  advance(1e12)
  assert.equal(reports().length, SLOTS_PER_TURN)
  // The next shred does not wait for the next check of the time.
  push(firstShred(150), 1e12)
  assert.equal(reports().length, 2 * SLOTS_PER_TURN)
  for (let call = 0; call < 3; call++) advance(1e12)
  assert.deepEqual([reports().length, most.slots], [32, SLOTS_PER_TURN])
  assert.ok(reports().every(({ closedBy }) => closedBy === 'silence'))
})

test('a slot with many FEC sets is closed in a step of its own', () => {
  const { push, work, reports, most } = open({ slotsMax: 400, slotsBehindMax: 300 })
  const wide = blockOf(100, [300 * 30_000])
  const lastSet = wide.fecSets.at(-1)?.slice(0, 1) ?? []
  push(lastSet)
  push(firstShred(101))
  push(firstSet(blockOf(1000)))
  assert.deepEqual([reports().length, most.slots], [1, 1])
  assert.equal(work(), false)
  assert.equal(reports().length, 2)
})

test('a slot whose large data set is being decoded is closed by count some steps at a time, and other slots are opened meanwhile', () => {
  const { push, work, reports, most, events, engine } = open({ slotsMax: 3 })
  push(blockOf(10, [3_000_000]).fecSets.flatMap((set) => set.slice(0, 32)))
  push(firstShred(11))
  push(firstShred(12))
  assert.deepEqual(push(firstShred(13)), ['accepted'])
  assert.deepEqual([engine.openSlots, reports().length], [4, 0])
  assert.deepEqual(push([...firstShred(14), ...firstShred(15), ...firstShred(16)]), [
    'accepted',
    'accepted',
    'memory-full',
  ])
  assert.deepEqual([engine.openSlots, reports().length], [6, 0], 'twice as many, and no more')
  while (work());
  assert.ok(events.some(({ kind }) => kind === 'slot-completed'))
  assert.deepEqual(push(firstShred(17)), ['accepted'])
  assert.deepEqual(
    reports().map(({ slot, closedBy, isComplete }) => [slot, closedBy, isComplete]),
    [
      [10, 'count', true],
      [11, 'count', false],
      [12, 'count', false],
      [13, 'count', false],
    ],
  )
  assert.equal(engine.openSlots, 3)
  assert.ok(most.parts <= PARTS_PER_TURN, `${most.parts} parts in one turn`)
})

test('a shred that needs memory closes a few slots, and decodes a few parts of a large data set, and no more', () => {
  const finished = open({ bytesMax: 10 * FEC_SET_BYTES })
  for (let slot = 100; slot < 120; slot++) finished.push(firstSet(blockOf(slot)))
  const sets = blockOf(121, [330_000]).fecSets.map((set) => set.slice(0, 1))
  finished.push(sets.slice(0, 10).flat())
  assert.equal(finished.reports().length, 0)
  // The slots before it hold no shreds, so that closing them does not help.
  assert.deepEqual(finished.push(sets[10] ?? []), ['memory-full'])
  assert.equal(finished.reports().length, SLOTS_PER_TURN)

  const large = open({ bytesMax: 100 * FEC_SET_BYTES })
  large.push(blockOf(10, [2_900_000]).fecSets.flatMap((set) => set.slice(0, 32)))
  const outcomes = large.push(Array.from({ length: 100 }, (_, i) => firstShred(11 + i)).flat())
  assert.ok(outcomes.includes('accepted'))
  assert.ok(large.most.parts <= PARTS_PER_TURN, `${large.most.parts} parts in one turn`)
  while (large.work());
  large.engine.end()
  assert.equal(large.reports().find(({ slot }) => slot === 10)?.isComplete, true)
})

test('with all places taken by newer slots an older one is late, and closes none of them', () => {
  const { push, reports, engine } = open({ slotsMax: 3 })
  for (const slot of [11, 12, 13]) push(firstShred(slot))
  assert.deepEqual(push(firstShred(10)), ['late'])
  assert.deepEqual([engine.openSlots, reports()], [3, []])
})

test('FEC sets that are finished are remembered in a limited number: the oldest slot is closed, and the only one takes no more', () => {
  const { push, reports, engine } = open({ bytesMax: 2 * FEC_SET_BYTES })
  for (let slot = 10; slot < 18; slot++) push(firstSet(blockOf(slot)))
  assert.equal(reports().length, 0, 'four for each that can be held')
  push(firstSet(blockOf(18)))
  assert.deepEqual(
    reports().map(({ slot, closedBy }) => [slot, closedBy]),
    [[10, 'memory']],
  )
  assert.equal(engine.openSlots, 8)
  const wide = open({ bytesMax: 2 * FEC_SET_BYTES })
  const sets = blockOf(
    30,
    Array.from({ length: 9 }, () => 500),
  ).fecSets.map((set) => set.slice(0, 32))
  assert.deepEqual(new Set(wide.push(sets.slice(0, 8).flat())), new Set(['accepted']))
  assert.deepEqual(new Set(wide.push(sets[8] ?? [])), new Set(['memory-full']))
})
