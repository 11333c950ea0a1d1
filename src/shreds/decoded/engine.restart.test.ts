import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../../test/support/process/property.ts'
import { makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { LEADER, VERSION } from '../../../test/support/shreds/rig.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { Engine } from './engine.ts'

const OPTIONS = { slotsMax: 128, slotsBehindMax: 64, silentSlotsMax: 8, bytesMax: 64 << 20, shredsPerSlotMax: 32_768 }
const SLOT_NANOS = 4e8
const ENTRIES = makeBlock({ slot: 1, parentSlot: 0, batchBytes: [100] }, createRandom(1)).dataSets[0]
  ?.bytes as Uint8Array

/** An engine, and the slots of its data sets and restarts in order. */
function open() {
  const log: string[] = []
  const engine = new Engine(OPTIONS, ({ kind, slot }) => {
    if (kind === 'data-set' || kind === 'gap') log.push(`${kind} ${slot}`)
  })
  engine.onRestart = (isNewChain) => void log.push(isNewChain ? 'new chain' : 'lower slots')
  let atNanos = 0
  return {
    engine,
    log,
    push(slot: number, generation: number, { shreds = 32, version = VERSION } = {}) {
      atNanos += SLOT_NANOS
      const [set] = makeShreds({
        ...{ slot, parentSlot: slot - 1, version, batches: [ENTRIES] },
        ...{ chainedRoot: new Uint8Array(32), leader: LEADER },
      }).sets
      const packets = set?.data.slice(0, shreds) ?? []
      return packets.map((packet) => engine.push(packet, 0, packet.length, atNanos, true, generation)).at(-1)
    },
  }
}

test('in another generation lower slots are decoded: after a restart of the cluster and after a jump ahead', () => {
  for (const version of [VERSION, VERSION + 1]) {
    const { push, log, engine } = open()
    push(500_000, 0)
    push(500_001, 0, { shreds: 20 })
    for (let slot = 3; slot < 33; slot++) assert.equal(push(slot, 1, { version }), 'accepted')
    assert.deepEqual(log.slice(0, 4), ['data-set 500000', 'gap 500001', 'new chain', 'data-set 3'])
    assert.deepEqual(
      log.slice(4),
      Array.from({ length: 29 }, (_, i) => `data-set ${4 + i}`),
    )
    assert.equal(engine.newestSlot, 32)
    assert.equal(push(500_002, 1, { version }), 'accepted', 'a jump ahead needs no other generation')
  }
})

test('without another generation lower slots are late', () => {
  const { push, log } = open()
  push(500_000, 255)
  assert.equal(push(3, 255), 'late')
  assert.deepEqual(log, ['data-set 500000'])
})

test('a source that lags goes on where another one ended: no slot is delivered twice', () => {
  const { push, log } = open()
  for (let slot = 1000; slot < 1200; slot++) push(slot, 255)
  for (let slot = 1100; slot < 1200; slot++) assert.equal(push(slot, 0), 'late')
  for (let slot = 1200; slot < 1210; slot++) assert.equal(push(slot, 0), 'accepted')
  assert.deepEqual(
    log.filter((line) => line !== 'lower slots'),
    Array.from({ length: 210 }, (_, i) => `data-set ${1000 + i}`),
  )
  assert.equal(log[200], 'lower slots')
})

test('with another version the same slots are those of another chain', () => {
  const { push, log } = open()
  for (let slot = 10; slot < 20; slot++) push(slot, 0)
  for (let slot = 10; slot < 20; slot++) assert.equal(push(slot, 1, { version: VERSION + 1 }), 'accepted')
  assert.deepEqual([log.length, log[10]], [21, 'new chain'])
})
