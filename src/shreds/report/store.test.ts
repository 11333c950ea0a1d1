import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { recordOf } from '../../core/records.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { type DeliveryRow, openReportStore, PRUNED_ROWS_MAX, SUM_NAMES } from './store.ts'

test('a file that is there is opened without a draft of a new one: there may be no space for it', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock()
  const file = folder.file('reports.db')
  {
    await using store = await openReportStore(file, { clock, random: createSeededRandom(1), create: true })
    await store.add([], [{ hour: 0, packets: [1] }])
  }
  const noDraft = (): never => assert.fail('a draft was named')
  await using store = await openReportStore(file, { clock, random: { bytes: noDraft, float: noDraft }, create: true })
  const [delays] = await store.delays({ fromMs: 0 })
  assert.equal(delays?.packets[0], 1)
})

const HOUR_MS = 3_600_000
const rowsOf = (hour: number, count: number): DeliveryRow[] =>
  Array.from({ length: count }, (_, at) => ({
    ...recordOf(SUM_NAMES, () => 1),
    ...{ hour, subscriptionId: `sub-${at}`, firstSlot: 1, lastSlot: 2 },
  }))

/** Runs the work and counts the turns of the event loop meanwhile. */
async function turnsOf(work: Promise<unknown>): Promise<number> {
  let turns = 0
  let isDone = false
  const counting = (async () => {
    for (; !isDone; turns++) await setImmediate()
  })()
  await work
  isDone = true
  await counting
  return turns
}

test('many rows are added and deleted in slices, between which the event loop runs, and no new row is deleted', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock()
  await using store = await openReportStore(folder.file('reports.db'), {
    ...{ clock, random: createSeededRandom(1), create: true },
  })
  const turns = await turnsOf(store.add(rowsOf(0, PRUNED_ROWS_MAX + 1), [{ hour: 0, packets: [1] }]))
  assert.ok(turns > 2, `${turns} turns`)
  await store.add(rowsOf(HOUR_MS, 2), [{ hour: HOUR_MS, packets: [1] }])
  let isDone: boolean | undefined
  const pruning = store.prune(HOUR_MS).then((value) => {
    isDone = value
  })
  assert.ok((await turnsOf(pruning)) > 10)
  assert.equal(isDone, false)
  assert.equal((await store.list({ fromMs: 0 })).length, 1 + 2)
  assert.equal(await store.prune(HOUR_MS), true)
  assert.deepEqual(
    (await store.list({ fromMs: 0 })).map(({ hour }) => hour),
    [HOUR_MS, HOUR_MS],
  )
  assert.deepEqual(
    (await store.delays({ fromMs: 0 })).map(({ hour }) => hour),
    [HOUR_MS],
  )
})
