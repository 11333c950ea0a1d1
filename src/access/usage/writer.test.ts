import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Clock, createManualClock, type Timer } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import { createSeededRandom, randomInt } from '../../core/random.ts'
import { seedFor } from '../../core/test-seed.ts'
import { CommitInDoubt } from '../../platform/db/sql.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { Calendar } from '../quota/calendar.ts'
import type { UsageRow } from '../store/model.ts'
import type { UsageMark } from '../store/store.ts'
import { startUsage } from './service.ts'
import type { SpooledUsage, UsageSpool } from './spool.ts'
import { UsageWriter } from './writer.ts'

type Fate = 'works' | 'refuses' | 'commits-in-silence' | 'loses-the-commit'

/** A store that follows the contract of marks, with faults. */
function createStore() {
  const marks = new Map<string, number>()
  const units = new Map<string, number>()
  const store = {
    fate: (): Fate => 'works',
    async addUsage(rows: readonly UsageRow[], _used: ReadonlyMap<string, number>, mark?: UsageMark) {
      assert.ok(mark !== undefined)
      const fate = store.fate()
      if (fate === 'refuses') throw new ServiceError('store-unavailable', 'away')
      if (fate === 'loses-the-commit') throw new CommitInDoubt('store', new Error('cut'))
      if (mark.seq > (marks.get(mark.spool) ?? 0)) {
        marks.set(mark.spool, mark.seq)
        for (const row of rows) units.set(row.subscriptionId, (units.get(row.subscriptionId) ?? 0) + row.units)
      }
      if (fate === 'commits-in-silence') throw new CommitInDoubt('store', new Error('cut'))
    },
    total: () => [...units.values()].reduce((sum, each) => sum + each, 0),
  }
  return store
}

/** The disk: what was saved last, by value. */
function createDisk() {
  const disk = {
    isFull: () => false,
    /** Called during each save, which may take time. */
    onSave: async () => {},
    saved: undefined as string | undefined,
    open(): UsageSpool {
      return {
        name: 'spool',
        found: disk.saved === undefined ? undefined : (JSON.parse(disk.saved) as SpooledUsage),
        async save(usage) {
          if (disk.isFull()) throw new ServiceError('disk-full', 'no space is left on the disk of spool')
          disk.saved = JSON.stringify(usage)
          await disk.onSave()
        },
        async clear() {
          disk.saved = undefined
        },
        async [Symbol.asyncDispose]() {},
      }
    },
  }
  return disk
}

