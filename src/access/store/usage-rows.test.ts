import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { addCustomer, ENGINES, startEngines } from '../../../test/support/store/engines.ts'
import { isServiceError } from '../../core/error.ts'
import type { SqlReader, SqlRow, SqlValue, SqlWriter } from '../../platform/db/sql.ts'
import { MIGRATIONS } from './migrations.ts'
import type { UsageRow } from './model.ts'
import { createTableRows, textCheck } from './rows.ts'
import { readUnitsSince, setLastUsed } from './usage-rows.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DAY = Date.UTC(2027, 0, 31)

const engines = await startEngines()
after(() => engines[Symbol.asyncDispose]())

const counts = (calls: number) => ({ calls, units: 2 * calls, refused: 0 })

/** Usage of one hour after `DAY`, with the calls of some methods. */
function row(hour: number, methods: Record<string, number>): UsageRow {
  return {
    subscriptionId: 'sub_used',
    hour: DAY + hour * HOUR_MS,
    interface: 'rpc',
    bytes: 0,
    ...counts(Object.values(methods).reduce((sum, calls) => sum + calls, 0)),
    methods: Object.fromEntries(Object.entries(methods).map(([method, calls]) => [method, counts(calls)])),
  }
}

/** As the first version wrote a row of usage. */
function insertOfFirstVersion({ subscriptionId, hour, interface: at, calls, units, refused }: UsageRow): string {
  const check =
    textCheck('usage_hours', JSON.stringify([subscriptionId, hour, at])) + 3 * calls + 5 * units + 7 * refused
  return `INSERT INTO usage_hours (subscription_id, hour, interface, calls, units, refused, row_check)
    VALUES ('${subscriptionId}', ${hour}, '${at}', ${calls}, ${units}, ${refused}, ${check})`
}

for (const engine of ENGINES) {
  describe(`bytes of usage on ${engine}`, () => {
    test('are added up by hour and interface and covered by the check; rows from before them stay valid', async () => {
      await using bench = await engines.bench(engine)
      const old = { ...row(0, {}), ...counts(3) }
      {
        await using store = await bench.open({ migrations: MIGRATIONS.slice(0, 5), check: 'quick' })
        await addCustomer(store, 'acme')
      }
      await bench.tamper(insertOfFirstVersion(old))
      await using store = await bench.open()
      const bytesOf = async () => (await store.usage({})).map(({ interface: at, bytes }) => [at, bytes])
      assert.deepEqual(await store.integrity(), [])
      assert.deepEqual(await bytesOf(), [['rpc', 0]])
      // Without bytes, as a spool or a backup of an earlier version has it.
      const { bytes: _bytes, ...without } = old
      await store.addUsage([without, { ...old, bytes: 5 }, { ...old, interface: 'grpc', bytes: 2 ** 45 }], new Map())
      await store.addUsage([{ ...old, ...counts(0), bytes: 2 ** 40 }], new Map())
      assert.deepEqual(await bytesOf(), [
        ['grpc', 2 ** 45],
        ['rpc', 5 + 2 ** 40],
      ])
      assert.deepEqual(await store.integrity(), [])
      await bench.tamper("UPDATE usage_hours SET bytes = bytes + 1 WHERE interface = 'rpc'")
      assert.match((await store.integrity()).join(), /usage_hours does not match its check/)
      await assert.rejects(store.usage({}), (error) => isServiceError(error, 'store-corrupt'))
    })
  })

  describe(`the check at the start of a process on ${engine}`, () => {
    test('leaves out the history of usage, which the full check reads, and reads all else', async () => {
      await using bench = await engines.bench(engine)
      {
        await using store = await bench.open()
        await addCustomer(store, 'acme')
        await store.addUsage([row(0, { getSlot: 3 })], new Map())
      }
      await bench.tamper('UPDATE usage_hours SET calls = calls + 1')
      await bench.tamper('UPDATE usage_methods SET calls = calls + 1')
      {
        await using store = await bench.open({ check: 'records' })
        const read: [string, number][] = []
        const damage = await store.integrity((table, rows) => void read.push([table, rows]))
        assert.match(damage.join(), /usage_hours does not match its check.*usage_methods does not match its check/)
        assert.deepEqual(
          read.filter(([table]) => table.startsWith('usage_')),
          [
            ['usage_hours', 1],
            ['usage_methods', 1],
          ],
        )
      }
      await assert.rejects(bench.open({ check: 'full' }), /usage_hours does not match its check/)
      await bench.tamper('DELETE FROM customers')
      await assert.rejects(bench.open({ check: 'records' }), /table customers has 0 rows where 1 were written/)
    })
  })

  describe(`usage by method on ${engine}`, () => {
    test('has the sum of an hour over all subscriptions and interfaces, and no other hour', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const used = row(3, { getSlot: 3 })
      await store.addUsage(
        [
          { ...used, refused: 2 },
          { ...used, interface: 'ws', calls: 1, units: 1 },
          { ...used, subscriptionId: 'sub_other', calls: 10, units: 40 },
          row(4, { getSlot: 100 }),
        ],
        new Map(),
      )
      assert.deepEqual(await store.hourUsage(used.hour), { calls: 14, units: 47, refused: 2 })
      assert.deepEqual(await store.hourUsage(DAY - HOUR_MS), { calls: 0, units: 0, refused: 0 })
    })

    test('of one subscription comes in pages, in the order of its hours, with no row of another one', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const hours = Array.from({ length: 1500 }, (_, hour) => row(hour, { getSlot: 1 }))
      const other = { ...row(7, { getSlot: 9 }), subscriptionId: 'sub_other' }
      await store.addUsage([...hours, other], new Map())
      const selected = { subscriptionId: 'sub_used', fromMs: DAY + HOUR_MS, toMs: DAY + 1400 * HOUR_MS }
      const pages = await Array.fromAsync(store.usagePages(selected))
      assert.ok(pages.length > 1 && pages.every(({ length }) => length <= 500))
      assert.deepEqual(pages.flat(), await store.usage(selected))
      assert.deepEqual(
        (await Array.fromAsync(store.methodUsagePages(selected))).flat(),
        await store.methodUsage(selected),
      )
      const all = { fromMs: DAY, toMs: DAY + 1500 * HOUR_MS }
      assert.equal((await Array.fromAsync(store.usagePages(all))).flat().length, 1501)
    })

    test('is added up by day, with the usage of its hour, and its rows are checked', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await store.addUsage([row(0, { getSlot: 3, getBlock: 1 }), row(23, { getSlot: 4 })], new Map())
      await store.addUsage([row(24, { getSlot: 100 }), row(5, { getBlock: -1 })], new Map())
      const of = { subscriptionId: 'sub_used', day: DAY, interface: 'rpc' } as const
      assert.deepEqual(await store.methodUsage({ fromMs: DAY, toMs: DAY + DAY_MS }), [
        { ...of, method: 'getBlock', ...counts(0) },
        { ...of, method: 'getSlot', ...counts(7) },
      ])
      assert.deepEqual(await store.methodUsage({ subscriptionId: 'sub_other' }), [])
      const hours = await store.usage({})
      assert.deepEqual(
        hours.map(({ calls }) => calls),
        [4, -1, 4, 100],
      )
      assert.deepEqual(await store.integrity(), [])
      await bench.tamper("UPDATE usage_methods SET calls = calls + 1 WHERE method = 'getBlock'")
      assert.match((await store.integrity()).join(), /usage_methods does not match its check/)
      await assert.rejects(store.methodUsage({}), (error) => isServiceError(error, 'store-corrupt'))
    })

    test('is deleted with the hours of its day', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const days = async () => (await store.methodUsage({})).map(({ day }) => (day - DAY) / DAY_MS)
      await store.addUsage(
        [0, 1, 2].map((day) => row(day * 24, { getSlot: 1 })),
        new Map(),
      )
      assert.equal(await store.pruneUsage(DAY + 2 * DAY_MS, 48), 2)
      assert.deepEqual(await days(), [1, 2], 'the last deleted day follows with the next one')
      assert.equal(await store.pruneUsage(DAY + 3 * DAY_MS, 48), 1)
      assert.deepEqual(await days(), [2])
    })

    test('a store of the first version is migrated: its usage stays, and methods are counted from then on', async () => {
      await using bench = await engines.bench(engine)
      const { methods: _methods, ...old } = row(0, { getSlot: 3 })
      {
        await using store = await bench.open({ migrations: MIGRATIONS.slice(0, 1), check: 'quick' })
        await addCustomer(store, 'acme')
      }
      await bench.tamper(insertOfFirstVersion(old))
      await using store = await bench.open()
      assert.deepEqual(await store.usage({}), [old])
      assert.deepEqual(await store.methodUsage({}), [])
      await store.addUsage([row(1, { getBlock: 2 })], new Map())
      assert.deepEqual(
        (await store.methodUsage({})).map(({ method, calls }) => [method, calls]),
        [['getBlock', 2]],
      )
      assert.deepEqual(await store.integrity(), [])
    })
  })
}

