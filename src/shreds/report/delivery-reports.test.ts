import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { DELAY_BOUNDS_MICROS, type DestinationReport } from '../relay/protocol.ts'
import { PENDING_ROWS_MAX, startDeliveryReports, TOTALS_MAX } from './delivery-reports.ts'
import { openReportStore, type ReportStore } from './store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const deps = { clock: systemClock, random: secureRandom }
const PACKETS = 100

const destination = {
  lease: { subscriptionId: 'sub' },
  ...{ packets: PACKETS, bytes: 1, refusals: 0, slots: 1, firstSlot: 1, lastSlot: 1, duplicates: 0 },
  unsent: { rate: 0, 'total-rate': 0, buffer: 0, paused: 0, error: 0 },
} as unknown as DestinationReport

test('packets are counted once where the rows are written and old rows cannot be deleted', async () => {
  using folder = makeTestFolder()
  await using store = await openReportStore(folder.file('report.db'), { ...deps, create: true })
  let prunes = 0
  const onFullDisk: ReportStore = {
    ...store,
    prune: async (beforeMs) => {
      prunes += 1
      if (prunes <= 3) throw new Error('database or disk is full')
      return await store.prune(beforeMs)
    },
  }
  const warnings: unknown[] = []
  const log = { ...silentLogger, warn: (...given: unknown[]) => void warnings.push(given.at(-1)) }
  const clock = createManualClock(10 * DAY_MS)
  await using delivery = startDeliveryReports({ reportDays: 30 }, { store: onFullDisk, clock, log })
  const packets = [...DELAY_BOUNDS_MICROS, 0].map((_, at) => (at === 0 ? PACKETS : 0))
  const flushes = 5
  // Nothing is deleted in the first hour, in which the clock may be wrong.
  await delivery.flush()
  assert.equal(prunes, 0)
  clock.advance(HOUR_MS)
  for (let n = 0; n < flushes; n++) {
    delivery.record({ destinations: [destination], delays: { packets, sumMicros: 0 } })
    await delivery.flush()
  }
  const [row] = await store.list({})
  assert.equal(row?.packets, flushes * PACKETS)
  const [delays] = await store.delays({ fromMs: 0 })
  assert.equal(delays?.packets[0], flushes * PACKETS)
  assert.equal(prunes, 4, 'repeated until it succeeds, then once an hour')
  assert.deepEqual(warnings, ['old delivery reports cannot be deleted'])
})

test('a subscription has totals, however many there were before it', async () => {
  using folder = makeTestFolder()
  await using store = await openReportStore(folder.file('report.db'), { ...deps, create: true })
  // Nothing is written: the rows of all these subscriptions would take a while.
  const idle: ReportStore = { ...store, add: async () => {} }
  await using delivery = startDeliveryReports(
    { reportDays: 30 },
    { store: idle, clock: createManualClock(), log: silentLogger },
  )
  const send = (...ids: string[]): void => {
    const destinations = ids.map((subscriptionId) => ({
      ...destination,
      lease: { ...destination.lease, subscriptionId },
    }))
    delivery.record({ destinations, delays: { packets: [], sumMicros: 0 } })
  }
  const ended = Array.from({ length: TOTALS_MAX - 1 }, (_, at) => `ended-${at}`)
  send('old', ...ended)
  send('old')
  send('new')
  send('new')
  assert.equal(delivery.totals('new').packets, 2 * PACKETS)
  assert.equal(delivery.totals('old').packets, 2 * PACKETS)
  assert.equal(delivery.totals('ended-0').packets, 0)
})

test('a wall clock that is wrong for a while deletes nothing, and what is sent meanwhile is of the right hour', async () => {
  using folder = makeTestFolder()
  await using store = await openReportStore(folder.file('report.db'), { ...deps, create: true })
  const clock = createManualClock(100 * DAY_MS)
  await using delivery = startDeliveryReports({ reportDays: 1 }, { store, clock, log: silentLogger })
  const send = async (): Promise<void> => {
    delivery.record({ destinations: [destination], delays: { packets: [PACKETS], sumMicros: 0 } })
    await delivery.flush()
  }
  const hours = async () => ({
    rows: (await store.list({})).map(({ hour, packets }) => [hour, packets]),
    delays: (await store.delays({ fromMs: 0 })).map(({ hour, packets }) => [hour, packets[0]]),
  })
  await send()
  clock.advance(HOUR_MS)
  for (const jumpMs of [400 * DAY_MS, -40 * DAY_MS]) {
    const wallMs = clock.nowMs()
    clock.setWallMs(wallMs + jumpMs)
    clock.advance(3000)
    await send()
    clock.setWallMs(wallMs + 3000)
    clock.advance(3000)
    await send()
  }
  const expected = [
    [100 * DAY_MS, PACKETS],
    [100 * DAY_MS + HOUR_MS, 4 * PACKETS],
  ]
  assert.deepEqual(await hours(), { rows: expected, delays: expected })

  // A day passes.
  clock.advance(DAY_MS)
  await delivery.flush()
  assert.deepEqual((await hours()).rows, [expected[1]])
})

test('the rows of the most destinations are kept over the turn of an hour; beyond that the loss is logged once', async () => {
  using folder = makeTestFolder()
  await using store = await openReportStore(folder.file('report.db'), { ...deps, create: true })
  let written = 0
  const counting: ReportStore = { ...store, add: async (rows) => void (written += rows.length) }
  const warnings: unknown[] = []
  const log = { ...silentLogger, warn: (...given: unknown[]) => void warnings.push(given.at(-1)) }
  const clock = createManualClock(10 * DAY_MS)
  await using delivery = startDeliveryReports({ reportDays: 30 }, { store: counting, clock, log })
  const destinations = Array.from({ length: 10_000 }, (_, at) => ({
    ...destination,
    lease: { ...destination.lease, subscriptionId: `sub-${at}` },
  }))
  const report = { destinations, delays: { packets: [], sumMicros: 0 } }
  const recordHours = async (hours: number): Promise<void> => {
    for (let hour = 0; hour < hours; hour++) {
      clock.advance(HOUR_MS)
      delivery.record(report)
    }
    written = 0
    await delivery.flush()
  }
  await recordHours(2)
  assert.deepEqual({ written, warnings }, { written: 20_000, warnings: [] })
  await recordHours(3)
  assert.equal(written, PENDING_ROWS_MAX)
  assert.deepEqual(warnings, ['oldest delivery reports dropped: too many wait to be written'])
})
