import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { CONTEXT, ENGINES, STORE_DEPS, startEngines } from '../../../test/support/store/engines.ts'
import type { SqlDatabase } from '../../platform/db/sql.ts'
import { openSqlite } from '../../platform/db/sqlite.ts'
import { createBillingRows } from './billing/rows.ts'
import type { AddedUsage } from './model.ts'
import { pruneUsage } from './prune-usage.ts'
import { createTableRows } from './rows.ts'
import type { AccessStore, AccessTransaction } from './store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const SINK = 'openmeter'
const COUNTS = { calls: 1, units: 1, refused: 0 }
const OWNER = 'this process'

const engines = await startEngines()
after(() => engines[Symbol.asyncDispose]())

const subscription = (n: number) => `sub_${String(n).padStart(4, '0')}`

function usage(hour: number, n: number): AddedUsage {
  return {
    ...{ subscriptionId: subscription(n), hour, interface: 'rpc', ...COUNTS, bytes: 1 },
    methods: { getSlot: COUNTS, getBlock: COUNTS },
  }
}

/** Usage of each subscription in each hour, with an event that was sent; those of `notSent` wait. */
async function fill(store: AccessStore, hours: readonly number[], subscriptions: number, notSent: readonly number[]) {
  const { billing } = store
  const state = { storeId: 'x', fromHour: 0, plannedHour: 0, paused: false, owner: null, leaseUntil: 0 }
  await billing.begin({ sink: SINK, ...state })
  for (const hour of hours) {
    await store.addUsage(
      Array.from({ length: subscriptions }, (_, n) => usage(hour, n)),
      new Map(),
    )
    await billing.openHour(SINK, hour)
    const page = await billing.page(hour, '', subscriptions + 1)
    await billing.plan(SINK, page, ({ row, quantity, amount }) =>
      quantity === 'units'
        ? { ...row, quantity, amount, id: `${row.subscriptionId}/${row.hour}`, part: 1, subject: 'cus_1' }
        : undefined,
    )
  }
  await billing.lease(SINK, { owner: OWNER, nowMs: 1, untilMs: 2 })
  const waiting = await billing.waiting(SINK, hours.length * subscriptions)
  const kept = new Set(notSent.map(subscription))
  const sent = waiting.filter((event) => !kept.has(event.subscriptionId))
  await setState(store, sent, 'sent')
}

function setState(store: AccessStore, events: readonly { readonly eventKey: string }[], state: 'sent' | 'dead') {
  const outcomes = events.map(({ eventKey }) => ({ eventKey, state, doubtSince: null, reason: null }))
  return store.billing.put(SINK, OWNER, outcomes)
}

/** How often the event loop ran while `work` did. */
async function turnsDuring<T>(work: () => Promise<T>): Promise<{ turns: number; result: T }> {
  let turns = 0
  let isDone = false
  const counting = (async () => {
    while (!isDone) {
      await immediate()
      turns += 1
    }
  })()
  const result = await work()
  isDone = true
  await counting
  return { turns, result }
}

for (const engine of ENGINES)
  describe(`deleting old usage on ${engine}`, () => {
    test('deletes hours of many subscriptions with their methods and sent events; what was not sent stays', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const hours = [DAY_MS, DAY_MS + HOUR_MS, 2 * DAY_MS, 3 * DAY_MS]
      await fill(store, hours, 100, [3, 99])
      assert.equal(await store.pruneUsage(3 * DAY_MS, 2), 2)
      assert.deepEqual(new Set((await store.usage({})).map(({ hour }) => hour)), new Set(hours.slice(2)))
      assert.equal((await store.methodUsage({ toMs: 2 * DAY_MS })).length, 200, 'the day of the last hour')
      assert.equal(await store.pruneUsage(3 * DAY_MS, 48), 1)
      assert.equal(await store.pruneUsage(3 * DAY_MS, 48), 0)
      assert.equal((await store.methodUsage({ toMs: 2 * DAY_MS })).length, 0)
      assert.equal((await store.methodUsage({})).length, 400)
      const [events] = await bench.tamper(
        `SELECT CAST(COUNT(*) AS INTEGER) FROM billing_events WHERE hour < ${3 * DAY_MS}`,
      )
      assert.deepEqual(events, [6], 'two events of each hour wait')
      assert.equal((await store.billing.markedHour(SINK))?.hour, 3 * DAY_MS)
      assert.deepEqual(await store.integrity(), [])
    })

    test('ends between two parts when it is aborted, and the next call continues', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await fill(store, [HOUR_MS, 2 * HOUR_MS], 120, [])
      const stop = new AbortController()
      const pruning = store.pruneUsage(3 * HOUR_MS, 48, stop.signal)
      stop.abort()
      assert.equal(await pruning, 0)
      assert.ok((await store.usage({})).length > 0)
      assert.equal(await store.pruneUsage(3 * HOUR_MS, 48), 2)
      assert.deepEqual(await store.usage({}), [])
      assert.deepEqual(await bench.tamper('SELECT event_key FROM billing_events'), [])
    })
  })

