import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccessFixture } from '../../test/support/access/fixture.ts'
import { createManualClock } from '../core/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import { startEndingWatch } from './ending.ts'

const DAY_MS = 86_400_000

test('subscriptions that work now and end within seven days are counted and named, the next first', async () => {
  const clock = createManualClock()
  const fixture = createAccessFixture()
  const inDays = (days: number) => clock.nowMs() + days * DAY_MS
  const ends = { gone: inDays(-1), today: inDays(0.5), week: inDays(6.9), later: inDays(8) }
  for (const [name, validUntil] of Object.entries(ends)) fixture.subscribe({ name, validUntil })
  fixture.subscribe({ name: 'open' })
  fixture.subscribe({ name: 'suspended', validUntil: inDays(2), state: 'suspended' })
  fixture.publish()
  await using watch = startEndingWatch({ clock, snapshot: fixture.snapshot })
  await clock.advanceAsync(0)
  await until('the first check is complete', () => watch.report().within7d > 0)
  const { within1d, within7d, next } = watch.report()
  assert.deepEqual([within1d, within7d], [1, 2])
  assert.deepEqual(
    next.map(({ name }) => name),
    ['today', 'week'],
  )
  fixture.subscribe({ name: 'added', validUntil: inDays(3) })
  fixture.publish()
  watch.changed()
  await clock.advanceAsync(1000)
  await until('the change is found', () => watch.report().within7d === 3)
  await clock.advanceAsync(1.5 * DAY_MS)
  const names = () => watch.report().next.map(({ name }) => name)
  // A check on a busy machine takes several turns of the event loop.
  await until('the last check is complete', () => names().includes('later'))
  assert.deepEqual(names(), ['added', 'week', 'later'])
})

test('a change during a check is found by the next one, at once', async () => {
  const clock = createManualClock()
  const fixture = createAccessFixture()
  fixture.subscribe({ name: 'open' })
  fixture.publish()
  const { promise: held, resolve: proceed } = Promise.withResolvers<void>()
  let checks = 0
  await using watch = startEndingWatch({
    clock,
    snapshot() {
      checks += 1
      return fixture.snapshot()
    },
    // The first check waits before it reads the next subscription.
    slices: () => ({ isSpent: () => checks === 1, yield: () => held }),
  })
  fixture.subscribe({ name: 'one', validUntil: clock.nowMs() + DAY_MS })
  fixture.publish()
  watch.changed()
  await clock.advanceAsync(1000)
  proceed()
  await until('the change is found', () => watch.report().within7d === 1)
  assert.equal(checks, 2)
})
