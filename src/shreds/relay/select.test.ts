import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockPackets, LEADER_ID, VERSION } from '../../../test/support/shreds.ts'
import { CELL_BYTES, type PacketArena } from '../../platform/udp/port.ts'
import { createNodeSha256 } from '../../solana/crypto/node-sha256.ts'
import { createSelector } from './select.ts'
import { createVerifier } from './verify.ts'

const CELLS = 4
const LIMITS = { shredsPerSlotMax: 32_768, window: { backSlots: 64, aheadSlots: 32 } }
const OPTIONS = { version: VERSION, limits: LIMITS, limitsMax: LIMITS, sources: 2 }

function createArena(): PacketArena {
  const buffer = new ArrayBuffer(CELLS * CELL_BYTES)
  return {
    bytes: new Uint8Array(buffer),
    words: new Int32Array(buffer),
    lengths: new Int32Array(CELLS),
    sources: new Int8Array(CELLS),
    arrivals: new Float64Array(CELLS),
    timeMicros: new Float64Array(1),
  }
}

function start(signatures: 'auto' | 'off') {
  const arena = createArena()
  const verifier = createVerifier({ failuresPerSecond: 5 }, { sha256: createNodeSha256() })
  verifier.setLeaders([{ fromSlot: 0, toSlot: 10_000, identities: [LEADER_ID] }])
  const selector = createSelector(arena, { ...OPTIONS, signatures }, verifier)
  return {
    selector,
    take(packets: readonly Uint8Array[], source = 0) {
      packets.forEach((packet, cell) => {
        arena.bytes.set(packet, cell * CELL_BYTES)
        arena.lengths[cell] = packet.length
        arena.sources[cell] = source
      })
      const { data, coding, duplicates, slotCount, order } = selector.select(packets.length, 1000)
      return { data, coding, duplicates, slotCount, order: [...order.subarray(0, data + coding)] }
    },
  }
}

test('selects data shreds before coding shreds, lists each slot once, and leaves out duplicates and disallowed sources', () => {
  const { selector, take } = start('auto')
  const first = blockPackets(500)
  const second = blockPackets(501)
  const [data, coding, next] = [first[0], first[40], second[3]] as [Uint8Array, Uint8Array, Uint8Array]
  assert.deepEqual(take([coding, data, coding, next]), {
    data: 2,
    coding: 1,
    duplicates: 1,
    slotCount: 2,
    order: [1, 3, 0],
  })
  assert.deepEqual(take([first[1] as Uint8Array], -1), {
    data: 0,
    coding: 0,
    duplicates: 0,
    slotCount: 0,
    order: [],
  })
  assert.equal(take([first[1] as Uint8Array], 1).data, 1)
  const { counts, perSource } = selector.takeCounts()
  assert.deepEqual([counts.received, counts.relayed], [6, 4])
  assert.deepEqual([counts.dropped.source, counts.dropped.duplicate], [1, 1])
  assert.deepEqual(perSource, [4, 1])
  assert.deepEqual(selector.takeCounts().perSource, [0, 0])
})

test('does not record a forged shred as relayed, so the genuine one passes after it', () => {
  const { selector, take } = start('auto')
  const good = blockPackets(500)[0] as Uint8Array
  const forged = Uint8Array.from(good)
  forged[200] = (forged[200] as number) ^ 1
  assert.equal(take([forged]).data, 0)
  assert.equal(take([good]).data, 1)
  assert.equal(selector.takeCounts().counts.dropped.forged, 1)
})

test('without signature checks, drops and counts shreds of a FEC set with too many signatures', () => {
  const { selector, take } = start('off')
  const packet = blockPackets(500)[0] as Uint8Array
  for (let version = 0; version < 300; version++) {
    const other = Uint8Array.from(packet)
    other[0] = version & 255
    other[1] = version >> 8
    take([other])
  }
  const { counts } = selector.takeCounts()
  assert.deepEqual([counts.relayed, counts.dropped.conflicting], [257, 43])
})

test('takes limits of another slot length while it runs', () => {
  const { selector, take } = start('off')
  take(blockPackets(1000).slice(0, 1))
  const ahead = blockPackets(1040).slice(0, 1)
  assert.equal(take(ahead).data, 0, '32 slots ahead are allowed')
  selector.setLimits({ shredsPerSlotMax: 32, window: { backSlots: 64, aheadSlots: 40 } })
  assert.equal(take(ahead).data, 1)
  const second = blockPackets(1041, { sets: 2 }).filter((packet) => Buffer.from(packet).readUInt32LE(79) === 32)
  take(second.slice(0, 1))
  const { counts } = selector.takeCounts()
  assert.deepEqual([counts.dropped.ahead, counts.faults['index-too-large']], [1, 1])
})