for (const engine of ENGINES) {
  test(`last uses of many tokens on ${engine}: the newest stays, whichever was written last`, async () => {
    await using bench = await engines.bench(engine)
    await using store = await bench.open()
    const tokens = Array.from({ length: 250 }, (_, n) => `tok_${n}`)
    const use = (atMs: (n: number) => number) =>
      store.addUsage([], new Map(tokens.map((token, n) => [token, atMs(n)] as const)))
    await use(() => 1000)
    await use((n) => (n % 2 === 0 ? 2000 : 500))
    const found = await store.lastUsedOf(tokens)
    assert.deepEqual(
      tokens.map((token) => found.get(token)),
      tokens.map((_, n) => (n % 2 === 0 ? 2000 : 1000)),
    )
    assert.deepEqual(await store.integrity(), [])
  })
}

for (const isRemote of [false, true])
  test(`the units of a month are read in pages, with a turn of the event loop after each slice; ${isRemote ? 'a database on another machine adds them up' : 'SQLite holds the event loop, so it does not add them up'}`, async () => {
    const pages: SqlRow[][] = [
      [
        ['sub_a', 3],
        ['sub_b', 4],
      ],
      [['sub_a', 5]],
    ]
    let turns = 0
    const reader: Partial<SqlReader> = {
      isRemote,
      async *pages(sql, values) {
        assert.equal(/GROUP BY/.test(sql), isRemote)
        assert.deepEqual(values, [DAY])
        yield* pages
      },
    }
    const slices = { isSpent: () => true, yield: async () => void (turns += 1) }
    const units = await readUnitsSince(reader as SqlReader, DAY, slices)
    assert.deepEqual(
      [...units],
      [
        ['sub_a', 8],
        ['sub_b', 4],
      ],
    )
    assert.equal(turns, pages.length)
  })

test('many records are written in few statements: at a database on another machine each one is a round trip', async () => {
  const statements: number[] = []
  const tx = {
    run: async (_sql: string, values: readonly SqlValue[] = []) => void statements.push(values.length),
    rows: async () => [],
  } as unknown as SqlWriter
  const rows = createTableRows({ name: 'test', restoreAdvice: '' })
  await setLastUsed(tx, rows, new Map(Array.from({ length: 250 }, (_, n) => [`tok_${n}`, n])))
  assert.deepEqual(statements, [400, 400, 200])
})
