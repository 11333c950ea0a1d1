import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../../test/support/process/property.ts'
import { makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { LEADER, VERSION } from '../../../test/support/shreds/rig.ts'
import { encodeBlockMarker } from '../../solana/shred/block-marker.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { Engine } from './engine.ts'
import type { DecodedEvent } from './events.ts'

const OPTIONS = { slotsMax: 4, slotsBehindMax: 4, bytesMax: 2 ** 26, shredsPerSlotMax: 32_768 }
const markerTo = (parentSlot: number) =>
  encodeBlockMarker({ variant: 'update-parent', parentSlot, parentBlockId: new Uint8Array(32) })
const MARKER = markerTo(8)

/** The data shreds of each FEC set of a slot. */
function shredsOf(batches: readonly Uint8Array[], slot = 10) {
  const place = { slot, parentSlot: slot - 1, version: VERSION, chainedRoot: new Uint8Array(32), leader: LEADER }
  return makeShreds({ ...place, batches }).sets.map(({ data }) => data)
}

/** Batches of about so many bytes. */
function batchesOf(batchBytes: readonly number[]) {
  return makeBlock({ slot: 10, parentSlot: 9, batchBytes }, createRandom(1)).dataSets
}

/** The data shreds of a slot: a batch of about so many bytes, a change of the parent, and another batch. */
function makeSlot(firstBytes: number, slot = 10) {
  const [first, second] = batchesOf([firstBytes, 500])
  assert.ok(first && second)
  const sets = shredsOf([first.bytes, MARKER, second.bytes], slot)
  const transactions = second.transactions.length
  return { first: sets.slice(0, -2).flat(), rest: sets.slice(-2).flat(), transactions }
}

function open() {
  const events: DecodedEvent[] = []
  const engine = new Engine(OPTIONS, (event) => events.push(event))
  return {
    engine,
    events,
    push: (packets: readonly Uint8Array[]) =>
      packets.forEach((packet) => void engine.push(packet, 0, packet.length, 1, true)),
  }
}

test('what a change of the parent has made void is not delivered after it, is counted, and the slot is complete', () => {
  const { first, rest, transactions } = makeSlot(500)
  const { engine, events, push } = open()
  // The last shred of the first data set shows where the next one begins.
  push(first.slice(31))
  push(rest)
  push(first.slice(0, 31))
  engine.end()
  assert.deepEqual(
    events.map((event) => [event.kind, 'startIndex' in event && event.startIndex]),
    [
      ['marker', 32],
      ['data-set', 64],
      ['slot-completed', false],
      ['slot-report', false],
    ],
  )
  assert.deepEqual(
    [engine.counts.dataSetsVoid, engine.counts.dataSets, engine.counts.transactions],
    [1, 1, transactions],
  )
})

test('a large data set is delivered up to the change of the parent that makes it void', () => {
  const { first, rest } = makeSlot(600_000)
  const { engine, events, push } = open()
  push(first)
  while (events.length === 0) engine.work()
  push(rest)
  while (engine.work()) assert.ok(events.length < 100)
  const kinds = events.map(({ kind }) => kind)
  assert.deepEqual(kinds, ['data-set', 'marker', 'data-set', 'slot-completed'])
  assert.deepEqual([engine.counts.dataSetsVoid, engine.counts.dataSets], [1, 1])
})

test('what came before a change of the parent was delivered in time', () => {
  const { first, rest } = makeSlot(500)
  const { events, push, engine } = open()
  push([...first, ...rest])
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['data-set', 'marker', 'data-set', 'slot-completed'],
  )
  assert.equal(engine.counts.dataSetsVoid, 0)
})

test('a change of the parent makes nothing void in later slots', () => {
  const { engine, events, push } = open()
  for (let slot = 10; slot < 20; slot++) {
    const { first, rest } = makeSlot(500, slot)
    push([...first, ...rest])
  }
  assert.equal(events.filter(({ kind }) => kind === 'data-set').length, 20)
  assert.equal(engine.counts.dataSetsVoid, 0)
})

test('what is missing of a void part is no loss: the slot is complete as soon as the rest of it is', () => {
  const { first, rest } = makeSlot(500)
  for (const packets of [rest, [...rest.slice(31), ...rest.slice(0, 31)]]) {
    const { engine, events, push } = open()
    push([...first.slice(31), ...packets])
    assert.equal(events.at(-1)?.kind, 'slot-completed')
    engine.end()
    assert.deepEqual(events.map(({ kind }) => kind).sort(), ['data-set', 'marker', 'slot-completed', 'slot-report'])
    const report = events.at(-1)
    assert.ok(report?.kind === 'slot-report')
    assert.deepEqual([report.isComplete, report.dataSetsLost, engine.counts.slots.incomplete], [true, 0, 0])
  }
})

test('a void part that is not valid is no loss either, also where it is found to be so after the change of the parent', () => {
  const [second] = batchesOf([500])
  assert.ok(second)
  for (const bytes of [1000, 200_000]) {
    const sets = shredsOf([new Uint8Array(bytes).fill(255), MARKER, second.bytes])
    for (const isReadFirst of [true, false]) {
      const { engine, events, push } = open()
      push(sets.slice(0, -2).flat())
      while (isReadFirst && engine.work());
      push(sets.slice(-2).flat())
      while (engine.work());
      engine.end()
      const kinds = events.map(({ kind }) => kind)
      assert.deepEqual(kinds, ['marker', 'data-set', 'slot-completed', 'slot-report'], `${bytes}, ${isReadFirst}`)
    }
  }
})

test('a change of the parent before another one that came first is void', () => {
  const batches = batchesOf([500, 500, 500]).map(({ bytes }) => bytes)
  const sets = shredsOf(batches.flatMap((bytes) => [bytes, MARKER]).slice(0, -1))
  const { engine, events, push } = open()
  push([...(sets[2]?.slice(31) ?? []), ...sets.slice(3).flat()])
  push(sets.slice(0, 3).flat())
  engine.end()
  assert.deepEqual(
    events.map((event) => [event.kind, 'startIndex' in event && event.startIndex]),
    [
      ['marker', 96],
      ['data-set', 128],
      ['slot-completed', false],
      ['slot-report', false],
    ],
  )
  assert.deepEqual([engine.counts.dataSetsVoid, engine.counts.dataSetsConflicting], [3, 0])
})

test('a slot has the parent of the marker, and the one that it names no longer is not missing', () => {
  const bytes = batchesOf([500])[0]?.bytes as Uint8Array
  const unknown = { parent: undefined, gaps: [[9, 'slot-unknown']] }
  for (const [marker, { parent, gaps }] of [
    [MARKER, { parent: 8, gaps: [] }],
    // Its form is not known, or it is no slot before this one.
    [MARKER.with(13, 2), unknown],
    [markerTo(10), unknown],
    [markerTo(2 ** 40), unknown],
  ] as const) {
    const { engine, events, push } = open()
    push(shredsOf([bytes], 8).flat())
    push(shredsOf([bytes, marker, bytes], 10).flat())
    engine.end()
    assert.deepEqual(
      events.flatMap((event) => (event.kind === 'gap' ? [[event.slot, event.reason]] : [])),
      gaps,
    )
    const [completed, report] = events.filter(({ slot, kind }) => slot === 10 && kind.startsWith('slot-'))
    assert.ok(completed?.kind === 'slot-completed' && report?.kind === 'slot-report')
    assert.deepEqual([completed.parentSlot, report.parentSlot], [parent, parent])
  }
})
