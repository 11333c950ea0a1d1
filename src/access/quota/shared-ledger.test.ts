import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runSeeds } from '../../../test/sim/run-seeds.ts'
import { sharedLedgerWorld } from '../../../test/sim/shared-ledger-world.ts'
import { sharedQuotaFloorWorld } from '../../../test/sim/shared-quota-floor-world.ts'
import { createFakeServer, openSharedLedgers, own, START } from '../../../test/support/access/shared-ledgers.ts'
import { repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createManualClock } from '../../core/clock.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { accessMetrics } from '../metrics.ts'
import { createTermsTable } from '../terms.ts'
import { Calendar } from './calendar.ts'
import { startSharedLedger } from './shared-ledger.ts'

describe('shared ledger', () => {
  test('a batch passes at once, and the other process soon knows the units spent', async () => {
    const { clock, a, b } = await openSharedLedgers(own({}))
    assert.equal(a.spend('getSlot', 100), 100)
    await clock.advanceAsync(300)
    b.charge('getSlot')
    await clock.advanceAsync(10)
    const { remaining } = b.view()
    assert.ok(remaining !== null && remaining >= 49 && remaining <= 54, `${remaining}`)
    assert.ok(b.spend('getSlot') <= 55)
  })

  test('units spent while a booking is in flight stay spent', async () => {
    const { clock, a, server } = await openSharedLedgers(own({}), { latencyMs: () => 100 })
    assert.equal(a.spend('getSlot', 10), 10)
    await clock.advanceAsync(150)
    assert.equal(a.spend('getSlot', 70), 70)
    await clock.advanceAsync(60)
    assert.ok(server.state.runs > 0)
    const { remaining } = a.view()
    assert.ok(remaining !== null && remaining >= 70 && remaining <= 74, `${remaining}`)
  })

  test('units spent ahead are paid back: the long-run average is the rate', async () => {
    const { clock, a, b } = await openSharedLedgers(own({}))
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
    const { clock, a } = await openSharedLedgers(own({ unitsPerSecond: 100, sendsPerSecond: 10 }))
    assert.equal(a.spend('getSlot'), 100)
    const refused = a.charge('getSlot')
    assert.ok(!refused.ok)
    assert.equal(refused.retryAfterMs, 50)
    assert.equal(refused.limitName, 'unitsPerSecond')
    await clock.advanceAsync(5)
    assert.equal(a.charge('getSlot').ok, true)
  })

  test('no mix of processes, delays, costs and outages exceeds the budget and the documented slack', async (t) => {
    const outcome = await runSeeds(sharedLedgerWorld, {
      firstSeed: seedOf(t),
      seeds: repeatsOf({ short: 12, full: 400 }),
    })
    t.diagnostic(JSON.stringify(outcome.seen))
  })

  test('a customer below the rate of each bucket is never refused, whatever other processes book', async (t) => {
    const outcome = await runSeeds(sharedQuotaFloorWorld, {
      firstSeed: seedOf(t),
      seeds: repeatsOf({ short: 5, full: 200 }),
    })
    t.diagnostic(JSON.stringify(outcome.seen))
    assert.deepEqual(outcome.never, [])
  })

  test('a bucket refills for all the time in which the bookings did not contain it', async () => {
    const { clock, a } = await openSharedLedgers(own({ unitsPerSecond: 1000, sendsPerSecond: 30 }))
    const burst = async () => {
      let admitted = 0
      for (let count = 0; count < 290; count++) {
        if (a.charge('sendTransaction').ok) admitted += 1
        await clock.advanceAsync(5)
      }
      return admitted
    }
    assert.equal(await burst(), 290)
    await clock.advanceAsync(60_000)
    // The account is closed with its buckets; the first booking of the next opening has the bucket of units only.
    a.ledger.sweep(clock.monotonicMs())
    assert.equal(a.charge('getSlot').ok, true)
    await clock.advanceAsync(1000)
    assert.equal(await burst(), 290)
  })

  test('reads on one machine take nothing from the sends on another', async () => {
    const { clock, a, b } = await openSharedLedgers(own({ unitsPerSecond: 1000, sendsPerSecond: 30 }))
    let admitted = 0
    for (let ms = 0; ms < 200_000; ms += 10) {
      if (ms % 10_000 < 1000 && a.charge('sendTransaction').ok) admitted += 1
      if (ms % 50 === 0) b.charge('getSlot')
      await clock.advanceAsync(10)
    }
    assert.equal(admitted, 2000)
  })

  test('an account that is closed and opened again has one record on the server for each process', async () => {
    const { clock, a, b, server } = await openSharedLedgers(own({}))
    for (let opening = 0; opening < 50; opening++) {
      for (const { charge, ledger } of [a, b]) {
        assert.equal(charge('getSlot').ok, true)
        await clock.advanceAsync(2000)
        ledger.sweep(clock.monotonicMs())
        assert.equal(ledger.accounts(), 0)
      }
    }
    assert.equal(server.books.get('test:quota:sub_a')?.used, 100)
    assert.equal(server.booked.size, 2)
  })

  test('an unlimited plan is never refused, whatever is spent between two bookings', async () => {
    const { clock, a, server } = await openSharedLedgers(own({ unitsPerSecond: null, unitsPerMonth: null }))
    assert.equal(a.spend('getProgramAccounts', 1000), 1000)
    await clock.advanceAsync(300)
    assert.equal(server.books.get('test:quota:sub_a')?.used, 30_000)
  })

  test('a month without a rate admits a batch of the most expensive calls, and a thousandth of the month, at once', async () => {
    const batch = 100
    const small = await openSharedLedgers(own({ unitsPerSecond: null, unitsPerMonth: 10_000 }))
    assert.equal(small.a.spend('getProgramAccounts', batch), batch)
    const large = await openSharedLedgers(own({ unitsPerSecond: null, unitsPerMonth: 100_000_000 }))
    assert.equal(large.a.spend('getSlot', 100_000), 100_000)
    const refused = large.a.charge('getSlot')
    assert.ok(!refused.ok && refused.limitName === 'unitsPerMonth' && refused.retryAfterMs === 50)
  })

  test('units of the month are one budget, and start from the value in the store', async () => {
    const { clock, a, b, server, terms } = await openSharedLedgers(own({ unitsPerSecond: null, unitsPerMonth: 5000 }), {
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

  test('a new month starts at zero for all processes', async () => {
    const { clock, a, b } = await openSharedLedgers(own({ unitsPerSecond: null, unitsPerMonth: 100 }), {
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
  test('continues with a share per process, logs that once, and reconnects by itself', async () => {
    const { clock, a, b, server, logged, states } = await openSharedLedgers(own({}))
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
      'shared quota is unreachable: this process uses its local share',
      'shared quota is unreachable: this process uses its local share',
      'quota is shared again',
      'quota is shared again',
    ])
    // Both have spent their share completely. One may still count on the share of the other; what it spends of that is paid back.
    const left = a.spend('getSlot')
    assert.ok(left <= 32 + 100, `${left} after the outage`)
    await clock.advanceAsync(300)
    b.charge('getSlot')
    await clock.advanceAsync(300)
    assert.equal(a.spend('getSlot') + b.spend('getSlot'), 0)
  })

  test('a long outage without calls costs nothing afterwards', async () => {
    const { clock, a, b, server } = await openSharedLedgers(own({}))
    server.state.isUp = false
    await clock.advanceAsync(2000)
    assert.equal(a.spend('getSlot'), 75)
    await clock.advanceAsync(60_000)
    server.state.isUp = true
    await clock.advanceAsync(2000)
    await clock.advanceAsync(300)
    b.view()
    await clock.advanceAsync(10)
    assert.equal(b.view().remaining, 150, 'after its booking')
  })

  test('starts with the assumed share when the server was never reached', async () => {
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
    // The most expensive call stays possible, however small the share is.
    clock.advance(60_000)
    assert.equal(account.charge(terms, terms.callOf('getProgramAccounts'), clock.monotonicMs()).ok, true)
  })

  test('a single process keeps the complete budget', async () => {
    const { clock, a, server } = await openSharedLedgers(own({}))
    server.state.processes = 1
    await clock.advanceAsync(2000)
    server.state.isUp = false
    await clock.advanceAsync(2000)
    assert.equal(a.spend('getSlot'), 150)
  })

  test('closing also books units spent while the previous booking was in flight', async () => {
    const { clock, a, server } = await openSharedLedgers(own({}), { latencyMs: () => 100 })
    assert.equal(a.spend('getSlot', 10), 10)
    // The next booking is sent and gets no reply.
    await clock.advanceAsync(260)
    assert.equal(a.spend('getSlot', 70), 70)
    const closing = a.ledger[Symbol.asyncDispose]()
    await clock.advanceAsync(1000)
    await closing
    assert.equal(server.books.get('test:quota:sub_a')?.used, 80)
  })

  test('closing books the remaining units', async () => {
    const { clock, a, server } = await openSharedLedgers(own({}))
    a.charge('getSlot')
    await clock.advanceAsync(10)
    a.charge('getSlot')
    const closing = a.ledger[Symbol.asyncDispose]()
    await clock.advanceAsync(100)
    await closing
    assert.equal(server.books.get('test:quota:sub_a')?.used, 2)
  })
})
