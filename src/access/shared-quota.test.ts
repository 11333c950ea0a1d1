import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createRandom, isFull, seedOf } from '../../test/support/property.ts'
import type { Limits } from '../contract/limits.ts'
import { createManualClock, type ManualClock } from '../core/clock.ts'
import { silentLogger } from '../host/logger.ts'
import { createMetricsRegistry } from '../host/metrics-registry.ts'
import type { RedisLink, RedisOutcome } from '../host/redis.ts'
import { Calendar, monthOf } from './calendar.ts'
import type { Charge } from './charge.ts'
import { accessMetrics } from './metrics.ts'
import { BUILT_IN_PLANS } from './plan.ts'
import { BOOK_SCRIPT } from './quota-script.ts'
import { startSharedLedger } from './shared-quota.ts'
import { createTermsTable } from './terms.ts'

const START = Date.parse('2026-11-15T12:00:00Z')
const own = (changes: Partial<Limits>): Limits => ({ ...BUILT_IN_PLANS.starter, ...changes })

/** The two scripts in memory, on the test's clock, behind a link whose answers take their time or never come. */
function createFakeServer(clock: ManualClock, latencyMs: () => number) {
  const books = new Map<string, { at: number; month: number; used: number; levels: Map<string, number> }>()
  const state = { isUp: true, processes: 1, runs: 0 }

  function book(key: string, args: readonly string[]): (number | string)[] {
    const now = clock.nowMs()
    const month = monthOf(now)
    const held = books.get(key) ?? { at: now, month, used: Number(args[1]), levels: new Map<string, number>() }
    if (month > held.month) held.used = 0
    held.month = Math.max(held.month, month)
    held.used = Math.max(0, held.used + Number(args[0]))
    const answer: (number | string)[] = [held.month, held.used]
    for (let at = 2; at < args.length; at += 4) {
      const [field = '', rate, capacity, units] = [
        args[at],
        Number(args[at + 1]),
        Number(args[at + 2]),
        Number(args[at + 3]),
      ]
      const level = Math.min(capacity, (held.levels.get(field) ?? capacity) + ((now - held.at) * rate) / 1000)
      held.levels.set(field, Math.min(capacity, level - units))
      answer.push((level - units).toFixed(6))
    }
    held.at = now
    books.set(key, held)
    return answer
  }

  const later = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(ms, resolve))
  const down: RedisOutcome = { ok: false, reason: 'down', says: 'gone' }
  const link: Pick<RedisLink, 'run' | 'tried'> = {
    tried: Promise.resolve(),
    async run(script, [key = ''], args) {
      state.runs += 1
      if (!state.isUp) return down
      await later(latencyMs())
      if (!state.isUp) return down
      const reply = script === BOOK_SCRIPT ? book(key, args) : state.processes
      await later(latencyMs())
      return state.isUp ? { ok: true, reply } : down
    },
  }
  return { link, state, books }
}

async function open(
  limits: Limits,
  options: { processes?: number; latencyMs?: () => number; startMs?: number; spent?: number } = {},
) {
  const { processes = 2, latencyMs = () => 1 } = options
  const clock = createManualClock(options.startMs ?? START)
  const server = createFakeServer(clock, latencyMs)
  server.state.processes = processes
  const table = createTermsTable()
  const logged: string[] = []
  const states: boolean[] = []
  const log = {
    ...silentLogger,
    info: (_: object | string, m = '') => logged.push(m),
    warn: (_: object | string, m = '') => logged.push(m),
  }
  const state = { limits }
  const members = []
  for (let at = 0; at < processes; at++) {
    const starting = startSharedLedger(
      { keyPrefix: 'test', processId: `p${at}`, processesAssumed: 3 },
      {
        redis: server.link,
        calendar: new Calendar(clock),
        clock,
        log,
        metrics: accessMetrics(createMetricsRegistry()),
        spentBefore: new Map([['sub_a', options.spent ?? 0]]),
        onState: (isUp) => states.push(isUp),
      },
    )
    let isStarted = false
    void starting.then(() => (isStarted = true))
    for (let wait = 0; wait < 100 && !isStarted; wait++) await clock.advanceAsync(10)
    const ledger = await starting
    const terms = () => table.of(state.limits)
    const books = () => ledger.open('sub_a', terms(), clock.monotonicMs())
    members.push({
      ledger,
      charge: (method: string): Charge => books().charge(terms(), terms().callOf(method), clock.monotonicMs()),
      refund: (method: string): void => books().refund(terms(), terms().callOf(method), clock.monotonicMs()),
      view: () => books().view(terms(), clock.monotonicMs()),
      spend(method: string, max = 10_000): number {
        for (let count = 0; count < max; count++) if (!this.charge(method).ok) return count
        return max
      },
    })
  }
  const [a, b] = members
  assert.ok(a !== undefined && b !== undefined)
  return { clock, server, members, a, b, logged, states, state, terms: table.of(limits) }
}

