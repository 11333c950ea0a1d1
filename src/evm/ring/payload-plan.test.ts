import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { EventBatch, PAYLOAD_LOST } from './event-batch.ts'
import { DESCRIPTOR_BYTES } from './layout.ts'
import { expirePayloads, planPayloads } from './payload-plan.ts'

type Payload = { size: number; offset: number }

const ROOM = { eventBytesMax: 200, readBytesMax: 400 }

function batchOf(payloads: readonly Payload[]): EventBatch {
  const batch = new EventBatch({ eventsMax: payloads.length, payloadBytes: 1024 })
  const view = new DataView(batch.descriptorBytes.buffer)
  for (const [at, { size, offset }] of payloads.entries()) {
    view.setUint32(at * DESCRIPTOR_BYTES + 12, size, true)
    view.setBigUint64(at * DESCRIPTOR_BYTES + 24, BigInt(offset), true)
  }
  return batch
}

/** A direct implementation with bigint. */
function planNaively(payloads: readonly Payload[], windowStart: number) {
  const isLost = ({ size, offset }: Payload): boolean =>
    size > 0 && (size > ROOM.eventBytesMax || offset < windowStart || offset % 16 !== 0)
  const isThere = (payload: Payload): boolean => payload.size > 0 && !isLost(payload)
  const rangeOf = (given: readonly Payload[]): { offset: number; length: number } => {
    const there = given.filter(isThere)
    if (there.length === 0) return { offset: 0, length: 0 }
    const offset = Math.min(...there.map((one) => one.offset))
    return { offset, length: Math.max(...there.map((one) => one.offset + one.size)) - offset }
  }
  let events = 0
  const fits = (count: number): boolean => {
    const given = payloads.slice(0, count)
    return given.filter(isThere).length < 2 || rangeOf(given).length <= ROOM.readBytesMax
  }
  while (events < payloads.length && fits(events + 1)) events += 1
  const taken = payloads.slice(0, events)
  const range = rangeOf(taken)
  const payloadAt = taken.map((one) => (isLost(one) ? PAYLOAD_LOST : one.size === 0 ? 0 : one.offset - range.offset))
  return { plan: { events, ...range, lost: taken.filter(isLost).length }, payloadAt }
}

// Offsets need not grow with the sequence numbers: of two threads the later one may have allocated its bytes first.
const payloads = (base: number) =>
  fc.array(
    fc.record({
      size: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 220 })),
      offset: fc.oneof(
        { weight: 9, arbitrary: fc.integer({ min: -24, max: 24 }).map((step) => base + step * 16) },
        { weight: 1, arbitrary: fc.integer({ min: -400, max: 400 }).map((step) => base + step) },
        { weight: 1, arbitrary: fc.constantFrom(base + 2 ** 31, base + 2 ** 32, base + 2 ** 40) },
      ),
    }),
    { minLength: 1, maxLength: 12 },
  )

for (const base of [2 ** 16, 2 ** 31, 2 ** 32, 2 ** 40]) {
  test(`plans payloads around offset ${base} like the direct implementation, in any order`, () => {
    fc.assert(
      fc.property(payloads(base), fc.integer({ min: -600, max: 100 }), (given, start) => {
        const batch = batchOf(given)
        const expected = planNaively(given, base + start)
        assert.deepEqual(planPayloads(batch, given.length, base + start, ROOM), expected.plan)
        assert.deepEqual([...batch.payloadAt.subarray(0, expected.plan.events)], expected.payloadAt)
      }),
      seedFor(`payload plan about ${base}`, 300),
    )
  })
}

test('payloads below the new window start are lost, each counted once', () => {
  const batch = batchOf([64, 0, 128, 32].map((offset) => ({ size: offset === 0 ? 0 : 16, offset })))
  const planned = planPayloads(batch, 4, 64, ROOM)
  assert.deepEqual([planned.lost, planned.offset], [1, 64])
  expirePayloads(batch, planned, 96)
  assert.deepEqual([...batch.payloadAt], [PAYLOAD_LOST, 0, 64, PAYLOAD_LOST])
  assert.equal(planned.lost, 2)
})
