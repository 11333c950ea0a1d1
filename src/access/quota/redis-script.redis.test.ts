import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { FORMER_BOOK_SCRIPT } from '../../../test/support/access/former-book-script.ts'
import { type RedisServer, startRedis } from '../../../test/support/machine/redis.ts'
import { createRandom, seedOf } from '../../../test/support/process/property.ts'
import { createRedisScript, openRedis, type RedisLink, type RedisScript } from '../../platform/db/redis.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { BOOK_SCRIPT, bookingArgs, parseBooked } from './redis-script.ts'

/** The same script with given times instead of the server's clock. */
const withTime = ({ text }: RedisScript) =>
  createRedisScript(text.replace("redis.call('TIME')", '{ KEYS[3], KEYS[4] }'))
const NOW = withTime(BOOK_SCRIPT)
const FORMER = withTime(FORMER_BOOK_SCRIPT)

const START_MS = 1_800_000_000_000
const RATES = { units: 200, sends: 30, slow: 0.1 }
type Key = keyof typeof RATES
const KEYS = Object.keys(RATES) as Key[]
/** Far above what is refilled, so that every millisecond can be seen in a level. */
const CAPACITY = 1e6

describe('the time of each bucket, on a real server', () => {
  let server: RedisServer
  let redis: RedisLink
  before(async () => {
    server = await startRedis()
    redis = openRedis({ url: server.url }, { clock: systemClock, log: silentLogger, random: secureRandom })
    await redis.tried
  })
  after(async () => {
    await redis[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  /** A subscription whose buckets are emptied by the first booking of each, by one spender for each version. */
  const createSubscription = (name: string) => async (script: RedisScript, keys: readonly Key[], atMs: number) => {
    const buckets = keys.map((key) => ({
      ...{ key, perSecond: RATES[key], capacity: CAPACITY, booked: 0 },
      spent: script === NOW ? CAPACITY : 0,
    }))
    const month = { number: 1, spent: 0, booked: 0, usedKnown: 0 }
    const time = [String(Math.floor(atMs / 1000)), String((atMs % 1000) * 1000)]
    const spender = `${name}:${script === NOW ? 'now' : 'former'}`
    const args = bookingArgs({ opening: 0, month, buckets })
    // The former version has no number of the opening.
    if (script === FORMER) args.splice(4, 1)
    const outcome = await redis.run(script, [name, spender, ...time], args)
    assert.ok(outcome.ok, JSON.stringify(outcome))
    const booked = parseBooked(outcome.reply, keys.length)
    assert.ok(booked !== undefined)
    return booked.levels
  }
  const isNear = (level: number | undefined, expected: number) => Math.abs((level ?? Number.NaN) - expected) < 1e-6

  test('a bucket refills for the time in which the bookings did not contain it', async () => {
    const book = createSubscription('own-time')
    await book(NOW, KEYS, START_MS)
    for (let ms = 250; ms < 10_000; ms += 250) await book(NOW, ['units'], START_MS + ms)
    const levels = await book(NOW, KEYS, START_MS + 10_000)
    for (const [at, key] of KEYS.entries()) assert.ok(isNear(levels[at], RATES[key] * 10), `${key}: ${levels[at]}`)
  })

  test('beside the former version no time refills a bucket twice, and after it none is lost', async (t) => {
    const random = createRandom(seedOf(t))
    const book = createSubscription('mixed')
    await book(NOW, KEYS, START_MS)
    let ms = 0
    const check = async (script: RedisScript, keys: readonly Key[]) => {
      const levels = await book(script, keys, START_MS + ms)
      for (const [at, key] of keys.entries()) {
        const most = (RATES[key] * ms) / 1000
        assert.ok((levels[at] ?? Number.NaN) <= most + 1e-6, `${key}: ${levels[at]} of ${most} after ${ms} ms`)
      }
      return levels
    }
    for (let step = 0; step < 300; step++) {
      ms += random(400)
      const keys = KEYS.filter(() => random(2) === 0)
      await check(random(2) === 0 ? NOW : FORMER, keys)
    }
    // The last machine is upgraded. A booking of the former version within the millisecond of another refills nothing, and leaves no trace.
    ms += 1
    const last = await check(FORMER, KEYS)
    for (let step = 0; step < 40; step++) {
      ms += 250
      await check(NOW, ['units'])
    }
    const levels = await check(NOW, KEYS)
    for (const [at, key] of KEYS.entries())
      assert.ok(isNear(levels[at], (last[at] ?? Number.NaN) + RATES[key] * 10), `${key}: ${last[at]}, ${levels[at]}`)
  })

  test('a booking of all buckets by either version in turn loses no time', async () => {
    const book = createSubscription('turns')
    await book(NOW, KEYS, START_MS)
    let levels: readonly number[] = []
    for (let step = 1; step <= 100; step++)
      levels = await book(step % 3 === 0 ? FORMER : NOW, KEYS, START_MS + step * 100)
    for (const [at, key] of KEYS.entries()) assert.ok(isNear(levels[at], RATES[key] * 10), `${key}: ${levels[at]}`)
  })

  test('a hash of the former version is continued from its time', async () => {
    const book = createSubscription('upgraded')
    await book(FORMER, KEYS, START_MS)
    // Full, and emptied 5 s later by a process of this version.
    assert.deepEqual(await book(NOW, KEYS, START_MS + 5000), [0, 0, 0])
    await book(FORMER, ['units'], START_MS + 6000)
    const levels = await book(NOW, KEYS, START_MS + 8000)
    assert.ok(isNear(levels[0], RATES.units * 3), `${levels[0]}`)
    // The former version does not note which buckets it has refilled.
    assert.ok(isNear(levels[1], RATES.sends * 2), `${levels[1]}`)
  })

  test("a server's clock that was ahead stops no refill, whichever version has booked meanwhile", async () => {
    const book = createSubscription('ahead')
    await book(NOW, KEYS, START_MS)
    const yearMs = 31_536_000_000
    await book(FORMER, ['slow'], START_MS + yearMs)
    const earlier = await book(NOW, KEYS, START_MS + 1000)
    const levels = await book(NOW, KEYS, START_MS + 2000)
    for (const [at, key] of KEYS.entries())
      assert.ok(isNear(levels[at], Math.min(CAPACITY, (earlier[at] ?? Number.NaN) + RATES[key])), key)
  })
})
