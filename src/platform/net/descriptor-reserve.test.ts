import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createDescriptorReserve } from './descriptor-reserve.ts'

const withDescriptor = (fd: number) => ({ _handle: { fd } }) as unknown as Socket

test('reserves the last 64 descriptors, a quarter of a small limit', () => {
  for (const [limit, firstReserved] of [
    [65_536, 65_472],
    [256, 192],
    [100, 75],
  ] as const) {
    const reserve = createDescriptorReserve(createManualClock(), () => limit)
    assert.equal(reserve.isTouchedBy(withDescriptor(firstReserved - 1)), false)
    assert.equal(reserve.isTouchedBy(withDescriptor(firstReserved)), true)
  }
})

test('a changed limit applies within a second; an unreadable one leaves the last', () => {
  const clock = createManualClock()
  let limit = -1
  const reserve = createDescriptorReserve(clock, () => limit)
  assert.equal(reserve.isTouchedBy(withDescriptor(1_000_000)), false)
  // The next connection reads it again: an exhausted process may have a free descriptor by then.
  limit = 1000
  assert.equal(reserve.isTouchedBy(withDescriptor(990)), true)
  limit = 2000
  assert.equal(reserve.isTouchedBy(withDescriptor(990)), true)
  clock.advance(1000)
  assert.equal(reserve.isTouchedBy(withDescriptor(990)), false)
  limit = 1000
  clock.advance(1000)
  assert.equal(reserve.isTouchedBy(withDescriptor(990)), true)
  limit = -1
  clock.advance(1000)
  assert.equal(reserve.isTouchedBy(withDescriptor(990)), true)
  assert.equal(reserve.isTouchedBy({ _handle: null } as unknown as Socket), false)
})
