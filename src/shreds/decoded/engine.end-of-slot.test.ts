import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { type MadeBlock, makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { Engine, type EngineOptions } from './engine.ts'
import type { DecodedEvent } from './events.ts'

const OPTIONS: EngineOptions = {
  slotsMax: 64,
  slotsBehindMax: 32,
  silentSlotsMax: 8,
  bytesMax: 64 * 1024 * 1024,
  shredsPerSlotMax: 32_768,
}
const SLOT_NANOS = 400e6

/** An engine with a time that the test sets, in slot lengths. */
function open() {
  const events: DecodedEvent[] = []
  const engine = new Engine(OPTIONS, (event) => events.push(event))
  return {
    engine,
    events,
    push: (packets: readonly Uint8Array[], slotLengths = 0) =>
      packets.map((packet) => engine.push(packet, 0, packet.length, slotLengths * SLOT_NANOS, true)),
    kinds: (slot: number) => events.filter((event) => event.slot === slot).map(({ kind }) => kind),
  }
}

function blockOf(slot: number, batchBytes: readonly number[] = [500, 500]): MadeBlock {
  return makeBlock({ slot, parentSlot: slot - 1, batchBytes }, createRandom(slot))
}

test('a slot is completed with the shred that completes its last data set, whichever that is, and once', (t) => {
  const random = createRandom(seedOf(t))
  const runs = repeatsOf({ short: 30, full: 300 })
  for (let run = 0; run < runs; run++) {
    const { push, events, engine } = open()
    const block = blockOf(10, [500, 40_000, 0, 500])
    const packets = block.fecSets.flat().filter(() => random(100) >= 15)
    const mixed = packets.map((packet) => ({ packet, order: random(1000) })).sort((a, b) => a.order - b.order)
    for (const { packet } of mixed) {
      push([packet])
      const sets = events.filter(({ kind }) => kind === 'data-set' || kind === 'marker').length
      const completed = events.filter((event) => event.kind === 'slot-completed')
      assert.equal(completed.length, sets === block.dataSets.length ? 1 : 0, `run ${run}`)
      if (completed.length === 0) continue
      const transactions = block.dataSets.flatMap((set) => set.transactions).length
      assert.deepEqual(completed, [{ kind: 'slot-completed', slot: 10, parentSlot: 9, transactions }])
    }
    assert.ok(events.every(({ kind }) => kind !== 'slot-report'))
    engine.end()
    assert.equal(events.at(-1)?.kind, 'slot-report')
  }
})

test('a slot without its last shred, or with a data set that cannot be recovered, is not completed', () => {
  const { push, events } = open()
  const block = blockOf(10)
  push([...(block.fecSets[0] ?? []), ...(block.fecSets[1] ?? []).slice(0, 31)])
  push(blockOf(11).fecSets.flatMap((set, i) => (i === 0 ? set.slice(0, 31) : set)))
  assert.ok(events.every(({ kind }) => kind !== 'slot-completed'))
})

test('a slot that was completed is not completed again by a longer version of it', () => {
  const { push, events } = open()
  push(blockOf(10).fecSets.flat())
  const longer = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [500, 500, 500] }, createRandom(99))
  push([...(longer.fecSets[1]?.slice(31, 32) ?? []), ...(longer.fecSets[2] ?? [])])
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['data-set', 'data-set', 'slot-completed', 'data-set'],
  )
})

test('shreds behind the last one of a slot make it conflicting, and the longer version counts', () => {
  const [two, three, four] = [2, 3, 4].map(
    (sets) => makeBlock({ slot: 10, parentSlot: 9, batchBytes: new Array(sets).fill(500) }, createRandom(sets)).fecSets,
  )
  const ends = [two?.[1] ?? [], three?.[2] ?? []]
  const reportOf = (...sets: (readonly Uint8Array[])[]) => {
    const { push, events, engine } = open()
    push(sets.flat())
    engine.end()
    const report = events.at(-1)
    assert.ok(report?.kind === 'slot-report')
    return [report.isConflicting, report.fecSets]
  }
  assert.deepEqual(reportOf(...ends), [true, 3])
  assert.deepEqual(reportOf(...ends.toReversed()), [true, 3])
  assert.deepEqual(reportOf(two?.[1] ?? [], four?.[2] ?? []), [true, 2])
  assert.deepEqual(reportOf(two?.[0] ?? [], two?.[1] ?? []), [false, 2])
})

