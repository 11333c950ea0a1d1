import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createBackoff } from './backoff.ts'
import { didYouMean, editDistance } from './did-you-mean.ts'
import { parseDuration, printBytesShort, printDuration, printDurationShort } from './human-units.ts'
import { createSeededRandom, randomInt } from './random.ts'
import { createRollingWindow } from './rolling-window.ts'
import { seedFor } from './test-seed.ts'
import { createUlid } from './ulid.ts'

test('backoff grows to its maximum, keeps half of each delay, and starts again after a success', () => {
  const backoff = createBackoff({ firstMs: 100, maxMs: 1000 }, createSeededRandom(1))
  const ceilings = [100, 200, 400, 800, 1000, 1000]
  for (const ceiling of ceilings) {
    const delayMs = backoff.nextMs()
    assert(delayMs >= ceiling / 2 && delayMs <= ceiling, `${delayMs} is not within ${ceiling}`)
  }
  assert.equal(backoff.attempts(), 6)
  backoff.reset()
  assert(backoff.nextMs() <= 100)
})

test('parses and prints sizes and durations', () => {
  const durations = { '1h': 3_600_000, '1h30m': 5_400_000, '250ms': 250, '1.5s': 1500, '0': 0, '7d': 604_800_000 }
  for (const [text, ms] of Object.entries(durations)) assert.equal(parseDuration(text), ms, text)
  for (const text of ['', '1', 'h', '30m1h', '1h1h', '-1h', '1y', '1 hour', '1'.repeat(50)])
    assert.equal(parseDuration(text), undefined, text)
  assert.equal(printBytesShort(1_468_006), '1.4MiB')
  assert.equal(printDurationShort(273_600_000), '3d4h')
  assert.equal(printDuration(-1500), '-1s500ms')
})

test('a printed duration parses back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 50 }), (n) => {
      assert.equal(parseDuration(printDuration(n)), n)
    }),
    seedFor('durations'),
  )
})

test('suggests the nearest known word, and none that is too far', () => {
  const known = ['upstreams', 'bundle', 'sender', 'indexer']
  assert.equal(didYouMean('upstream', known), 'upstreams')
  assert.equal(didYouMean('budnle', known), 'bundle')
  assert.equal(didYouMean('SENDER', known), 'sender')
  assert.equal(didYouMean('localnet', known), undefined)
  assert.equal(didYouMean('x'.repeat(1000), known), undefined)
  assert.equal(editDistance('ab', 'ba'), 1)
  assert.equal(editDistance('kitten', 'sitting'), 3)
  assert.equal(editDistance('', 'abc'), 3)
})

test('a seeded random repeats itself, differs by seed, and is spread evenly', () => {
  const draw = (seed: number) => {
    const random = createSeededRandom(seed)
    return [...random.bytes(8), random.float()]
  }
  assert.deepEqual(draw(7), draw(7))
  assert.notDeepEqual(draw(7), draw(8))
  const random = createSeededRandom(3)
  const counts = Array.from({ length: 10 }, () => 0)
  for (let n = 0; n < 10_000; n++) {
    const at = randomInt(random, 10)
    counts[at] = (counts[at] as number) + 1
  }
  for (const count of counts) assert(count > 850 && count < 1150, `${count} is far from 1000`)
})

test('a rolling window drops what is older than it, also after a long time without events', () => {
  const window = createRollingWindow({ windowMs: 1000, buckets: 10 })
  window.add(5, 0)
  window.add(7, 950)
  assert.equal(window.sum(999), 12)
  assert.equal(window.sum(1100), 7)
  assert.equal(window.sum(2100), 0)
  window.add(1, 1e9)
  assert.equal(window.sum(1e9), 1)
  // A clock that goes back counts into the newest bucket.
  window.add(1, 0)
  assert.equal(window.sum(1e9), 2)
})

test('a rolling window is never short, and late by at most one bucket', () => {
  const steps = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 80 })
  fc.assert(
    fc.property(steps, (gaps) => {
      const window = createRollingWindow({ windowMs: 1000, buckets: 10 })
      const times: number[] = []
      let nowMs = 0
      for (const gap of gaps) {
        nowMs += gap
        times.push(nowMs)
        window.add(1, nowMs)
        const within = (ms: number) => times.filter((time) => time > nowMs - ms).length
        const sum = window.sum(nowMs)
        assert(sum >= within(1000) && sum <= within(1101), `${sum} of ${within(1000)}..${within(1101)}`)
      }
    }),
    seedFor('rolling-window'),
  )
})

test('a ULID is 26 characters that sort by time', () => {
  const random = createSeededRandom(1)
  const ids = [1, 1_700_000_000_000, 1_700_000_000_001, 2 ** 48 - 1].map((ms) => createUlid(ms, random))
  for (const id of ids) assert.match(id, /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
  assert.deepEqual(ids.toSorted(), ids)
  assert.equal(ids[3]?.slice(0, 10), '7ZZZZZZZZZ')
})
