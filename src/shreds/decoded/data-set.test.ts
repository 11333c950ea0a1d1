import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../../test/support/process/property.ts'
import { makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { LEADER, VERSION } from '../../../test/support/shreds/rig.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { Engine } from './engine.ts'
import type { DecodedEvent } from './events.ts'

const OPTIONS = { slotsMax: 4, slotsBehindMax: 4, bytesMax: 2 ** 24, shredsPerSlotMax: 32_768 }

function open() {
  const events: DecodedEvent[] = []
  const engine = new Engine(OPTIONS, (event) => events.push(event))
  return {
    events,
    push(packets: readonly Uint8Array[], isVerified = true): void {
      for (const packet of packets) engine.push(packet, 0, packet.length, 0, isVerified)
    },
  }
}

test('a data set was recovered if one of its FEC sets was, and is verified only if all are', () => {
  for (const changed of [0, 1]) {
    const { fecSets } = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [50_000] }, createRandom(1))
    assert.equal(fecSets.length, 2)
    const { push, events } = open()
    for (const [i, set] of fecSets.entries())
      if (i === changed) push(set.slice(32), false)
      else push(set.slice(0, 32))
    const [set] = events
    assert.ok(set?.kind === 'data-set')
    assert.deepEqual([set.wasRecovered, set.isVerified], [true, false], `FEC set ${changed}`)
  }
})

test('a marker changes the parent in the version and the kind that are known for it', () => {
  for (const [version, kind, isParentUpdate] of [
    [1, 2, true],
    [1, 3, false],
    [2, 2, false],
    [257, 2, false],
  ] as const) {
    const bytes = new Uint8Array(60)
    new DataView(bytes.buffer).setUint16(8, version, true)
    bytes[10] = kind
    const { sets } = makeShreds({
      ...{ slot: 10, parentSlot: 9, version: VERSION, batches: [bytes] },
      ...{ chainedRoot: new Uint8Array(32), leader: LEADER },
    })
    const { push, events } = open()
    push(sets.flatMap(({ data }) => data))
    const [marker] = events
    assert.ok(marker?.kind === 'marker')
    assert.equal(marker.isParentUpdate, isParentUpdate, `version ${version}, kind ${kind}`)
  }
})
