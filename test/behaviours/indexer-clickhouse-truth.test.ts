import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom, randomInt } from '../../src/core/random.ts'
import { seedFor } from '../../src/core/test-seed.ts'
import { systemClock } from '../../src/host/clock.ts'
import { silentLogger } from '../../src/host/logger.ts'
import { createMetricsRegistry } from '../../src/host/metrics-registry.ts'
import { until } from '../../src/host/test-wait.ts'
import { addBlockRows, emptyRows } from '../../src/indexer/block-rows.ts'
import { type Keeper, keepIngesting } from '../../src/indexer/keep-ingest.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { TABLES } from '../../src/indexer/schema.ts'
import { blockFromJson, GET_BLOCK_CONFIG, parseExactJson } from '../../src/solana/block-from-json.ts'
import { startFaultProxy } from '../faults/fault-proxy.ts'
import { startRig } from '../faults/upstreams-rig.ts'
import { CLICKHOUSE_ADMIN, startClickHouse } from '../support/clickhouse.ts'
import { clickHouseRowText } from '../support/clickhouse-rows.ts'
import { startQuickLocalnet } from '../support/localnet.ts'

const ROWS = { includeVotes: true, includeLogs: true }
const KILLS = process.env['SLUICE_FULL'] === '1' ? 100 : 8
const DATABASE = 'truth'

test(`after ${KILLS} kills of the writer, the stream and the server, ClickHouse says what getBlock says`, async () => {
  const { seed } = seedFor('indexer clickhouse truth')
  const random = createSeededRandom(seed)
  await using server = await startClickHouse()
  await using node = await startQuickLocalnet({ traffic: { enabled: true, tps: 100 } })
  await using grpc = await startFaultProxy({ target: { host: '127.0.0.1', port: node.grpc.port } })
  const rpc = `http://127.0.0.1:${node.rpc.port}`
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'localnet', rpc, grpc: `http://127.0.0.1:${grpc.port}` }],
  })
  {
    await using keeper = await keepIngesting(
      {
        store: {
          clickhouse: { url: server.url, ...CLICKHOUSE_ADMIN, database: DATABASE },
          path: '',
          memoryBytes: 0,
          threads: 0,
          rows: ROWS,
        },
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
    await hasGrown(keeper, 3)
    for (let kill = 0; kill < KILLS; kill++) {
      await hasGrown(keeper, randomInt(random, 4))
      const what = kill === 3 ? 'server' : (['writer', 'stream', 'both'][randomInt(random, 3)] as string)
      if (what === 'server') {
        await server.kill()
        await server.start()
      }
      if (what === 'stream' || what === 'both') grpc.resetConnections()
      const pid = keeper.store()?.pid
      if ((what === 'writer' || what === 'both') && pid !== undefined) process.kill(pid, 'SIGKILL')
    }
    await hasGrown(keeper, 5)
    assert.ok(keeper.status().restarts > 0)
  }

  const coverage = await server.run(`SELECT DISTINCT from_slot, to_slot, open_gaps FROM ${DATABASE}.coverage`)
  const [from, to, gaps] = coverage.trim().split('\t').map(Number) as [number, number, number]
  assert.equal(gaps, 0, coverage)
  const expected = emptyRows()
  for (const slot of await call<number[]>(rpc, 'getBlocks', [from, to, { commitment: 'confirmed' }])) {
    const block = await call<unknown>(rpc, 'getBlock', [slot, { ...GET_BLOCK_CONFIG, commitment: 'confirmed' }])
    addBlockRows(expected, blockFromJson(slot, block), { commitment: 'confirmed', source: 'stream' }, ROWS)
  }
  assert.ok(expected.blocks.length > 10 && expected.transactions.length > 50, 'something happened')
  for (const table of TABLES.filter(({ name }) => name !== 'accounts')) {
    // How a block came and how final it was is not the same for both.
    const names = table.columns.map(({ name }) => name).filter((name) => name !== 'commitment' && name !== 'source')
    // Rows beyond what is called complete are those of a batch that was cut off.
    const text = await server.run(
      `SELECT ${names.join(', ')} FROM ${DATABASE}.${table.name} WHERE slot <= ${to} FORMAT JSONCompact`,
    )
    const at = names.map((name) => table.columns.findIndex((column) => column.name === name))
    const columns = at.map((place) => table.columns[place])
    const { data } = JSON.parse(text) as { data: unknown[][] }
    const found = data.map((row) => clickHouseRowText(columns, row)).toSorted()
    const wanted = expected[table.name]
      .map((row) =>
        clickHouseRowText(
          columns,
          at.map((place) => row[place]),
        ),
      )
      .toSorted()
    const strange = found.findIndex((row, place) => row !== wanted[place])
    assert.deepEqual([found.length, found[strange]], [wanted.length, wanted[strange]], table.name)
  }
})

async function hasGrown(keeper: Keeper, blocks: number): Promise<void> {
  const head = () => keeper.status().ingest?.headSlot ?? 0
  const first = head()
  await until(`${blocks} blocks more are in`, () => head() >= first + blocks, 60_000)
}

async function call<Result>(url: string, method: string, params: readonly unknown[]): Promise<Result> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  return (parseExactJson(await answer.text()) as { result: Result }).result
}
