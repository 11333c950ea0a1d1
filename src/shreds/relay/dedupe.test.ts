import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createShredHead, LAYOUTS, type ShredHead } from '../../solana/shred/shred.ts'
import { createDedupe } from './dedupe.ts'

function head(slot: number, index: number, kind: 'data' | 'code' = 'data'): ShredHead {
  return { ...createShredHead(), slot, index, fecSetIndex: index - (index % 32), layout: LAYOUTS[kind] }
}
const signature = (fill: number, last = fill): Int32Array => new Int32Array(16).fill(fill).with(15, last)

test('identifies a shred by slot, index, kind and signature only', () => {
  const dedupe = createDedupe({ slots: 8, isCurrent: () => false, shredsPerSlotMax: 32_768 })
  const a = signature(1)
  assert.equal(dedupe.has(a, 0, head(5, 33)), false)
  assert.equal(dedupe.add(a, 0, head(5, 33)), true)
  assert.equal(dedupe.has(a, 0, head(5, 33)), true)
  assert.equal(dedupe.has(a, 0, { ...head(5, 33), layout: LAYOUTS.resignedData }), true, 'kind, not variant')
  assert.equal(dedupe.has(a, 0, head(5, 33, 'code')), false)
  assert.equal(dedupe.has(a, 0, head(5, 34)), false)
  assert.equal(dedupe.has(a, 0, head(6, 33)), false)
  assert.equal(dedupe.has(signature(1, 2), 0, head(5, 33)), false, 'the last word of the signature counts')
})

test('two versions of one FEC set by one leader pass once each', () => {
  const dedupe = createDedupe({ slots: 4, isCurrent: () => false, shredsPerSlotMax: 32_768 })
  for (const version of [1, 2, 3]) {
    assert.equal(dedupe.has(signature(version), 0, head(9, 0)), false)
    dedupe.add(signature(version), 0, head(9, 0))
  }
  for (const version of [1, 2, 3]) {
    assert.equal(dedupe.has(signature(version), 0, head(9, 0)), true)
    assert.equal(dedupe.has(signature(version), 0, head(9, 1)), false)
  }
})

test('refuses signatures beyond 257 of one slot; a later slot starts empty', () => {
  const dedupe = createDedupe({ slots: 2, isCurrent: () => false, shredsPerSlotMax: 64 })
  for (let i = 0; i < 257; i++) assert.equal(dedupe.add(signature(i), 0, head(1, 0)), true)
  assert.equal(dedupe.add(signature(999), 0, head(1, 0)), false)
  assert.equal(dedupe.add(signature(5), 0, head(1, 1)), true, 'known signatures are still accepted')
  assert.equal(dedupe.add(signature(999), 0, head(3, 0)), true)
  assert.equal(dedupe.has(signature(5), 0, head(1, 0)), false, 'slot 3 replaced slot 1')
})

test('handles the largest index and a packet anywhere in the arena', () => {
  const dedupe = createDedupe({ slots: 2, isCurrent: () => false, shredsPerSlotMax: 32_768 })
  const words = new Int32Array(1024).fill(7, 512, 528)
  dedupe.add(words, 512, head(2, 32_767, 'code'))
  assert.equal(dedupe.has(signature(7), 0, head(2, 32_767, 'code')), true)
  assert.equal(dedupe.has(words, 0, head(2, 32_767, 'code')), false)
})

test('agrees with a Set of strings over random shreds of advancing slots', (t) => {
  const random = createRandom(seedOf(t))
  const dedupe = createDedupe({ slots: 16, isCurrent: () => false, shredsPerSlotMax: 128 })
  const known = new Set<string>()
  const runs = repeatsOf({ short: 50_000, full: 1_000_000 })
  for (let run = 0; run < runs; run++) {
    const slot = Math.floor(run / 2000) + random(8)
    const kind = random(2) === 0 ? 'data' : 'code'
    const shred = head(slot, random(128), kind)
    const fill = random(20) === 0 ? random(4) : shred.fecSetIndex
    const key = `${slot} ${shred.index} ${kind} ${fill}`
    assert.equal(dedupe.has(signature(fill), 0, shred), known.has(key), key)
    assert.equal(dedupe.add(signature(fill), 0, shred), true)
    known.add(key)
  }
})

test('remembers the slots of two windows that are apart by any distance', () => {
  for (const distance of [8, 16, 80, 81]) {
    const dedupe = createDedupe({
      slots: 8,
      isCurrent: (slot) => (slot >= 100 && slot < 108) || (slot >= 100 + distance && slot < 108 + distance),
      shredsPerSlotMax: 64,
    })
    const slots = [90, 91, 92, 93, 94, 95, 96, 97, 98, 99]
    for (let slot = 100; slot < 108; slot++) slots.push(slot, slot + distance)
    for (const slot of slots) dedupe.add(signature(1), 0, head(slot, 0))
    for (const slot of slots) assert.equal(dedupe.has(signature(1), 0, head(slot, 0)), slot >= 100, `slot ${slot}`)
  }
})
