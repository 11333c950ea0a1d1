import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockPackets, LEADER_ID, VERSION } from '../../../../test/support/shreds/rig.ts'
import { CELL_BYTES, type PacketArena } from '../../../platform/udp/port.ts'
import { createNodeSha256 } from '../../../solana/crypto/node-sha256.ts'
import { createVerifier } from '../verify.ts'
import { createSelector } from './select.ts'

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
    take(packets: readonly Uint8Array[], source = 0, nowMs = 1000) {
      packets.forEach((packet, cell) => {
        arena.bytes.set(packet, cell * CELL_BYTES)
        arena.lengths[cell] = packet.length
        arena.sources[cell] = source
      })
      const { data, coding, duplicates, slotCount, order } = selector.select(packets.length, nowMs)
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

test('a packet without a known leader moves nothing while signed packets arrive, and is no part of the main chain', () => {
  const { selector, take } = start('auto')
  take(blockPackets(9990).slice(0, 4))
  // The schedule ends with slot 10000.
  assert.equal(take(blockPackets(10_020).slice(0, 1)).data, 1)
  assert.equal(take(blockPackets(10_050).slice(0, 1)).data, 1)
  assert.equal(take(blockPackets(10_080).slice(0, 1)).data, 1)
  assert.deepEqual([...selector.marks.offMainChain.subarray(0, 1), ...selector.marks.unchecked.subarray(0, 1)], [1, 1])
  assert.equal(selector.window.newest(), 9990)
  assert.equal(take(blockPackets(9991).slice(0, 1)).data, 1, 'the signed packets are relayed as before')
  assert.deepEqual([...selector.marks.offMainChain.subarray(0, 1), ...selector.marks.unchecked.subarray(0, 1)], [0, 0])
  const { counts } = selector.takeCounts()
  assert.deepEqual([counts.relayed, counts.unchecked, counts.dropped.late], [8, 3, 0])
})

test('packets of a cluster that goes on at lower slots have another generation', () => {
  const { selector, take } = start('off')
  const offer = (packets: readonly Uint8Array[], nowMs: number): void => {
    for (let i = 0; i < packets.length; i += CELLS) take(packets.slice(i, i + CELLS), 0, nowMs)
  }
  offer(blockPackets(5000), 1000)
  assert.equal(selector.marks.generation[0], 0)
  offer(blockPackets(10, { sets: 3 }), 20_000)
  assert.deepEqual([selector.marks.generation[0], selector.marks.offMainChain[0], selector.window.newest()], [1, 0, 10])
})

test('counts packets of a lagging source that are relayed beside the live feed', () => {
  const { selector, take } = start('off')
  let relayedAtEnd = 0
  for (let slot = 0; slot < 12; slot++) {
    const [lagging, live] = [blockPackets(1000 + slot), blockPackets(1100 + slot)]
    for (let i = 0; i < 64; i += 2) {
      const { data, coding } = take([...lagging.slice(i, i + 2), ...live.slice(i, i + 2)], 0, slot * 400 + i * 6)
      if (slot === 11) relayedAtEnd += data + coding
    }
    if (slot === 10) selector.takeCounts()
  }
  assert.deepEqual([relayedAtEnd, selector.takeCounts().counts.behind], [128, 64])
})

test('a chain of slots without known leaders is not relayed beside signed packets, though it has as many packets', () => {
  const { selector, take } = start('auto')
  for (let slot = 0; slot < 12; slot++) {
    const [signed, unknown] = [blockPackets(5000 + slot), blockPackets(20_000 + slot)]
    for (let i = 0; i < 64; i += 2) take([...signed.slice(i, i + 2), ...unknown.slice(i, i + 2)], 0, slot * 400 + i * 6)
  }
  const { counts } = selector.takeCounts()
  assert.deepEqual([counts.relayed, counts.unchecked, counts.dropped.ahead], [12 * 64, 0, 12 * 64])
})
