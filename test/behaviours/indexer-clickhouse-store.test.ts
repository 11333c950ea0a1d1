import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openClickHouseStore } from '../../src/indexer/clickhouse/store.ts'
import { makeTestChain } from '../../src/indexer/ingest/test-blocks.ts'
import { batchOf, brokenRows, listRows } from '../../src/indexer/ingest/test-rows.ts'
import { TABLES } from '../../src/indexer/schema.ts'
import type { Store, WriteBatch } from '../../src/indexer/store/store.ts'
import { delay, systemClock } from '../../src/platform/process/clock.ts'
import type { ChainBlock } from '../../src/solana/chain-block.ts'
import { startFaultProxy } from '../faults/fault-proxy.ts'
import { CLICKHOUSE_ADMIN, type ClickHouseServer, startClickHouse } from '../support/indexer/clickhouse.ts'
import { indexedRowText } from '../support/indexer/rows.ts'

const CHAIN = makeTestChain({ seed: 7, blocks: 40, transactionsPerBlock: 20 })
const FORK = makeTestChain({ seed: 8, blocks: 40, transactionsPerBlock: 12 })

describe("the operator's ClickHouse as the store, on Debian's server", () => {
  let server: ClickHouseServer
  let databases = 0
  before(async () => {
    server = await startClickHouse()
  })
  after(() => server?.[Symbol.asyncDispose]())

  async function openStore(database = `chain${++databases}`, url = server.url): Promise<Store & { database: string }> {
    const store = await openClickHouseStore(
      { url, ...CLICKHOUSE_ADMIN, database },
      { nowMs: () => systemClock.nowMs(), wait: (ms) => delay(systemClock, ms) },
    )
    return { ...store, database }
  }

  test('a batch that is written several times is stored once', async () => {
    await using store = await openStore()
    const halves = [batchOf(CHAIN.slice(0, 20)), batchOf(CHAIN.slice(20))]
    for (const batch of [...halves, ...halves, halves[0] as WriteBatch]) await store.write(batch)
    const complete = batchOf(CHAIN)
    await holds(store.database, complete)
    const { ranges, recent } = await store.progress()
    assert.deepEqual(ranges, [complete.range])
    assert.deepEqual(recent.at(-1), { slot: CHAIN.at(-1)?.slot, blockhash: CHAIN.at(-1)?.blockhash })
    assert.equal(recent.length, CHAIN.length)
  })

  test('a rewind deletes all rows of the blocks from its slot on, and they can be written again', async () => {
    await using store = await openStore()
    await store.write(batchOf(CHAIN))
    const cut = CHAIN[25] as ChainBlock
    await store.rewind(cut.slot)
    const rest = batchOf(CHAIN.slice(0, 25))
    await holds(store.database, rest)
    assert.deepEqual((await store.progress()).ranges, [{ from: rest.range.from, to: cut.slot - 1 }])
    // The same blocks may be written again: the insert tokens that the server remembers must not skip them.
    await store.write(batchOf(CHAIN.slice(25)))
    await holds(store.database, batchOf(CHAIN))
  })

  test('blocks of a fork are deleted before those in their place are written, also when the batch is repeated', async () => {
    await using store = await openStore()
    await store.write(batchOf(CHAIN))
    const other = CHAIN.slice(25, 28).map((block) => ({ ...block, transactions: block.transactions.slice(0, 1) }))
    const written = batchOf(other)
    const fork = { ...written, name: `${written.name}x`, rewindFrom: written.range.from }
    for (let times = 0; times < 2; times++) {
      await store.write(fork)
      await holds(store.database, batchOf([...CHAIN.slice(0, 25), ...other]))
      assert.deepEqual((await store.progress()).ranges, [{ from: batchOf(CHAIN).range.from, to: written.range.to }])
    }
  })

  test('blocks become finalized, and coverage lists what is complete', async () => {
    await using store = await openStore()
    assert.equal(await server.run(`SELECT * FROM ${store.database}.coverage`), '')
    await store.write(batchOf(CHAIN.slice(0, 5)))
    const narrow = `SELECT table_name, open_gaps FROM ${store.database}.coverage WHERE table_name = 'blocks' AND lag_slots = 0`
    assert.equal(await server.run(narrow), 'blocks\t0\n')
    await store.write(batchOf(CHAIN.slice(10, 20), { finalizedSlot: CHAIN[3]?.slot ?? 0 }))
    const final = await server.run(
      `SELECT slot FROM ${store.database}.blocks WHERE commitment = 'finalized' ORDER BY slot`,
    )
    assert.deepEqual(
      final.trim().split('\n').map(Number),
      CHAIN.slice(0, 4).map(({ slot }) => slot),
    )
    const coverage = await server.run(
      `SELECT table_name, from_slot, to_slot, open_gaps, lag_slots FROM ${store.database}.coverage`,
    )
    const lines = coverage
      .trim()
      .split('\n')
      .map((line) => line.split('\t'))
    assert.deepEqual(
      lines.map(([name]) => name),
      TABLES.map(({ name }) => name),
    )
    for (const [, ...row] of lines)
      assert.deepEqual(row.map(Number), [(CHAIN[10] as ChainBlock).parentSlot + 1, CHAIN[19]?.slot, 1, 0])
    const missing = await server.run(`SELECT DISTINCT missing_slots FROM ${store.database}.coverage`)
    assert.equal(missing, `['${(CHAIN[4]?.slot ?? 0) + 1}-${CHAIN[10]?.parentSlot}']\n`)
  })

  test('an interrupted batch is completed by the same batch, and deleted before any other', async () => {
    await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: Number(new URL(server.url).port) } })
    const database = `chain${++databases}`
    const first = batchOf(CHAIN.slice(0, 10))
    {
      await using store = await openStore(database, `http://127.0.0.1:${proxy.port}`)
      await store.write(first)
      const broken = batchOf(CHAIN.slice(10, 20))
      await assert.rejects(store.write({ ...broken, rows: [...broken.rows, brokenRows()] }))
      assert.deepEqual((await store.progress()).ranges, [first.range])
      await store.write(broken)
      await holds(database, batchOf(CHAIN.slice(0, 20)))
      const next = batchOf(CHAIN.slice(20, 30))
      await assert.rejects(store.write({ ...next, rows: [...next.rows, brokenRows()] }))
    }
    // A fork meanwhile: other rows in the same slots.
    await using again = await openStore(database)
    const others = FORK.slice(20, 30).map((block, at) => ({ ...block, slot: (CHAIN[20 + at] as ChainBlock).slot }))
    const fork = { ...batchOf(others), range: batchOf(CHAIN.slice(20, 30)).range }
    await again.write(fork)
    const expected = batchOf(CHAIN.slice(0, 20))
    await holds(database, { ...expected, rows: [...expected.rows, ...fork.rows] })
    assert.deepEqual((await again.progress()).ranges, [batchOf(CHAIN.slice(0, 30)).range])
  })

  test('a write fails while the server is down, and the same batch succeeds after its restart', async () => {
    await using store = await openStore()
    await store.write(batchOf(CHAIN.slice(0, 10)))
    await server.kill()
    const next = batchOf(CHAIN.slice(10, 20))
    await assert.rejects(store.write(next), /no response/)
    await server.start()
    await store.write(next)
    await holds(store.database, batchOf(CHAIN.slice(0, 20)))
  })

  test('a write fails within seconds when the network drops all packets, and the batch succeeds later', async (t) => {
    await using proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: Number(new URL(server.url).port) } })
    await using store = await openStore(undefined, `http://127.0.0.1:${proxy.port}`)
    await store.write(batchOf(CHAIN.slice(0, 10)))
    for (const stream of ['upstream', 'downstream'] as const) proxy.add({ type: 'timeout', timeoutMs: 0, stream })
    const next = batchOf(CHAIN.slice(10, 20))
    const startedMs = performance.now()
    await assert.rejects(store.write(next), /no response/)
    const seconds = (performance.now() - startedMs) / 1000
    t.diagnostic(`failed after ${seconds.toFixed(1)} s`)
    assert.ok(seconds < 30, `${seconds} s`)
    proxy.clear()
    proxy.resetConnections()
    await store.write(next)
    await holds(store.database, batchOf(CHAIN.slice(0, 20)))
  })

  /** Checks that the views have exactly these rows. */
  async function holds(database: string, { rows }: WriteBatch): Promise<void> {
    for (const table of TABLES) {
      const names = table.columns.map(({ name }) => name).join(', ')
      const text = await server.run(`SELECT ${names} FROM ${database}.${table.name} FORMAT JSONCompact`)
      const { data } = JSON.parse(text) as { data: unknown[][] }
      const found = data.map((row) => indexedRowText(table.columns, row)).toSorted()
      const expected = listRows(rows)
        [table.name].map((row) => indexedRowText(table.columns, row))
        .toSorted()
      const different = found.findIndex((row, at) => row !== expected[at])
      assert.deepEqual([found.length, found[different]], [expected.length, expected[different]], table.name)
    }
  }
})
