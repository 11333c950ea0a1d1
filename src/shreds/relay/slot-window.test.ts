import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/property.ts'
import { createSlotWindow } from './slot-window.ts'

const OPTIONS = { backSlots: 10, aheadSlots: 4 }

test('sets window and version by the first packet that passes every check', () => {
  const window = createSlotWindow(OPTIONS)
  assert.equal(window.classify(100, 7, 0), 'current')
  window.advance(100, 7, 0)
  const verdicts = [89, 90, 100, 104, 105].map((slot) => window.classify(slot, 7, 1))
  assert.deepEqual(verdicts, ['late', 'current', 'current', 'current', 'ahead'])
  assert.equal(window.classify(100, 8, 1), 'version')
  window.advance(104, 7, 1)
  assert.deepEqual([window.classify(93, 7, 1), window.classify(108, 7, 1), window.newest()], ['late', 'current', 104])
})

test('a source that replays cannot move the window while current packets arrive', () => {
  const window = createSlotWindow(OPTIONS)
  window.advance(1000, 7, 0)
  for (let ms = 0; ms < 20_000; ms++) {
    assert.equal(window.classify(500, 7, ms), 'late')
    assert.equal(window.classify(2 ** 52, 7, ms), 'ahead')
    if (ms % 400 === 0) window.advance(1000 + ms / 400, 7, ms)
  }
  assert.deepEqual([window.newest(), window.resets()], [1049, 0])
})

test('moves to the median of the packets received when nothing current arrived for two seconds', () => {
  const window = createSlotWindow(OPTIONS)
  window.advance(1000, 7, 0)
  let ms = 2000
  for (let i = 0; i < 127; i++)
    assert.notEqual(window.classify(i % 20 === 0 ? 2 ** 50 : 5000 + (i % 3), 7, ms++), 'current')
  assert.equal(window.classify(5001, 7, ms), 'current')
  assert.deepEqual([window.newest(), window.resets(), window.version()], [5001, 1, 7])
})

test('adopts the version of a restarted cluster, but keeps a configured version', () => {
  const learnt = createSlotWindow(OPTIONS)
  learnt.advance(1000, 7, 0)
  for (let i = 0; i < 128; i++) learnt.classify(3, 9, 5000)
  assert.deepEqual([learnt.version(), learnt.newest()], [9, 3])

  const fixed = createSlotWindow({ ...OPTIONS, version: 7 })
  fixed.advance(1000, 7, 0)
  for (let i = 0; i < 1000; i++) assert.equal(fixed.classify(3, 9, 5000 + i * 10), 'version')
  assert.deepEqual([fixed.version(), fixed.newest(), fixed.resets()], [7, 1000, 0])
})

test('packets far ahead, however many at once, do not make the current slots late', () => {
  for (const [slotMs, backSlots, aheadSlots] of [
    [400, 64, 32],
    [200, 128, 64],
  ] as const) {
    const window = createSlotWindow({ backSlots, aheadSlots, slotMs })
    window.advance(1000, 7, 0)
    for (let ms = 0; ms < 20_000; ms += 10) {
      const slot = 1000 + Math.floor(ms / slotMs)
      assert.equal(window.classify(slot, 7, ms), 'current')
      window.advance(slot, 7, ms)
      for (let ahead = slot + aheadSlots; ahead < slot + 4 * aheadSlots; ahead += aheadSlots)
        if (window.classify(ahead, 7, ms) === 'current') window.advance(ahead, 7, ms)
      assert.equal(window.newest(), slot)
    }
  }
})

test('a chain with slots of 50 ms is followed after a pause', () => {
  const window = createSlotWindow({ backSlots: 128, aheadSlots: 64, slotMs: 50 })
  window.advance(1000, 7, 0)
  for (let slot = 1040; slot < 1400; slot++) {
    const ms = (slot - 1000) * 50
    assert.equal(window.classify(slot, 7, ms), 'current')
    window.advance(slot, 7, ms)
    assert.equal(window.newest(), slot)
  }
})

/** Slots from one block to the next: some leaders skip theirs, and sometimes the source is disconnected. */
const anyPause = fc.oneof(
  { weight: 8, arbitrary: fc.constant(1) },
  { weight: 3, arbitrary: fc.integer({ min: 2, max: 24 }) },
  { weight: 1, arbitrary: fc.integer({ min: 25, max: 1000 }) },
)
const anyChain = fc.record({
  slotMs: fc.constantFrom(200, 300, 400),
  blocks: fc.array(
    fc.record({
      pause: anyPause,
      /** Packets of later slots, by their distance: during the pause and between the packets of the block. */
      early: fc.array(fc.integer({ min: 9, max: 200 }), { maxLength: 12 }),
    }),
    { minLength: 1, maxLength: 60 },
  ),
})
const PACKETS = 200
const OUTLIERS = 128

test('the window follows the chain through skipped slots and outages, whatever comes ahead of it', (t) => {
  const follows = fc.property(anyChain, ({ slotMs, blocks }) => {
    const window = createSlotWindow({ backSlots: 64, aheadSlots: 32, slotMs })
    const take = (slot: number, ms: number): boolean => {
      if (window.classify(slot, 7, ms) !== 'current') return false
      window.advance(slot, 7, ms)
      return true
    }
    let [slot, ms] = [1000, 0]
    take(slot, ms)
    for (const { pause, early } of blocks) {
      for (const distance of early) take(slot + distance, ms + (pause * slotMs) / 2)
      slot += pause
      ms += pause * slotMs
      let dropped = 0
      for (let packet = 0; packet < PACKETS; packet++) {
        const nowMs = ms + (packet * slotMs) / PACKETS
        if (!take(slot, nowMs)) dropped += 1
        // Fewer than those of the chain.
        if (packet % 20 === 0) for (const distance of early) take(slot + distance, nowMs)
      }
      // An outage that is longer than the window ends when enough packets outside it have come.
      assert.ok(dropped <= (pause <= 24 ? 0 : OUTLIERS), `${dropped} packets dropped after ${pause} slots`)
      const distance = (window.newest() ?? 0) - slot
      assert.ok(distance >= -8 && distance <= 64, `${distance} slots from the chain after ${pause} slots`)
    }
  })
  checkProperty(t, follows, 300, 20_000)
})
