import assert from 'node:assert/strict'
import { createSeededRandom, type Random, randomInt } from '../../src/core/random.ts'
import { systemClock } from '../../src/host/clock.ts'
import { silentLogger } from '../../src/host/logger.ts'
import { createMetricsRegistry } from '../../src/host/metrics-registry.ts'
import { until } from '../../src/host/test-wait.ts'
import { type Keeper, keepIngesting } from '../../src/indexer/keep-ingest.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { TABLES, type TableName } from '../../src/indexer/schema.ts'
import type { StoreOptions } from '../../src/indexer/store-protocol.ts'
import { batchRowsOf, listRows } from '../../src/indexer/test-rows.ts'
import { blockFromJson, GET_BLOCK_CONFIG, parseExactJson } from '../../src/solana/block-from-json.ts'
import { startFaultProxy } from '../faults/fault-proxy.ts'
import { startRig } from '../faults/upstreams-rig.ts'
import { indexedRowText } from './indexer-rows.ts'
import { startQuickLocalnet } from './localnet.ts'

export const TRUTH_ROWS = { includeVotes: true, includeLogs: true }

/** What a store holds in the end, asked by the engine's own means. */
export type Finding = {
  /** The only stretch, which `coverage` calls complete. */
  readonly range: readonly [from: number, to: number]
  /** Rows of a table up to `to`, without these columns. */
  rowsOf(table: TableName, columns: readonly string[], to: number): Promise<readonly (readonly unknown[])[]>
}

export type TruthRun = {
  readonly seed: number
  readonly kills: number
  readonly store: Omit<StoreOptions, 'rows'>
  /** One more thing that can break, at this kill. */
  readonly breakMore?: { readonly at: number; run(): Promise<void> }
  /** Opens what was written, after all is closed. */
  find(): Promise<Finding & Partial<AsyncDisposable>>
}

/** Follows a localnet with traffic while the writer and the stream are killed, then compares every table with what getBlock says. */
export async function holdsTruth({ seed, kills, store, breakMore, find }: TruthRun): Promise<void> {
  const random = createSeededRandom(seed)
  await using node = await startQuickLocalnet({ traffic: { enabled: true, tps: 150 } })
  await using grpc = await startFaultProxy({ target: { host: '127.0.0.1', port: node.grpc.port } })
  const rpc = `http://127.0.0.1:${node.rpc.port}`
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'localnet', rpc, grpc: `http://127.0.0.1:${grpc.port}` }],
  })
  {
    await using keeper = await keepIngesting(
      {
        store: { ...store, rows: TRUTH_ROWS },
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
    for (let kill = 0; kill < kills; kill++) {
      await hasGrown(keeper, randomInt(random, 5))
      if (kill === breakMore?.at) await breakMore.run()
      killSome(random, keeper, grpc)
    }
    await hasGrown(keeper, 8)
    assert.ok(keeper.status().restarts > 0)
  }
  const found = await find()
  try {
    await compare(rpc, found)
  } finally {
    await found[Symbol.asyncDispose]?.()
  }
}

function killSome(random: Random, keeper: Keeper, stream: { resetConnections(): void }): void {
  const what = randomInt(random, 3)
  if (what !== 0) stream.resetConnections()
  const pid = keeper.store()?.pid
  if (what !== 1 && pid !== undefined) process.kill(pid, 'SIGKILL')
}

async function compare(rpc: string, found: Finding): Promise<void> {
  const [from, to] = found.range
  const expected = listRows([batchRowsOf(await blocksOf(rpc, from, to), TRUTH_ROWS)])
  assert.ok(expected.blocks.length > 10 && expected.transactions.length > 50, 'something happened')
  for (const table of TABLES.filter(({ name }) => name !== 'accounts')) {
    // How a block came and how final it was is not the same for both.
    const columns = table.columns.filter(({ name }) => name !== 'commitment' && name !== 'source')
    const places = columns.map(({ name }) => table.columns.findIndex((column) => column.name === name))
    const names = columns.map(({ name }) => name)
    const rows = (await found.rowsOf(table.name, names, to)).map((row) => indexedRowText(columns, row)).toSorted()
    const wanted = expected[table.name]
      .map((row) =>
        indexedRowText(
          columns,
          places.map((place) => row[place]),
        ),
      )
      .toSorted()
    const strange = rows.findIndex((row, place) => row !== wanted[place])
    assert.deepEqual([rows.length, rows[strange]], [wanted.length, wanted[strange]], table.name)
  }
}

async function blocksOf(rpc: string, from: number, to: number) {
  const blocks = []
  for (const slot of await call<number[]>(rpc, 'getBlocks', [from, to, { commitment: 'confirmed' }])) {
    const block = await call<unknown>(rpc, 'getBlock', [slot, { ...GET_BLOCK_CONFIG, commitment: 'confirmed' }])
    blocks.push(blockFromJson(slot, block))
  }
  return blocks
}

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
