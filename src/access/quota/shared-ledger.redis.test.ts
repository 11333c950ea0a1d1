import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { startRedis } from '../../../test/support/machine/redis.ts'
import { isFull } from '../../../test/support/process/property.ts'
import { openRedis } from '../../platform/db/redis.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { accessMetrics } from '../metrics.ts'
import { BUILT_IN_PLANS } from '../plan.ts'
import { compileTerms } from '../terms.ts'
import { Calendar, monthOf } from './calendar.ts'
import { BOOK_SCRIPT, type Booking, bookingArgs, LIVE_SCRIPT, parseBooked, parseHeartbeat } from './redis-script.ts'
import { type SharedLedger, startSharedLedger } from './shared-ledger.ts'

const CHILD = join(import.meta.dirname, '../../../test/support/access/quota-process.ts')
const link = (url: string) => openRedis({ url }, { clock: systemClock, log: silentLogger, random: secureRandom })

describe('the scripts on a real server', () => {
  const bucket = { key: 'units', perSecond: 100, capacity: 1000 }
  const monthNumber = monthOf(Date.now())
  /** Total units spent so far, of the bucket and of the month. */
  const booking = (
    spent: number,
    month = 0,
    given: { booked?: number; usedKnown?: number; opening?: number } = {},
  ): Booking => ({
    opening: given.opening ?? 0,
    month: { number: monthNumber, spent: month, booked: given.booked ?? 0, usedKnown: given.usedKnown ?? 0 },
    buckets: [{ ...bucket, spent, booked: given.booked ?? 0 }],
  })
  const bookOn = (redis: ReturnType<typeof link>) => async (given: Booking, spender: string) => {
    const outcome = await redis.run(BOOK_SCRIPT, ['k', spender], bookingArgs(given))
    assert.ok(outcome.ok, JSON.stringify(outcome))
    const booked = parseBooked(outcome.reply, 1)
    assert.ok(booked !== undefined)
    return booked
  }

  test("book, refill by the server's clock and never above capacity", async () => {
    await using server = await startRedis()
    await using redis = link(server.url)
    await redis.tried
    const book = bookOn(redis)
    const first = await book(booking(400, 400, { usedKnown: 7000 }), 'a')
    assert.deepEqual(first, { month: monthNumber, used: 7400, levels: [600] })
    const second = await book(booking(1100, 1100, { usedKnown: 1 }), 'a')
    assert.equal(second.used, 8100)
    assert.ok((second.levels[0] ?? 0) <= 0 && (second.levels[0] ?? 0) >= -100, 'spent ahead')
    await until('refill', async () => ((await book(booking(1100, 1100), 'a')).levels[0] ?? 0) > 10)
    const refunded = await book(booking(-3900, -7900), 'a')
    assert.deepEqual([refunded.used, refunded.levels[0]], [0, 1000])
  })

  test('a repeated booking counts once, each spender has its own record, and without a record the value of the caller is used', async () => {
    await using server = await startRedis()
    await using redis = link(server.url)
    await redis.tried
    const book = bookOn(redis)
    await book(booking(300, 300), 'a')
    assert.equal((await book(booking(300, 300), 'a')).used, 300)
    assert.equal((await book(booking(350, 350), 'a')).used, 350)
    assert.equal((await book(booking(100, 100), 'b')).used, 450)
    assert.ok(((await book(booking(350, 350), 'a')).levels[0] ?? 0) <= 600, 'the bucket lost 450 once')
    // The record of a spender was lost with its key: units that the spender reports as booked are not booked again.
    assert.equal((await book(booking(60, 60, { booked: 50 }), 'c')).used, 460)
  })

  test('the next opening counts from zero, and a late booking of an earlier one books nothing', async () => {
    await using server = await startRedis()
    await using redis = link(server.url)
    await redis.tried
    const book = bookOn(redis)
    await book(booking(300, 300, { opening: 7 }), 'a')
    assert.equal((await book(booking(20, 20, { opening: 9 }), 'a')).used, 320)
    assert.equal((await book(booking(300, 300, { opening: 7 }), 'a')).used, 320)
    const last = await book(booking(30, 30, { opening: 9, booked: 20 }), 'a')
    assert.equal(last.used, 330)
    assert.ok((last.levels[0] ?? 0) >= 670, 'the bucket lost 330 once')
  })

  test('a slow rate refills by the time that has passed, however often it is booked, also a very large bucket', async () => {
    await using server = await startRedis()
    await using redis = link(server.url)
    await redis.tried
    // The same script with given times instead of the server's clock.
    const text = BOOK_SCRIPT.text.replace("redis.call('TIME')", '{ KEYS[3], KEYS[4] }')
    const month = { number: monthNumber, spent: 0, booked: 0, usedKnown: 0 }
    for (const { gapMs, capacity, perSecond } of [
      { gapMs: 50, capacity: 1, perSecond: 1 / 3600 },
      { gapMs: 5, capacity: 1, perSecond: 1 / 86_400 },
      { gapMs: 5, capacity: 1e12, perSecond: 1 / 3600 },
    ]) {
      const buckets = [{ key: 'units', perSecond, capacity, spent: capacity, booked: 0 }]
      const args = bookingArgs({ opening: 0, month, buckets })
      const keys = [`slow-${gapMs}-${capacity}`, `spender-${gapMs}-${capacity}`]
      let level: number | undefined
      for (let step = 0; step <= 400; step++) {
        const atMs = 1_800_000_000_000 + step * gapMs
        const time = [String(Math.floor(atMs / 1000)), String((atMs % 1000) * 1000)]
        const outcome = await redis.run({ text, sha1: '0'.repeat(40) }, [...keys, ...time], args)
        assert.ok(outcome.ok, JSON.stringify(outcome))
        level = parseBooked(outcome.reply, 1)?.levels[0]
      }
      const expected = (400 * gapMs * perSecond) / 1000
      assert.ok(level !== undefined && Math.abs(level / expected - 1) < 1e-9, `${level} of ${expected} units`)
    }
  })

  test("the server's calendar agrees with ours on any day", async () => {
    await using server = await startRedis()
    await using redis = link(server.url)
    await redis.tried
    // The same arithmetic with given times instead of the server's clock.
    const text = BOOK_SCRIPT.text.replace("redis.call('TIME')", '{ ARGV[6], 0 }').replace('for i = 6,', 'for i = 99,')
    const script = { text, sha1: '0'.repeat(40) }
    const days = isFull ? 40_000 : 3000
    for (let day = 0; day < days; day += isFull ? 1 : 11) {
      const atMs = Date.UTC(2024, 0, 1) + day * 86_400_000 - (day % 2)
      const outcome = await redis.run(
        script,
        [`day-${day}`, 'spender'],
        ['m', '0', '0', '0', '0', String(Math.floor(atMs / 1000))],
      )
      assert.ok(outcome.ok, JSON.stringify(outcome))
      assert.equal(parseBooked(outcome.reply, 0)?.month, monthOf(atMs), new Date(atMs).toISOString())
    }
  })

  test('processes are counted while they send heartbeats', async () => {
    await using server = await startRedis()
    await using redis = link(server.url)
    await redis.tried
    const report = async (id: string, how: string) => {
      const outcome = await redis.run(LIVE_SCRIPT, ['live', `permits:${id}`, 'since'], [id, '200', how])
      return outcome.ok ? parseHeartbeat(outcome.reply)?.processes : outcome.message
    }
    assert.equal(await report('a', 'stay'), 1)
    assert.equal(await report('b', 'stay'), 2)
    assert.equal(await report('a', 'leave'), 1)
    assert.equal(await report('a', 'stay'), 2)
    await until('the silent one to be forgotten', async () => (await report('a', 'stay')) === 1)
  })
})

