import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockPackets, LEADER_ID, VERSION } from '../../../test/support/shreds.ts'
import { type PacketArena, SLOT_BYTES } from '../../platform/udp/port.ts'
import { createReceiver } from './receive.ts'
import { createVerifier } from './verify.ts'

const SLOTS = 4
const OPTIONS = { version: VERSION, shredsPerSlotMax: 32_768, window: { backSlots: 64, aheadSlots: 32 }, sources: 2 }

function createArena(): PacketArena {
  const buffer = new ArrayBuffer(SLOTS * SLOT_BYTES)
  return {
    bytes: new Uint8Array(buffer),
    words: new Int32Array(buffer),
    lengths: new Int32Array(SLOTS),
    sources: new Int8Array(SLOTS),
  }
}

function start(signatures: 'auto' | 'off') {
  const arena = createArena()
  const verifier = createVerifier({ failuresPerSecond: 5, slots: 100 })
  verifier.setLeaders([{ fromSlot: 0, toSlot: 10_000, identities: [LEADER_ID] }])
  const receiver = createReceiver(arena, { ...OPTIONS, signatures }, verifier)
  return {
    receiver,
    take(packets: readonly Uint8Array[], source = 0) {
      packets.forEach((packet, slot) => {
        arena.bytes.set(packet, slot * SLOT_BYTES)
        arena.lengths[slot] = packet.length
        arena.sources[slot] = source
      })
      const { data, code, duplicates, chainSlotCount, order } = receiver.sort(packets.length, 1000)
      return { data, code, duplicates, chainSlotCount, order: [...order.subarray(0, data + code)] }
    },
  }
}

test('a batch is sorted: data before code, each chain slot once, copies and strangers left out', () => {
  const { receiver, take } = start('auto')
  const first = blockPackets(500)
  const second = blockPackets(501)
  const [data, code, next] = [first[0], first[40], second[3]] as [Uint8Array, Uint8Array, Uint8Array]
  assert.deepEqual(take([code, data, code, next]), {
    data: 2,
    code: 1,
    duplicates: 1,
    chainSlotCount: 2,
    order: [1, 3, 0],
  })
  assert.deepEqual(take([first[1] as Uint8Array], -1), {
    data: 0,
    code: 0,
    duplicates: 0,
    chainSlotCount: 0,
    order: [],
  })
  assert.equal(take([first[1] as Uint8Array], 1).data, 1)
  const { counts, perSource } = receiver.takeCounts()
  assert.deepEqual([counts.received, counts.relayed], [6, 4])
  assert.deepEqual([counts.dropped.source, counts.dropped.duplicate], [1, 1])
  assert.deepEqual(perSource, [4, 1])
  assert.deepEqual(receiver.takeCounts().perSource, [0, 0])
})

test('a forged shred is not remembered as relayed, so the true one passes after it', () => {
  const { receiver, take } = start('auto')
  const good = blockPackets(500)[0] as Uint8Array
  const forged = Uint8Array.from(good)
  forged[200] = (forged[200] as number) ^ 1
  assert.equal(take([forged]).data, 0)
  assert.equal(take([good]).data, 1)
  assert.equal(receiver.takeCounts().counts.dropped.forged, 1)
})

test('where nothing is checked, a set of too many signatures is cut off and counted', () => {
  const { receiver, take } = start('off')
  const packet = blockPackets(500)[0] as Uint8Array
  for (let version = 0; version < 300; version++) {
    const other = Uint8Array.from(packet)
    other[0] = version & 255
    other[1] = version >> 8
    take([other])
  }
  const { counts } = receiver.takeCounts()
  assert.deepEqual([counts.relayed, counts.dropped.conflicting], [257, 43])
})
