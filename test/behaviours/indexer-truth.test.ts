import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom, randomInt } from '../../src/core/random.ts'
import { seedFor } from '../../src/core/test-seed.ts'
import { systemClock } from '../../src/host/clock.ts'
import { type DuckConnection, openDuckDatabase } from '../../src/host/duckdb.ts'
import { silentLogger } from '../../src/host/logger.ts'
import { createMetricsRegistry } from '../../src/host/metrics-registry.ts'
import { makeTestFolder } from '../../src/host/test-folder.ts'
import { until } from '../../src/host/test-wait.ts'
import { addBlockRows, emptyRows, type Row } from '../../src/indexer/block-rows.ts'
import { type Keeper, keepIngesting } from '../../src/indexer/keep-ingest.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { TABLES, type Table } from '../../src/indexer/schema.ts'
import { blockFromJson, GET_BLOCK_CONFIG, parseExactJson } from '../../src/solana/block-from-json.ts'
import { startFaultProxy } from '../faults/fault-proxy.ts'
import { startRig } from '../faults/upstreams-rig.ts'
import { startQuickLocalnet } from '../support/localnet.ts'

const ROWS = { includeVotes: true, includeLogs: true }
const KILLS = process.env['SLUICE_FULL'] === '1' ? 100 : 6

test(`after ${KILLS} kills of the database and of the stream, every table says what getBlock says`, async () => {
  const { seed } = seedFor('indexer truth')
  const random = createSeededRandom(seed)
  using folder = makeTestFolder()
  await using node = await startQuickLocalnet({ traffic: { enabled: true, tps: 200 } })
  await using grpc = await startFaultProxy({ target: { host: '127.0.0.1', port: node.grpc.port } })
  const rpc = `http://127.0.0.1:${node.rpc.port}`
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'localnet', rpc, grpc: `http://127.0.0.1:${grpc.port}` }],
  })
  const path = folder.file('chain.duckdb')
  {
    await using keeper = await keepIngesting(
      {
        store: { path, memoryBytes: 512 * 1024 * 1024, threads: 2, rows: ROWS },
        ingest: {
          includeAccounts: true,
          batchBlocks: 4,
          batchMs: 100,
          heldMax: 64,
          fill: { parallel: 4, blocksMax: 64 },
        },
      },
      {
        upstream: rig.upstreams.of(undefined),
        clock: systemClock,
        random,
        log: silentLogger,
        metrics: indexerMetrics(createMetricsRegistry()),
      },
    )
    await hasGrown(keeper, 5)
    for (let kill = 0; kill < KILLS; kill++) {
      await hasGrown(keeper, randomInt(random, 6))
      const what = randomInt(random, 3)
      if (what !== 0) grpc.resetConnections()
      const pid = keeper.store()?.pid
      if (what !== 1 && pid !== undefined) process.kill(pid, 'SIGKILL')
    }
    await hasGrown(keeper, 10)
    assert.ok(keeper.status().restarts > 0)
  }

  using database = await openDuckDatabase(path)
  using connection = await database.connect()
  const ranges = await rowsOf(connection, 'SELECT from_slot, to_slot FROM base._ranges')
  assert.equal(ranges.length, 1)
  const [from, to] = (ranges[0] as unknown[]).map(Number) as [number, number]
  const expected = emptyRows()
  for (const slot of await call<number[]>(rpc, 'getBlocks', [from, to, { commitment: 'confirmed' }])) {
    const block = await call<unknown>(rpc, 'getBlock', [slot, { ...GET_BLOCK_CONFIG, commitment: 'confirmed' }])
    addBlockRows(expected, blockFromJson(slot, block), { commitment: 'confirmed', source: 'stream' }, ROWS)
  }
  assert.ok(expected.blocks.length > 10 && expected.transactions.length > 50, 'something happened')
  for (const table of TABLES.filter(({ name }) => name !== 'accounts')) {
    const found = await rowsOf(connection, `SELECT * FROM base.${table.name}`)
    assert.deepEqual(sorted(table, found), sorted(table, expected[table.name]), table.name)
  }
  const coverage = await rowsOf(connection, 'SELECT from_slot, to_slot FROM base.coverage')
  for (const row of coverage) assert.deepEqual(row.map(Number), [from, to])
})

async function hasGrown(keeper: Keeper, blocks: number): Promise<void> {
  const head = () => keeper.status().ingest?.headSlot ?? 0
  const first = head()
  await until(`${blocks} blocks more are in`, () => head() >= first + blocks, 30_000)
}

async function call<Result>(url: string, method: string, params: readonly unknown[]): Promise<Result> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  return (parseExactJson(await answer.text()) as { result: Result }).result
}

async function rowsOf(connection: DuckConnection, sql: string): Promise<unknown[][]> {
  const rows: unknown[][] = []
  for (const columns of (await connection.run(sql)).pieces()) {
    columns[0]?.forEach((_, at) => rows.push(columns.map((column) => column[at])))
  }
  return rows
}

/** Rows as text, by the key of the table; what tells how a block came is left out. */
function sorted(table: Table, rows: readonly (readonly unknown[] | Row)[]): string[] {
  return rows.map((row) => JSON.stringify(row.map((value, at) => plain(table, value, at)))).toSorted()
}

function plain(table: Table, value: unknown, at: number): unknown {
  const name = table.columns[at]?.name
  if (table.name === 'blocks' && (name === 'commitment' || name === 'source')) return ''
  if (typeof value === 'bigint' || typeof value === 'number') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if ('items' in value) return value.items
  return 'seconds' in value ? String(value.seconds) : value
}
