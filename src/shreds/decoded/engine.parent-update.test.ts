import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeBlock } from '../../../test/support/decoded-blocks.ts'
import { createRandom } from '../../../test/support/property.ts'
import { LEADER, VERSION } from '../../../test/support/shreds.ts'
import { encodeBlockMarker } from '../../solana/shred/block-marker.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { Engine } from './engine.ts'
import type { DecodedEvent } from './events.ts'

const OPTIONS = { slotsMax: 4, slotsBehindMax: 4, bytesMax: 2 ** 26, shredsPerSlotMax: 32_768 }
const MARKER = encodeBlockMarker({ variant: 'update-parent', parentSlot: 8, parentBlockId: new Uint8Array(32) })

/** The data shreds of a slot: a batch of about so many bytes, a change of the parent, and another batch. */
function makeSlot(firstBytes: number, slot = 10) {
  const { dataSets } = makeBlock({ slot, parentSlot: 9, batchBytes: [firstBytes, 500] }, createRandom(1))
  const [first, second] = dataSets
  assert.ok(first && second)
  const { sets } = makeShreds({
    ...{ slot, parentSlot: 9, version: VERSION, batches: [first.bytes, MARKER, second.bytes] },
    ...{ chainedRoot: new Uint8Array(32), leader: LEADER },
  })
  const firstSets = sets.length - 2
  const shreds = sets.flatMap(({ data }) => data)
  const transactions = second.transactions.length
  return { first: shreds.slice(0, 32 * firstSets), rest: shreds.slice(32 * firstSets), transactions }
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