test('the event loop runs between the parts of an hour, and no part deletes more than a bounded number of rows', async () => {
  await using bench = await engines.bench('sqlite')
  await using store = await bench.open()
  await fill(store, [DAY_MS, 2 * DAY_MS], 400, [])
  await using database = await openSqlite({ file: `${bench.folder}/access.db` }, STORE_DEPS)
  const deleted: number[] = []
  const statements = new Set<string>()
  const watched: SqlDatabase = {
    ...database,
    count: (work, how) =>
      database.count(async (tx) => {
        const changes = async () => (await tx.rows('SELECT total_changes()'))[0]?.[0] as number
        const before = await changes()
        await work({
          ...{ isRemote: false, pages: (...of) => tx.pages(...of), hasTable: (name) => tx.hasTable(name) },
          rows: (sql, values) => tx.rows(sql, values),
          run: (sql, values) => {
            statements.add(sql)
            return tx.run(sql, values)
          },
        })
        deleted.push((await changes()) - before)
      }, how),
  }
  const request = { beforeMs: 3 * DAY_MS, hoursMax: 48, hasBilling: true }
  const { turns, result } = await turnsDuring(() => pruneUsage(watched, request))
  assert.equal(result, 2)
  assert.equal(
    deleted.reduce((sum, rows) => sum + rows, 0),
    // Each hour: usage, events and one mark. The methods of the first day.
    2 * (400 + 400 + 1) + 800,
  )
  assert.ok(Math.max(...deleted) <= 250, `${Math.max(...deleted)} rows in one turn`)
  assert.ok(turns >= deleted.length, `${turns} turns for ${deleted.length} parts`)
  for (const sql of statements) {
    if (!sql.includes('usage_') && !sql.includes('billing_')) continue
    const marks = sql.split('?').length - 1
    const plan = await database.rows(`EXPLAIN QUERY PLAN ${sql}`, Array(marks).fill(1))
    for (const row of plan) assert.doesNotMatch(String(row[3]), /^SCAN/, sql)
  }
})

test('the event loop runs while very many dead letters are retried', async () => {
  await using bench = await engines.bench('sqlite')
  await using store = await bench.open()
  await fill(
    store,
    [HOUR_MS],
    3000,
    Array.from({ length: 3000 }, (_, n) => n),
  )
  await setState(store, await store.billing.waiting(SINK, 3000), 'dead')
  await using database = await openSqlite({ file: `${bench.folder}/access.db` }, STORE_DEPS)
  let turns = 0
  const billing = createBillingRows({
    database,
    rows: createTableRows(database),
    // Without an audit line: its file takes turns too.
    change: (_context, work) =>
      database.change(async (tx) => {
        const done = await turnsDuring(() => work({} as AccessTransaction, tx))
        turns = done.turns
        return done.result.result
      }),
  })
  const which = { isUnknownIncluded: false, isMarkedSent: false }
  assert.deepEqual(await billing.retry(CONTEXT, SINK, which), { changed: 3000, unknown: 0 })
  assert.ok(turns >= 30, `${turns} turns`)
  assert.equal((await store.billing.waiting(SINK, 5000)).length, 3000)
})
