import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from './test-seed.ts'
import { TokenBucket } from './token-bucket.ts'

test('starts full, refuses at empty, refills with time', () => {
  const bucket = new TokenBucket({ capacity: 10, perSecond: 5 }, 0)
  assert.equal(bucket.take(10, 0), true)
  assert.equal(bucket.take(1, 0), false)
  assert.equal(bucket.waitMs(1, 0), 200)
  assert.equal(bucket.take(1, 199), false)
  assert.equal(bucket.take(1, 200), true)
  assert.equal(bucket.fullInMs(200), 2000)
  assert.equal(bucket.level(60_000), 10)
})

test('a refusal takes nothing', () => {
  const bucket = new TokenBucket({ capacity: 3, perSecond: 0 }, 0)
  assert.equal(bucket.take(4, 0), false)
  assert.equal(bucket.take(3, 0), true)
  assert.equal(bucket.waitMs(1, 0), Number.POSITIVE_INFINITY)
})

test('a clock that stops or goes back refills nothing', () => {
  const bucket = new TokenBucket({ capacity: 10, perSecond: 1000 }, 5000)
  assert.equal(bucket.take(10, 5000), true)
  for (const at of [5000, 5000.9, 4000, 0]) assert.equal(bucket.level(at), 0)
  assert.equal(bucket.level(5001), 1)
})

test('years without access fill it to its capacity', () => {
  const bucket = new TokenBucket({ capacity: 9_000_000_000, perSecond: 9_000_000_000 }, 0)
  bucket.take(9_000_000_000, 0)
  assert.equal(bucket.level(1e12), 9_000_000_000)
})

test('force() goes into debt that refills first', () => {
  const bucket = new TokenBucket({ capacity: 10, perSecond: 10 }, 0)
  bucket.force(15, 0)
  assert.equal(bucket.level(0), -5)
  assert.equal(bucket.take(1, 500), false)
  assert.equal(bucket.take(1, 600), true)
})

test('refills the same amount with a million accesses as with one', () => {
  const often = new TokenBucket({ capacity: 1_000_000, perSecond: 333 }, 0)
  const once = new TokenBucket({ capacity: 1_000_000, perSecond: 333 }, 0)
  often.take(1_000_000, 0)
  once.take(1_000_000, 0)
  for (let at = 0; at <= 1_000_000; at++) often.level(at)
  assert.equal(often.level(1_000_000), once.level(1_000_000))
  assert.equal(once.level(1_000_000), 333_000)
})

test('never grants more than capacity plus rate times time, and waitMs is exact', () => {
  const step = fc.record({ afterMs: fc.integer({ min: 0, max: 500 }), cost: fc.integer({ min: 0, max: 30 }) })
  const limits = fc.record({ capacity: fc.integer({ min: 1, max: 50 }), perSecond: fc.integer({ min: 1, max: 100 }) })
  fc.assert(
    fc.property(limits, fc.array(step, { maxLength: 60 }), (given, steps) => {
      const bucket = new TokenBucket(given, 0)
      let nowMs = 0
      let taken = 0
      for (const { afterMs, cost } of steps) {
        nowMs += afterMs
        const waitMs = bucket.waitMs(cost, nowMs)
        const ok = bucket.take(cost, nowMs)
        assert.equal(ok, waitMs === 0)
        if (ok) taken += cost
        assert(taken <= given.capacity + (given.perSecond * nowMs) / 1000 + 1e-6)
        if (!ok && waitMs !== Number.POSITIVE_INFINITY) {
          const copyLevel = bucket.level(nowMs)
          assert(copyLevel + (given.perSecond * waitMs) / 1000 >= cost - 1e-6)
          assert(copyLevel + (given.perSecond * (waitMs - 1)) / 1000 < cost)
        }
      }
    }),
    seedFor('token-bucket'),
  )
})
