import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { startAccessThreads } from '../../test/support/access/threads.ts'
import { startRedis } from '../../test/support/machine/redis.ts'
import { isFull } from '../../test/support/process/property.ts'
import { createSharedClock, threadClock } from '../../test/support/process/thread-clock.ts'
import { openAccessFolder } from '../../test/support/store/access-folder.ts'
import { createManualClock } from '../core/clock.ts'
import { lockCell } from '../core/spin-lock.ts'
import { until } from '../platform/process/test-wait.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import type { Call } from './admission.ts'
import { BUILT_IN_PLANS } from './plan.ts'
import { suspendSubscription } from './provisioning/subscriptions.ts'
import { rotateToken } from './provisioning/tokens.ts'
import { Calendar } from './quota/calendar.ts'
import { createLedger } from './quota/ledger.ts'
import { QuotaMemory } from './quota/memory.ts'
import { FIELD, HEADER } from './quota/memory-layout.ts'
import { openThreadAccess } from './thread-access.ts'

const RPC: Call = { interface: 'rpc', method: 'getSlot' }
const WAIT_MS = 60_000

describe('a thread with access of its own', () => {
  test('refuses rotated and suspended tokens from the next update on, and accepts new ones', async () => {
    await using folder = await openAccessFolder(threadClock)
    const { secret } = await folder.subscribe('first')
    await using running = await folder.start({}, 3)
    await using threads = await startAccessThreads(running.access, { threads: 2, subscriptions: 1 })
    assert.deepEqual((await threads.admit(2, secret, RPC)).units, 1)
    const change = async (make: () => Promise<unknown>) => {
      const changed = Promise.withResolvers<void>()
      using _watching = running.access.onChange(changed.resolve)
      await make()
      await changed.promise
    }
    let next = ''
    await change(async () => {
      next = (await rotateToken(folder.on(), { subscription: 'first', graceMs: 0 })).secret
    })
    // Messages arrive in order: the update was posted before this call.
    assert.equal((await threads.admit(1, secret, RPC)).refusal, 'revoked')
    assert.equal((await threads.admit(2, secret, RPC)).refusal, 'revoked')
    assert.equal((await threads.admit(2, next, RPC)).units, 1)
    await change(() => suspendSubscription(folder.on(), { subscription: 'first' }))
    assert.equal((await threads.admit(1, next, RPC)).refusal, 'suspended')
  })

  test('uses reloaded plans from the next update on, and one that knows only the old ones does not bring them back', async () => {
    const time = createSharedClock()
    time.set(Date.parse('2026-11-15T12:00:00Z'))
    await using folder = await openAccessFolder(time.clock)
    const plan = (unitsPerSecond: number) => ({ ...BUILT_IN_PLANS.build, unitsPerSecond, sendsPerSecond: null })
    const { secret } = await folder.subscribe('first', 'own')
    await using running = await folder.start({ plans: { own: plan(100) } }, 3)
    const { access } = running
    await using threads = await startAccessThreads(access, { threads: 2, subscriptions: 1, clock: time.memory })
    assert.equal((await threads.admit(1, secret, RPC, 10)).units, 10)
    const old = access.update()
    access.setPlans({ own: plan(200) })
    // The first thread has the new limits, and an old update does not bring the old ones back.
    threads.post(1, { do: 'update', update: old })
    const fresh = await threads.admit(1, secret, RPC, 1)
    assert.deepEqual([fresh.limit, fresh.units], [200, 1])
    const stale = openThreadAccess(
      { ...access.startDataOf(2), ...old },
      { ...deps(time.clock), lifecycle: { degraded() {}, recovered() {} }, requestBookings() {} },
    )
    const caller = stale.authenticate({ token: secret }, 'bundle', time.clock.nowMs())
    assert.ok(caller.ok && caller.limits.unitsPerSecond === 100)
    for (let count = 0; count < 20; count++) assert.equal(stale.admit(caller, RPC).ok, true)
    time.set(Date.parse('2026-11-15T12:00:05Z'))
    // 1000 units were the old capacity: 31 are spent, and five seconds of the new rate added.
    assert.equal((await threads.admit(2, secret, RPC, 1)).limit, 200)
    const own = running.enter(secret)
    assert.ok(own.ok)
    assert.equal(access.quota(own).remaining, 1000 - 10 - 21 + 5 * 200 - 1)
    access.setPlans(BUILT_IN_PLANS)
    await threads.admit(1, secret, RPC, 1)
    assert.match(threads.degraded.join(), /1 plans: .*own/)
  })

  test('begins a month and an hour at the same moment as all others, and calls count for their hour', async () => {
    const time = createSharedClock()
    const midnight = Date.parse('2026-12-01T00:00:00Z')
    time.set(midnight - 5000)
    await using folder = await openAccessFolder(time.clock)
    const { secret, id } = await folder.subscribe('first', 'own')
    const own = { ...BUILT_IN_PLANS.build, unitsPerMonth: 100_000 }
    await using running = await folder.start({ plans: { own } }, 5)
    await using threads = await startAccessThreads(running.access, { threads: 4, subscriptions: 1, clock: time.memory })
    const usedBy = async () => {
      const used = []
      for (const thread of [3, 1, 4, 2]) used.push((await threads.admit(thread, secret, RPC)).used)
      return used
    }
    assert.deepEqual(await usedBy(), [1, 2, 3, 4])
    time.set(midnight - 1)
    assert.deepEqual(await usedBy(), [5, 6, 7, 8])
    time.set(midnight)
    assert.deepEqual(await usedBy(), [1, 2, 3, 4])
    const caller = running.enter(secret)
    assert.ok(caller.ok)
    assert.equal(running.access.quota(caller).month.used, 4)
    await running.access.usage.flush()
    const rows = await running.store.usage({ subscriptionId: id })
    assert.deepEqual(
      rows.map(({ hour, calls }) => [hour, calls]).toSorted(([a = 0], [b = 0]) => a - b),
      [
        [midnight - 3_600_000, 8],
        [midnight, 4],
      ],
    )
  })

  test('keeps charging an account that the main thread has closed as idle', async () => {
    const time = createSharedClock()
    time.set(Date.parse('2026-11-15T12:00:00Z'))
    await using folder = await openAccessFolder(time.clock)
    const { secret } = await folder.subscribe('first')
    await using running = await folder.start({}, 2)
    await using threads = await startAccessThreads(running.access, { threads: 1, subscriptions: 1, clock: time.memory })
    assert.equal((await threads.admit(1, secret, RPC, 5)).used, 5)
    time.set(Date.parse('2026-11-15T12:01:00Z'))
    const { quota } = running.access.startDataOf(1)
    const memory = new QuotaMemory(quota, 0)
    assert.equal(memory.openAccounts, 1)
    createLedger({ memory, calendar: new Calendar(time.clock) }).sweep(time.clock.monotonicMs())
    assert.equal(memory.openAccounts, 0)
    assert.equal((await threads.admit(1, secret, RPC, 5)).used, 10)
  })

  test('that died within a lock leaves none behind', async () => {
    await using folder = await openAccessFolder(threadClock)
    const { secret } = await folder.subscribe('first')
    await using running = await folder.start({}, 3)
    await using threads = await startAccessThreads(running.access, { threads: 1, subscriptions: 1 })
    await threads.admit(1, secret, RPC)
    const { quota } = running.access.startDataOf(2)
    const dead = new QuotaMemory(quota, 2)
    const cells = Array.from({ length: dead.cellsEnd - 1 }, (_, at) => at + 1).filter((cell) => dead.isAccount(cell))
    assert.ok(cells.length > 0)
    for (const cell of cells) dead.lock(cell)
    const table = new Int32Array(quota, 0, 1)
    lockCell(table, HEADER.lock, 3)
    await running.access.threadEnded(2)
    assert.equal(table[HEADER.lock], 0)
    assert.deepEqual(
      cells.filter((cell) => dead.int(cell, FIELD.lock) !== 0),
      [],
    )
    assert.equal((await threads.admit(1, secret, RPC)).units, 1)
  })

  test('accepts tickets that another thread has made', async () => {
    await using folder = await openAccessFolder(threadClock)
    const { secret, id } = await folder.subscribe('first')
    await using running = await folder.start({}, 3)
    const [one, other] = [1, 2].map((thread) =>
      openThreadAccess(structuredClone(running.access.startDataOf(thread)), {
        ...deps(threadClock),
        lifecycle: { degraded() {}, recovered() {} },
        requestBookings() {},
      }),
    )
    assert.ok(one !== undefined && other !== undefined)
    using _closing = one
    using _closingToo = other
    const nowMs = threadClock.nowMs()
    const caller = one.authenticate({ token: secret }, 'bundle', nowMs)
    assert.ok(caller.ok)
    const { ticket } = one.issueTicket(caller, nowMs)
    for (const access of [other, running.access]) {
      const found = access.authenticateTicket(ticket, 'bundle', nowMs)
      assert.equal(found.ok && found.subscription.id, id)
    }
    assert.throws(() => running.access.startDataOf(3), /fewer threads/)
  })

  test('has its bookings sent by the main thread, at once and in few messages', async (t) => {
    await using folder = await openAccessFolder(threadClock)
    await using server = await startRedis()
    const { secret } = await folder.subscribe('first', 'own')
    const own = { ...BUILT_IN_PLANS.build, unitsPerSecond: 100_000, sendsPerSecond: null }
    await using running = await folder.start({ plans: { own }, quota: { shared: { url: server.url } } }, 2)
    await using threads = await startAccessThreads(running.access, { threads: 1, subscriptions: 1 })
    const booked = () => running.registry.value('sluice_access_quota_syncs_total', { result: 'booked' }) ?? 0
    const before = booked()
    const fromMs = performance.now()
    await threads.admit(1, secret, RPC, 1)
    await until('the booking', () => booked() > before, WAIT_MS)
    const wokenMs = (threads.wakes[0] ?? Number.POSITIVE_INFINITY) - fromMs
    // Without a wake the first booking would wait for the next round of 250 ms; the bound is loose for a busy machine.
    assert.ok(wokenMs < 100, `${wokenMs} ms`)
    const rounds = 50
    const first = performance.now()
    for (let round = 0; round < rounds; round++) await threads.admit(1, secret, RPC, 1000)
    const tookMs = performance.now() - first
    const wakes = threads.wakes.length
    t.diagnostic(`woken after ${wokenMs.toFixed(2)} ms; ${wakes} wakes in ${tookMs.toFixed()} ms`)
    assert.ok(wakes <= 2 + tookMs / 2, `${wakes} in ${tookMs} ms`)
  })

  test('sends its first request for a booking at once and further ones every two milliseconds', async () => {
    await using folder = await openAccessFolder(threadClock)
    const { secret } = await folder.subscribe('first')
    await using running = await folder.start({}, 2)
    const clock = createManualClock(threadClock.nowMs())
    let wakes = 0
    using access = openThreadAccess(
      { ...running.access.startDataOf(1), isQuotaShared: true },
      { ...deps(clock), lifecycle: { degraded() {}, recovered() {} }, requestBookings: () => (wakes += 1) },
    )
    const caller = access.authenticate({ token: secret }, 'bundle', clock.nowMs())
    assert.ok(caller.ok)
    for (let count = 0; count < 10; count++) access.admit(caller, RPC)
    assert.equal(wakes, 1)
    clock.advance(1)
    assert.equal(wakes, 1)
    clock.advance(1)
    assert.equal(wakes, 2)
    clock.advance(10)
    assert.equal(wakes, 2, 'nothing was requested since')
  })

  test('reads the snapshot without a copy of it', async (t) => {
    const script = new URL('../../test/support/store/snapshot-threads.ts', import.meta.url)
    const args = ['--expose-gc', script.pathname, isFull ? '100000' : '40000']
    const { stdout } = await promisify(execFile)(process.execPath, args)
    t.diagnostic(stdout)
    type Figures = Record<'empty' | 'full', { heapMiB: number; residentMiB: number }>
    const { snapshotMiB, empty, full } = JSON.parse(stdout) as Figures & { snapshotMiB: number }
    assert.ok(snapshotMiB > 15, 'there is something to share')
    assert.ok(full.heapMiB - empty.heapMiB <= 1, stdout)
    // Resident memory varies by some MiB from thread to thread.
    assert.ok(full.residentMiB - empty.residentMiB <= 8, stdout)
  })
})

function deps(clock: typeof threadClock) {
  return { log: silentLogger, clock, registry: createMetricsRegistry() }
}