test('what a slot lacks is reported 8 slot lengths after its last shred, long before 32 newer slots', () => {
  const { push, engine, kinds } = open()
  push(blockOf(10).fecSets[0] ?? [], 0)
  push(blockOf(11).fecSets.flat(), 1)
  push(blockOf(18).fecSets.flat(), 7.9)
  assert.deepEqual(kinds(10), ['data-set'])
  push(blockOf(19).fecSets.flat().slice(0, 1), 8.2)
  assert.deepEqual(kinds(10), ['data-set', 'gap', 'slot-report'])
  assert.deepEqual(kinds(11), ['data-set', 'data-set', 'slot-completed'])
  assert.deepEqual(push(blockOf(10).fecSets[1]?.slice(0, 1) ?? [], 8.2), ['late'])
  assert.equal(engine.counts.slots.silence, 1)
})

test('shreds that still arrive keep a slot open, up to 32 newer slots', () => {
  const { push, kinds } = open()
  const block = blockOf(10)
  push(block.fecSets[0]?.slice(0, 20) ?? [], 0)
  push(blockOf(11).fecSets.flat(), 1)
  push(block.fecSets[0]?.slice(20, 21) ?? [], 6)
  push(blockOf(12).fecSets.flat(), 13)
  assert.deepEqual(kinds(10), [])
  push(block.fecSets[0]?.slice(21) ?? [], 13.9)
  assert.deepEqual(kinds(10), ['data-set'])
  push(blockOf(43).fecSets.flat(), 14)
  assert.deepEqual(kinds(10), ['data-set', 'gap', 'slot-report'])
})

test('without any shred the time alone closes slots, of the learned length, but none above the newest with a complete FEC set', () => {
  const { push, engine, kinds } = open()
  push(blockOf(10).fecSets[0] ?? [], 0)
  push(blockOf(40).fecSets[0]?.slice(0, 1) ?? [], 0)
  engine.setSlotMs(200)
  engine.advance(3.9 * SLOT_NANOS)
  assert.deepEqual(kinds(10), ['data-set'])
  engine.advance(4.1 * SLOT_NANOS)
  assert.deepEqual(kinds(10), ['data-set', 'gap', 'slot-report'])
  engine.advance(100 * SLOT_NANOS)
  assert.deepEqual(kinds(40), [])
  assert.notEqual(push(blockOf(11).fecSets[0]?.slice(0, 1) ?? [], 100)[0], 'late')
})

test('a slot that came early is not silent before its time, so a pause of the chain closes no slot before it', () => {
  const { push, engine, kinds } = open()
  push(blockOf(10).fecSets.flat(), 0)
  push(blockOf(40).fecSets[0] ?? [], 0)
  engine.advance(11 * SLOT_NANOS)
  assert.equal(kinds(10).at(-1), 'slot-report')
  assert.notEqual(push(blockOf(22).fecSets.flat(), 12)[0], 'late')
  engine.advance(29 * SLOT_NANOS)
  assert.equal(kinds(22).at(-1), 'slot-report')
  assert.deepEqual(kinds(40), ['data-set'])
  engine.advance(31 * SLOT_NANOS)
  assert.deepEqual(kinds(40), ['data-set'])
  // More of it comes in its time.
  assert.notEqual(push(blockOf(40).fecSets[1] ?? [], 31)[0], 'late')
  engine.advance(40 * SLOT_NANOS)
  assert.equal(kinds(40).at(-1), 'slot-report')
})

test('after a jump of slot numbers a slot is closed by silence as any other', () => {
  const { push, engine, kinds } = open()
  push(blockOf(10).fecSets.flat(), 0)
  engine.advance(11 * SLOT_NANOS)
  push(blockOf(500_000).fecSets[0] ?? [], 12)
  engine.advance(21 * SLOT_NANOS)
  assert.equal(kinds(500_000).at(-1), 'slot-report')
})
