import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPaceLatency } from './pace-latency.ts'

/** Slots of this length; one in ten is late by 50 ms. */
function* arrivals(
  slots: number,
  { slotMs, fromSlot = 300_000_000, fromMs = 5000 }: Arrivals,
): Generator<[number, number]> {
  for (let at = 0; at < slots; at++) yield [fromSlot + at, fromMs + at * slotMs + (at % 10 === 5 ? 50 : 0)]
}
type Arrivals = { slotMs: number; fromSlot?: number; fromMs?: number }

test('the length of a slot is learned from the slots: on time is on time at any length', () => {
  for (const slotMs of [200, 350, 400]) {
    const latency = createPaceLatency(undefined)
    for (const [slot, atMs] of arrivals(500, { slotMs })) latency.add(slot, atMs)
    const all = latency.all()
    assert.equal(all.length, 500)
    for (const [at, ms] of all.entries()) {
      const wanted = at % 10 === 5 ? 50 : 0
      assert.ok(Math.abs(ms - wanted) < 1, `slot ${at} at ${slotMs} ms: ${ms}`)
    }
    assert.ok(Math.abs(latency.add(300_000_500, 5000 + 500 * slotMs + 80) - 80) < 2)
  }
})

test('a given length is used as it is', () => {
  const latency = createPaceLatency(400)
  assert.deepEqual([latency.add(10, 0), latency.add(11, 410), latency.add(12, 800)], [0, 10, 0])
  assert.deepEqual(latency.all(), [0, 10, 0])
})

test('a new length in the middle begins anew', () => {
  const latency = createPaceLatency(undefined)
  for (const [slot, atMs] of arrivals(200, { slotMs: 400, fromSlot: 1000, fromMs: 0 })) latency.add(slot, atMs)
  for (const [slot, atMs] of arrivals(600, { slotMs: 200, fromSlot: 1200, fromMs: 80_000 })) latency.add(slot, atMs)
  const all = latency.all()
  assert.ok(all.length >= 200 && all.length < 600, `${all.length} slots`)
  // The first slot after the change may be a late one, from which the others are measured. At one length over all slots it would be seconds.
  assert.ok(Math.max(...all) <= 101, `${Math.max(...all)}`)
})

test('slots without a time are not late', () => {
  const latency = createPaceLatency(undefined)
  for (let slot = 0; slot < 100; slot++) assert.equal(latency.add(slot, 0), 0)
})