describe('shared ledger', () => {
  test('a batch passes at once, and what one process spent the other soon knows', async () => {
    const { clock, a, b } = await open(own({}))
    assert.equal(a.spend('getSlot', 100), 100)
    await clock.advanceAsync(300)
    b.charge('getSlot')
    await clock.advanceAsync(10)
    const { remaining } = b.view()
    assert.ok(remaining !== null && remaining >= 49 && remaining <= 54, `${remaining}`)
    assert.ok(b.spend('getSlot') <= 55)
  })

  test('what is spent while a booking is on its way stays spent', async () => {
    const { clock, a, server } = await open(own({}), { latencyMs: () => 100 })
    assert.equal(a.spend('getSlot', 10), 10)
    await clock.advanceAsync(150)
    assert.equal(a.spend('getSlot', 70), 70)
    await clock.advanceAsync(60)
    assert.ok(server.state.runs > 0)
    const { remaining } = a.view()
    assert.ok(remaining !== null && remaining >= 70 && remaining <= 74, `${remaining}`)
  })

  test('spending ahead is paid back: the long run is the rate', async () => {
    const { clock, a, b } = await open(own({}))
    let admitted = 0
    for (let ms = 0; ms < 60_000; ms += 20) {
      admitted += a.spend('getSlot', 5) + b.spend('getSlot', 5)
      await clock.advanceAsync(20)
    }
    const budget = 150 + 15 * 60
    assert.ok(admitted <= budget + 2 * 100, `${admitted} of ${budget}`)
    assert.ok(admitted >= budget * 0.97, `${admitted} of ${budget}`)
  })

  test('a call above the lease waits for its booking only', async () => {
    const { clock, a } = await open(own({ unitsPerSecond: 100, sendsPerSecond: 10 }))
    assert.equal(a.spend('getSlot'), 100)
    const refused = a.charge('getSlot')
    assert.ok(!refused.ok)
    assert.equal(refused.retryAfterMs, 50)
    assert.equal(refused.limitName, 'unitsPerSecond')
    await clock.advanceAsync(5)
    assert.equal(a.charge('getSlot').ok, true)
  })

  test('no mix of processes, delays and costs goes above the budget and the stated slack', async (t) => {
    const random = createRandom(seedOf(t))
    for (let run = 0; run < (isFull ? 400 : 12); run++) {
      const processes = 2 + random(4)
      const slowest = [1, 5, 40, 400][random(4)] ?? 1
      const limits = own({ unitsPerSecond: [1, 15, 200][random(3)] ?? 15, sendsPerSecond: 1, unitsPerMonth: 3000 })
      const { clock, members, terms, server } = await open(limits, { processes, latencyMs: () => random(slowest) })
      const units = terms.buckets[terms.unitsBucket]
      assert.ok(units !== undefined)
      // One bucket as large as budget and slack together must never run dry: that is the formula, for every window at once.
      let room = units.capacity + processes * units.chunk
      let [admitted, month] = [0, 0]
      for (let step = 0; step < 400; step++) {
        const member = members[random(processes)]
        const method =
          ['getSlot', 'getAccountInfo', 'getTransaction', 'getProgramAccounts', 'sendTransaction'][random(5)] ??
          'getSlot'
        for (let burst = random(40); burst > 0; burst--) {
          const outcome = member?.charge(method)
          if (outcome?.ok !== true) break
          room -= outcome.cost
          month += outcome.cost
          admitted += 1
          if (random(20) === 0) {
            member?.refund(method)
            room += outcome.cost
            month -= outcome.cost
          }
        }
        assert.ok(room >= -1e-3, `run ${run}: ${-room} units above budget and slack`)
        assert.ok(month <= 3000 + processes * terms.monthChunk, `run ${run}: month`)
        const pass = random(random(10) === 0 ? 3000 : 60)
        await clock.advanceAsync(pass)
        room = Math.min(units.capacity + processes * units.chunk, room + (pass * units.perSecond) / 1000)
        if (random(50) === 0) for (const { ledger } of members) ledger.sweep(clock.monotonicMs())
      }
      await clock.advanceAsync(5000)
      assert.ok(admitted > 0)
      assert.equal(server.books.get('test:quota:sub_a')?.used, month, 'all that was spent is booked')
    }
  })

  test('units of the month are one budget, and start from what the store has', async () => {
    const { clock, a, b, server, terms } = await open(own({ unitsPerSecond: null, unitsPerMonth: 5000 }), {
      spent: 4000,
    })
    let admitted = 0
    for (let step = 0; step < 100; step++) {
      admitted += a.spend('getSlot', 20) + b.spend('getSlot', 20)
      await clock.advanceAsync(50)
    }
    assert.ok(admitted >= 1000 && admitted <= 1000 + 2 * terms.monthChunk, `${admitted}`)
    assert.equal(server.books.get('test:quota:sub_a')?.used, 4000 + admitted)
    const refused = a.charge('getSlot')
    assert.ok(!refused.ok)
    assert.equal(refused.limitName, 'unitsPerMonth')
    assert.ok(refused.retryAfterMs > 15 * 86_400_000)
  })

  test('a new month begins at nothing for all', async () => {
    const { clock, a, b } = await open(own({ unitsPerSecond: null, unitsPerMonth: 100 }), {
      startMs: Date.parse('2026-11-30T23:59:50Z'),
    })
    assert.equal(a.spend('getSlot'), 100)
    await clock.advanceAsync(300)
    assert.equal(b.spend('getSlot') <= 100, true)
    await clock.advanceAsync(10_000)
    assert.equal(a.charge('getSlot').ok, true)
    assert.equal(b.charge('getSlot').ok, true)
    assert.equal(b.view().month.used <= 2, true)
  })
})