describe('usage while the store fails', () => {
  test('is written exactly once over outages, lost responses, full disks, stops and kills', async () => {
    const { seed, numRuns } = seedFor('usage booking', 40)
    for (let run = 0; run < numRuns; run++) {
      const random = createSeededRandom(seed + run)
      const clock = createManualClock(Date.parse('2026-11-15T12:59:30Z'))
      const store = createStore()
      const disk = createDisk()
      let counted = 0
      let timers: Timer[] = []
      const ofProcess: Clock = {
        ...clock,
        setRepeating(periodMs, callback) {
          const timer = clock.setRepeating(periodMs, callback)
          timers.push(timer)
          return timer
        },
      }
      const start = () => {
        const calendar = new Calendar(ofProcess)
        const slices = { isSpent: () => true, yield: async () => {} }
        return startUsage({ store, calendar, clock: ofProcess, log: silentLogger, random, slices, spool: disk.open() })
      }
      let usage = start()
      for (let step = 0; step < 30; step++) {
        const outage = randomInt(random, 3)
        const fates: Fate[] = ['works', 'refuses', 'commits-in-silence', 'loses-the-commit']
        store.fate = () => (outage === 0 ? 'works' : (fates[randomInt(random, 4)] as Fate))
        const isFull = randomInt(random, 4) === 0
        disk.isFull = () => isFull
        const meters = randomInt(random, 3) === 0 ? 700 : 3
        for (let at = 0; at < meters; at++)
          usage.countAdmitted(usage.createMeter(`sub_${at}`, `tok_${at}`), 'rpc', 1 + at)
        counted += (meters * (meters + 1)) / 2
        for (let seconds = randomInt(random, 3); seconds >= 0; seconds--) await clock.advanceAsync(1000)
        const { spoolFailing } = usage.state()
        // A kill: only what is on the disk or in the store remains. With a full disk that would be a loss, as it is reported.
        if (spoolFailing === undefined && randomInt(random, 3) === 0) {
          for (const timer of timers) timer.cancel()
          timers = []
          usage = start()
        } else if (!isFull && randomInt(random, 4) === 0) {
          const closing = usage[Symbol.asyncDispose]()
          await clock.advanceAsync(60_000)
          await closing
          usage = start()
        }
      }
      store.fate = () => 'works'
      disk.isFull = () => false
      for (let seconds = 0; seconds < 3; seconds++) await clock.advanceAsync(1000)
      assert.equal(store.total(), counted, `seed ${seed + run}`)
      assert.equal(disk.saved, undefined)
      assert.equal(usage.state().waitingRows, 0)
    }
  })

  test('a batch whose commit is in doubt stays as it is while the store is away and a slow disk is left alone', async () => {
    const clock = createManualClock()
    const store = createStore()
    const disk = createDisk()
    // So slow that the next saves are not due for some seconds.
    disk.onSave = () => new Promise((resolve) => void clock.setTimer(250, resolve))
    await using usage = startUsage({
      store,
      calendar: new Calendar(clock),
      clock,
      log: silentLogger,
      spool: disk.open(),
    })
    const meter = usage.createMeter('sub_a', 'tok_a')
    const fates: Fate[] = ['refuses', 'works', 'works', 'commits-in-silence', 'refuses', 'works', 'works']
    for (const fate of fates) {
      store.fate = () => fate
      usage.countAdmitted(meter, 'rpc', 100)
      await clock.advanceAsync(1000)
    }
    await usage.flush()
    assert.equal(store.total(), 100 * fates.length)
  })

  test('a drain with neither store nor disk reports what would be lost and waits', async () => {
    const clock = createManualClock()
    const store = createStore()
    const disk = createDisk()
    const logged: string[] = []
    const log = { ...silentLogger, error: (_: object | string, message = '') => logged.push(message) }
    const usage = startUsage({ store, calendar: new Calendar(clock), clock, log, spool: disk.open() })
    store.fate = () => 'refuses'
    disk.isFull = () => true
    usage.countAdmitted(usage.createMeter('sub_a', 'tok_a'), 'rpc', 7)
    let isClosed = false
    const closing = usage[Symbol.asyncDispose]().then(() => (isClosed = true))
    await clock.advanceAsync(20_000)
    assert.equal(isClosed, false)
    assert.equal(logged.filter((message) => message.startsWith('usage would be lost')).length, 1)
    // What the end of the deadline reports.
    await usage.saveNow()
    assert.equal(logged.at(-1), 'usage is lost: it could not be written')
    disk.isFull = () => false
    await clock.advanceAsync(2000)
    await closing
    assert.match(disk.saved ?? '', /sub_a/)
  })

  test('usage that is counted while a write gets no response is saved, too', async () => {
    const clock = createManualClock()
    const disk = createDisk()
    const silent = { addUsage: () => new Promise<void>(() => {}) }
    const usage = startUsage({
      store: silent,
      calendar: new Calendar(clock),
      clock,
      log: silentLogger,
      spool: disk.open(),
    })
    const meter = usage.createMeter('sub_a', 'tok_a')
    usage.countAdmitted(meter, 'rpc', 1)
    await clock.advanceAsync(1000)
    usage.countAdmitted(meter, 'rpc', 2)
    await clock.advanceAsync(1000)
    const store = createStore()
    const next = startUsage({ store, calendar: new Calendar(clock), clock, log: silentLogger, spool: disk.open() })
    await next.flush()
    assert.equal(store.total(), 3)
  })
})

describe('usage of very many subscriptions', () => {
  const HOUR = Date.parse('2026-11-15T12:00:00Z')
  const row = (at: number): UsageRow => ({
    ...{ subscriptionId: `sub_${at}`, hour: HOUR, interface: 'rpc' },
    ...{ calls: 1, units: 1, refused: 0, bytes: 0 },
  })

  for (const isInDoubt of [false, true])
    test(`is written with turns of the event loop between its batches, once each, also when the store is lost in a turn${isInDoubt ? ' and its last response too' : ''}`, async () => {
      const store = createStore()
      let turns = 0
      const duringTurn = () => {
        turns += 1
        if (turns > 2) return
        // Counted while a flush is under way: a new subscription, and one whose row is in a batch already.
        writer.queue.add(row(1000 + turns))
        writer.queue.add(row(0))
        if (turns === 2) store.fate = () => (isInDoubt ? 'commits-in-silence' : 'refuses')
      }
      const writer = new UsageWriter({
        ...{ store, clock: createManualClock(HOUR), log: silentLogger },
        ...{ spool: undefined, spoolId: 'spool', waitingRowsMax: 10_000 },
        slices: { isSpent: () => true, yield: async () => duringTurn() },
      })
      for (let at = 0; at < 1000; at++) writer.queue.add(row(at))
      await writer.flush()
      assert.equal(turns, 2, 'none after the last batch')
      assert.equal(store.total(), isInDoubt ? 600 : 400)
      store.fate = () => 'works'
      await writer.flush()
      assert.equal(store.total(), 1000 + 2 * 2)
      assert.deepEqual([writer.state().waitingRows, writer.state().lostRows], [0, 0])
    })
})
