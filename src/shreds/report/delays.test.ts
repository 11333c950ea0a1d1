import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { openSqlite } from '../../platform/db/sqlite.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { DELAY_BOUNDS_MICROS } from '../relay/protocol.ts'
import { delayQuantiles } from './delays.ts'
import { startDeliveryReports } from './delivery-reports.ts'
import { openReportStore, type ReportStore } from './store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const deps = { clock: systemClock, random: secureRandom }

/** So many packets up to each of these bounds. */
function countsOf(counts: Readonly<Record<number, number>>): number[] {
  return [...DELAY_BOUNDS_MICROS.map((bound) => counts[bound] ?? 0), 0]
}

test('delays are summed by hour over flushes and restarts, and give the quantiles of an hour, a day or all time', async () => {
  using folder = makeTestFolder()
  const file = folder.file('report.db')
  const clock = createManualClock(10 * DAY_MS)
  const record = async (counts: Readonly<Record<number, number>>) => {
    await using store = await openReportStore(file, { ...deps, create: true })
    await using delivery = startDeliveryReports({ reportDays: 30 }, { store, clock, log: silentLogger })
    delivery.record({ destinations: [], delays: { packets: countsOf(counts), sumMicros: 0 } })
  }
  await record({ 50: 98 })
  await record({ 5000: 2 })
  clock.advance(HOUR_MS)
  await record({ 100: 10 })
  await using store = await openReportStore(file, { ...deps, create: false })
  const rows = await store.delays({ fromMs: 0 })
  assert.deepEqual(
    rows.map(({ hour, packets }) => [hour, packets]),
    [
      [10 * DAY_MS, countsOf({ 50: 98, 5000: 2 })],
      [10 * DAY_MS + HOUR_MS, countsOf({ 100: 10 })],
    ],
  )
  const hours = delayQuantiles(rows, 'hour')
  assert.deepEqual(hours(10 * DAY_MS), { delayP50Ms: 0.038, delayP99Ms: 4 })
  assert.deepEqual(hours(10 * DAY_MS + HOUR_MS), { delayP50Ms: 0.088, delayP99Ms: 0.1 })
  assert.deepEqual(hours(0), { delayP50Ms: null, delayP99Ms: null })
  assert.deepEqual(delayQuantiles(rows, 'day')(10 * DAY_MS), delayQuantiles(rows, 'total')(0))
  await store.prune(10 * DAY_MS + HOUR_MS)
  assert.equal((await store.delays({ fromMs: 0 })).length, 1)
})

test('a file of an earlier version has no delays until a process writes to it', async () => {
  using folder = makeTestFolder()
  const file = folder.file('report.db')
  await (await openReportStore(file, { ...deps, create: true }))[Symbol.asyncDispose]()
  {
    await using database = await openSqlite({ file }, deps)
    await database.change((tx) => tx.run('DROP TABLE delays'))
  }
  {
    await using store = await openReportStore(file, { ...deps, create: false })
    assert.deepEqual(await store.delays({ fromMs: 0 }), [])
  }
  await using store = await openReportStore(file, { ...deps, create: true })
  await store.add([], [{ hour: HOUR_MS, packets: countsOf({ 50: 1 }) }])
  assert.equal((await store.delays({ fromMs: 0 })).length, 1)
})

test('delays that could not be written are written by the next flush', async () => {
  using folder = makeTestFolder()
  await using store = await openReportStore(folder.file('report.db'), { ...deps, create: true })
  let isFull = true
  const onSmallDisk: ReportStore = {
    ...store,
    add: async (...given) => {
      if (isFull) throw new Error('database or disk is full')
      await store.add(...given)
    },
  }
  const clock = createManualClock(10 * DAY_MS)
  await using delivery = startDeliveryReports({ reportDays: 30 }, { store: onSmallDisk, clock, log: silentLogger })
  delivery.record({ destinations: [], delays: { packets: countsOf({ 50: 3 }), sumMicros: 0 } })
  await delivery.flush()
  delivery.record({ destinations: [], delays: { packets: countsOf({ 50: 4 }), sumMicros: 0 } })
  isFull = false
  await delivery.flush()
  assert.deepEqual(await store.delays({ fromMs: 0 }), [{ hour: 10 * DAY_MS, packets: countsOf({ 50: 7 }) }])
})
