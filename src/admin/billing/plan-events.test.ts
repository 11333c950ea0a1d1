import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addBilledCustomer, FROM_MS, HOUR_MS, usageOf } from '../../../test/support/admin/billing.ts'
import { openSqliteStore } from '../../../test/support/store/engines.ts'
import { createEventPlanner } from './plan-events.ts'

const SINK = 'openmeter'
const HOURS = 10

test('usage without a mark is found from the newest hour on, and in every hour', async () => {
  await using opened = await openSqliteStore()
  const { store } = opened
  const { billing } = store
  await addBilledCustomer(store, 'one')
  const begun = { sink: SINK, storeId: 'store-1', fromHour: FROM_MS, plannedHour: FROM_MS - HOUR_MS, paused: false }
  await billing.begin({ ...begun, owner: null, leaseUntil: 0 })
  const options = { sink: SINK, quantities: ['units'], settleMs: 0, subject: 'customer', fromMs: undefined } as const
  const open = () => createEventPlanner({ ...options, quantities: [...options.quantities] }, { store, onStep() {} })
  const nowMs = FROM_MS + HOURS * HOUR_MS
  const hours = Array.from({ length: HOURS }, (_, at) => FROM_MS + at * HOUR_MS)
  const run = async (planner: ReturnType<typeof open>) => {
    const state = await billing.state(SINK)
    assert.ok(state !== undefined)
    return planner.run(state, { nowMs, isCertain: true })
  }
  const plannedHours = async () => (await billing.waiting(SINK, 100)).map(({ hour, part }) => [hour, part])

  await store.addUsage(
    hours.map((hour) => usageOf('one', hour, 1)),
    new Map(),
  )
  let planner = open()
  for (let passes = 0; passes < 20; passes++) await run(planner)
  const first = hours.map((hour) => [hour, 1])
  assert.deepEqual(await plannedHours(), first)

  await store.addUsage(
    hours.map((hour) => usageOf('one', hour, 1)),
    new Map(),
  )
  for (let marked = await billing.markedHour(SINK); marked !== undefined; marked = await billing.markedHour(SINK))
    await billing.unmarkHour(SINK, marked)
  planner = open()
  await run(planner)
  const newest = [hours.at(-1), 2]
  assert.deepEqual(
    (await plannedHours()).filter(([, part]) => part === 2),
    [newest],
  )
  // A process that ends begins again with the newest hour.
  planner = open()
  for (let passes = 0; passes < HOURS + 1; passes++) await run(planner)
  assert.equal((await plannedHours()).length, 2 * HOURS)
  await store.addUsage([usageOf('one', hours.at(-1) ?? 0, 1)], new Map())
  const marked = await billing.markedHour(SINK)
  assert.ok(marked !== undefined)
  await billing.unmarkHour(SINK, marked)
  for (let passes = 0; passes < HOURS + 1; passes++) await run(planner)
  assert.equal((await plannedHours()).length, 2 * HOURS + 1, 'it begins again after the oldest hour')
})