type Reported = { units: number; fromMs: number; toMs: number; isUp: boolean; processes: number }

function startProcess(url: string, id: string) {
  const child: ChildProcess = spawn(process.execPath, [CHILD, url, id], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  const next = async () => JSON.parse(String((await lines.next()).value)) as { ready?: object } & Reported
  return {
    next,
    report: () => void child.stdin?.write('\n'),
    ended: new Promise((resolve) => child.once('exit', resolve)),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

test('two processes on one server admit no more than the budget and the documented slack', async () => {
  await using server = await startRedis()
  using a = startProcess(server.url, 'a')
  using b = startProcess(server.url, 'b')
  for (const child of [a, b]) assert.ok((await child.next()).ready)
  for (const child of [a, b]) child.report()
  const begunMs = Date.now()
  const windowMs = isFull ? 60_000 : 3000
  await until('the window to pass', () => Date.now() - begunMs >= windowMs, 2 * windowMs)
  for (const child of [a, b]) child.report()
  const reported = [await a.next(), await b.next()]
  await Promise.all([a.ended, b.ended])
  for (const { isUp } of reported) assert.equal(isUp, true)

  const { buckets, unitsBucket } = compileTerms(BUILT_IN_PLANS.build)
  const units = buckets[unitsBucket]
  assert.ok(units !== undefined)
  const seconds =
    (Math.max(...reported.map(({ toMs }) => toMs)) - Math.min(...reported.map(({ fromMs }) => fromMs))) / 1000
  const admitted = reported.reduce((sum, child) => sum + child.units, 0)
  const budget = units.capacity + units.perSecond * seconds
  const slack = 2 * units.chunk
  assert.ok(admitted <= budget + slack, `${admitted} of ${budget} + ${slack} in ${seconds} s`)
  assert.ok(admitted >= budget * 0.9, `${admitted} of ${budget}: both asked for more than there was`)

  // Both have booked all units before they closed.
  await using redis = link(server.url)
  await redis.tried
  const outcome = await redis.run(
    BOOK_SCRIPT,
    ['test:quota:sub_a', 'reader'],
    bookingArgs({ opening: 0, month: { number: 0, spent: 0, booked: 0, usedKnown: 0 }, buckets: [] }),
  )
  assert.equal(outcome.ok && parseBooked(outcome.reply, 0)?.used, admitted)
})

test('after the server is killed and restarted: processes continue with a share each, report it, and recover', async () => {
  await using server = await startRedis()
  const logged: string[] = []
  const log = {
    ...silentLogger,
    info: (_: object | string, m = '') => logged.push(m),
    warn: (_: object | string, m = '') => logged.push(m),
  }
  const states: boolean[] = []
  const terms = compileTerms(BUILT_IN_PLANS.build)
  await using stack = new AsyncDisposableStack()
  const ledgers: SharedLedger[] = []
  for (const processId of ['a', 'b']) {
    const redis = stack.use(link(server.url))
    const registry = createMetricsRegistry()
    const deps = {
      redis,
      calendar: new Calendar(systemClock),
      clock: systemClock,
      log,
      metrics: accessMetrics(registry),
    }
    const options = { keyPrefix: 'test', processId, processesAssumed: 1 }
    ledgers.push(stack.use(await startSharedLedger(options, { ...deps, onState: (isUp) => states.push(isUp) })))
  }
  const charge = (at: number) => {
    const nowMs = systemClock.monotonicMs()
    return ledgers[at]?.open('sub_a', terms, nowMs).charge(terms, terms.callOf('getSlot'), nowMs).ok === true
  }
  const drain = (at: number) => {
    let count = 0
    while (count < 100_000 && charge(at)) count += 1
    return count
  }
  await until('both to know of each other', () => ledgers.every((ledger) => ledger.state().processes === 2))
  assert.ok(charge(0) && charge(1))
  logged.length = states.length = 0

  await server.kill()
  await until('both to notice', () => ledgers.every((ledger) => !ledger.state().isUp))
  // Each has at most half of the bucket, and both together at most the full bucket.
  const beforeMs = performance.now()
  const given = drain(0) + drain(1)
  const refilled = ((performance.now() - beforeMs) / 1000) * 200
  assert.ok(given > 1900 && given <= 2002 + refilled, `${given}`)
  await until('units to come at half the rate', () => charge(0) && charge(1))

  await server.start()
  await until('both to recover', () => ledgers.every((ledger) => ledger.state().isUp))
  assert.deepEqual(states, [false, false, true, true])
  assert.deepEqual(
    logged.map((message) => message.split(':')[0]),
    ['shared quota is unreachable', 'shared quota is unreachable', 'quota is shared again', 'quota is shared again'],
  )
  // The spent units of both are booked: the shared bucket is not full although the server restarted empty.
  await until('the books to be settled', () => {
    const views = ledgers.map((ledger) =>
      ledger.open('sub_a', terms, systemClock.monotonicMs()).view(terms, systemClock.monotonicMs()),
    )
    return views.every(({ remaining }) => remaining !== null && remaining < 1500)
  })
})