describe('without its server the shared ledger', () => {
  test('goes on with a share each, says so once, and comes back by itself', async () => {
    const { clock, a, b, server, logged, states } = await open(own({}))
    assert.deepEqual(states.splice(0), [true, true])
    logged.length = 0
    a.spend('getSlot', 60)
    await clock.advanceAsync(5000)
    server.state.isUp = false
    a.charge('getSlot')
    await clock.advanceAsync(1100)
    assert.equal(a.ledger.state().isUp, false)
    assert.deepEqual(states.splice(0), [false, false])

    for (const member of [a, b]) member.spend('getSlot')
    let admitted = 0
    for (let second = 0; second < 60; second++) {
      await clock.advanceAsync(1000)
      admitted += a.spend('getSlot') + b.spend('getSlot')
    }
    assert.ok(admitted >= 60 * 15 - 2 && admitted <= 60 * 15, `${admitted}`)

    server.state.isUp = true
    await clock.advanceAsync(2000)
    assert.equal(a.ledger.state().isUp, true)
    assert.deepEqual(states.splice(0), [true, true])
    assert.deepEqual(logged, [
      'shared quota is away: this process goes on with its share',
      'shared quota is away: this process goes on with its share',
      'quota is shared again',
      'quota is shared again',
    ])
    // Both had spent their share to the last unit. One may still believe in the other's; what it takes is paid back.
    const left = a.spend('getSlot')
    assert.ok(left <= 32 + 100, `${left} after the outage`)
    await clock.advanceAsync(300)
    b.charge('getSlot')
    await clock.advanceAsync(300)
    assert.equal(a.spend('getSlot') + b.spend('getSlot'), 0)
  })

  test('a long quiet outage costs nothing afterwards', async () => {
    const { clock, a, b, server } = await open(own({}))
    server.state.isUp = false
    await clock.advanceAsync(2000)
    assert.equal(a.spend('getSlot'), 75)
    await clock.advanceAsync(60_000)
    server.state.isUp = true
    await clock.advanceAsync(2000)
    await clock.advanceAsync(300)
    assert.equal(b.view().remaining, 150)
  })

  test('begins with the assumed share where it was never reached', async () => {
    const clock = createManualClock(START)
    const server = createFakeServer(clock, () => 1)
    server.state.isUp = false
    const table = createTermsTable()
    const ledger = await startSharedLedger(
      { keyPrefix: 'test', processId: 'p', processesAssumed: 3 },
      {
        redis: server.link,
        calendar: new Calendar(clock),
        clock,
        log: silentLogger,
        metrics: accessMetrics(createMetricsRegistry()),
      },
    )
    assert.deepEqual(ledger.state(), { isUp: false, processes: 3 })
    const terms = table.of(own({}))
    const account = ledger.open('sub_a', terms, clock.monotonicMs())
    let admitted = 0
    while (account.charge(terms, terms.callOf('getSlot'), clock.monotonicMs()).ok) admitted += 1
    assert.equal(admitted, 50)
    // The dearest call stays possible however small the share.
    clock.advance(60_000)
    assert.equal(account.charge(terms, terms.callOf('getProgramAccounts'), clock.monotonicMs()).ok, true)
  })

  test('alone it keeps the whole budget', async () => {
    const { clock, a, server } = await open(own({}))
    server.state.processes = 1
    await clock.advanceAsync(2000)
    server.state.isUp = false
    await clock.advanceAsync(2000)
    assert.equal(a.spend('getSlot'), 150)
  })

  test('closing books the rest', async () => {
    const { clock, a, server } = await open(own({}))
    a.charge('getSlot')
    await clock.advanceAsync(10)
    a.charge('getSlot')
    const closing = a.ledger[Symbol.asyncDispose]()
    await clock.advanceAsync(100)
    await closing
    assert.equal(server.books.get('test:quota:sub_a')?.used, 2)
  })
})
