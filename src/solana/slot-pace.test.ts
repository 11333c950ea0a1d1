import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SlotPace } from './slot-pace.ts'

const MINUTE_MS = 60_000

/** The slots of a chain of this length, as a source shows them that is asked at an interval. */
function drive(
  pace: SlotPace,
  { slotMs, fromMs = 0, forMs = MINUTE_MS, fromSlot = 1000, everyMs = 100 }: Drive,
): number {
  for (let atMs = fromMs; atMs <= fromMs + forMs; atMs += everyMs)
    pace.observe(fromSlot + Math.floor((atMs - fromMs) / slotMs), atMs)
  return fromSlot + Math.floor(forMs / slotMs)
}
type Drive = { slotMs: number; fromMs?: number; forMs?: number; fromSlot?: number; everyMs?: number }

function assertNear(ms: number | undefined, slotMs: number, share = 0.1): void {
  assert.ok(ms !== undefined && Math.abs(ms - slotMs) <= slotMs * share, `${ms} is not within ${share} of ${slotMs}`)
}

test('any slots of one length, late by up to 0.3 of it and with losses, give that length within 10 % after a minute', () => {
  fc.assert(
    fc.property(
      fc.record({
        slotMs: fc.integer({ min: 50, max: 2000 }),
        fromSlot: fc.integer({ min: 1, max: 2 ** 40 }),
        fromMs: fc.integer({ min: 0, max: 1e9 }),
        /** For each slot, in turn: whether it is lost, and its delay as a share of the length. */
        fates: fc.array(fc.record({ isLost: fc.boolean(), late: fc.double({ min: 0, max: 0.3, noNaN: true }) }), {
          minLength: 1,
          maxLength: 60,
        }),
      }),
      ({ slotMs, fromSlot, fromMs, fates }) => {
        // A source has to show slots in order to be learned from.
        fc.pre(fates.some(({ isLost }) => !isLost) && longestLoss(fates) * slotMs < 10_000)
        const pace = new SlotPace()
        for (let slot = 0; slot * slotMs <= MINUTE_MS; slot++) {
          const { isLost, late } = fates[slot % fates.length] as (typeof fates)[number]
          if (!isLost) pace.observe(fromSlot + slot, fromMs + (slot + late) * slotMs)
        }
        assertNear(pace.ms, slotMs)
      },
    ),
    { numRuns: 500 },
  )
})

/** Over the end of the list, which is repeated. */
function longestLoss(fates: readonly { readonly isLost: boolean }[]): number {
  let [longest, current] = [0, 0]
  for (const { isLost } of [...fates, ...fates]) {
    current = isLost ? current + 1 : 0
    longest = Math.max(longest, current)
  }
  return longest
}

test('slots that are polled once a second give their length too', () => {
  for (const slotMs of [200, 250, 300, 350, 400, 1000]) {
    const pace = new SlotPace()
    drive(pace, { slotMs, everyMs: 1000 })
    assertNear(pace.ms, slotMs, 0.05)
  }
})

test('is unknown before 8 s and 20 slots', () => {
  const pace = new SlotPace()
  drive(pace, { slotMs: 200, forMs: 7900 })
  assert.equal(pace.ms, undefined)
  drive(pace, { slotMs: 200, fromMs: 8000, fromSlot: 1040, forMs: 200 })
  assertNear(pace.ms, 200)
  const slow = new SlotPace()
  drive(slow, { slotMs: 1000, forMs: 18_900 })
  assert.equal(slow.ms, undefined)
})

test('a new length is known within a minute', () => {
  const pace = new SlotPace()
  const slot = drive(pace, { slotMs: 400, forMs: 300_000 })
  assertNear(pace.ms, 400, 0.02)
  drive(pace, { slotMs: 200, fromMs: 300_000, fromSlot: slot, forMs: MINUTE_MS })
  assertNear(pace.ms, 200, 0.02)
})

test('a minute without slots is a pause, not long slots', () => {
  for (const slotMs of [50, 200, 400]) {
    const pace = new SlotPace()
    const slot = drive(pace, { slotMs, forMs: MINUTE_MS })
    pace.observe(slot + 1, 2 * MINUTE_MS)
    assert.equal(pace.ms, undefined)
    drive(pace, { slotMs, fromMs: 2 * MINUTE_MS, fromSlot: slot + 1, forMs: 12_000 })
    assertNear(pace.ms, slotMs, 0.05)
  }
})

test('a few seconds without slots hardly change the length', () => {
  const pace = new SlotPace()
  const slot = drive(pace, { slotMs: 400, forMs: MINUTE_MS })
  const next = drive(pace, { slotMs: 400, fromMs: MINUTE_MS + 4500, fromSlot: slot + 1, forMs: 10_000 })
  assertNear(pace.ms, 400)
  drive(pace, { slotMs: 400, fromMs: MINUTE_MS + 14_500, fromSlot: next + 1, forMs: 20_000 })
  assertNear(pace.ms, 400)
})

test('slots that are away while the source is not seen count by their number', () => {
  const pace = new SlotPace()
  drive(pace, { slotMs: 400, forMs: 20_000 })
  drive(pace, { slotMs: 400, fromMs: 40_000, fromSlot: 1100, forMs: 5000 })
  assertNear(pace.ms, 400, 0.05)
})

test('a slot below an earlier one begins anew', () => {
  const pace = new SlotPace()
  drive(pace, { slotMs: 400 })
  pace.observe(500, MINUTE_MS + 100)
  assert.equal(pace.ms, undefined)
  drive(pace, { slotMs: 300, fromMs: MINUTE_MS + 200, fromSlot: 501, forMs: 12_000 })
  assertNear(pace.ms, 300, 0.05)
})

test('is never below 50 ms or above 2 s', () => {
  const fast = new SlotPace()
  drive(fast, { slotMs: 1 })
  assert.equal(fast.ms, 50)
  const slow = new SlotPace()
  drive(slow, { slotMs: 2400, forMs: 200_000 })
  assert.equal(slow.ms, 2000)
})
