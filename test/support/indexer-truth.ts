import assert from 'node:assert/strict'
import { createSeededRandom, type Random, randomInt } from '../../src/core/random.ts'
import type { StoreOptions } from '../../src/indexer/duckdb/protocol.ts'
import { columnAt, type Row } from '../../src/indexer/ingest/batch-rows.ts'
import { type IngestSupervisor, keepIngesting } from '../../src/indexer/ingest/supervise.ts'
import { batchRowsOf, listRows } from '../../src/indexer/ingest/test-rows.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { TABLES, type TableName, tableOf } from '../../src/indexer/schema.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { blockFromJson, GET_BLOCK_CONFIG, parseExactJson } from '../../src/solana/json/block.ts'
import { startFaultProxy } from '../faults/fault-proxy.ts'
import { startRig } from '../faults/upstreams-rig.ts'
import { type DroppingUpstream, dropBlocks } from './dropping-upstream.ts'
import { indexedRowText } from './indexer-rows.ts'
import { startQuickLocalnet } from './localnet.ts'

const ROWS = { includeVotes: true, includeLogs: true }
const DROPPED_ONE_IN = 20
/** Much longer than any restart: what takes so long will not come. */
const GROW_MS = 120_000

/** What a store holds, asked by the engine's own means. */
export type Finding = {
  /** The only stretch, which `coverage` calls complete. */
  readonly range: readonly [from: number, to: number]
  /** Rows of a table up to `to`, of these columns. */
  rowsOf(table: TableName, columns: readonly string[], to: number): Promise<readonly (readonly unknown[])[]>
}

/** One of the two engines, as the test needs it. */
export type TruthEngine = AsyncDisposable & {
  readonly store: Omit<StoreOptions, 'rows'>
  /** One more thing that can break, by itself. */
  breakMore(): Promise<void>
  /** Rows of a question while all is running, as a customer sees the tables; undefined while the engine is away. */
  askLive(supervisor: IngestSupervisor, sql: string): Promise<readonly (readonly unknown[])[] | undefined>
  /** Opens what was written, after all is closed. */
  find(): Promise<Finding & Partial<AsyncDisposable>>
}

export type TruthRun = {
  readonly seed: number
  readonly kills: number
  /** Slots that pass in all, at least. */
  readonly slots: number
}

/**
 * Follows a localnet with traffic while the writer and the stream are killed, blocks are left out of the stream and ingest is started anew. All the
 * while `coverage` must not be ahead of the rows; in the end every table is compared with what getBlock says. Gives what happened.
 */
export async function holdsTruth(engine: TruthEngine, { seed, kills, slots }: TruthRun): Promise<string> {
  const random = createSeededRandom(seed)
  await using node = await startQuickLocalnet({
    traffic: { enabled: true, tps: 150 },
    // All of it is asked for in the end.
    limits: { ledgerBytesMax: 2 ** 31 },
  })
  await using grpc = await startFaultProxy({ target: { host: '127.0.0.1', port: node.grpc.port } })
  const rpc = `http://127.0.0.1:${node.rpc.port}`
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'localnet', rpc, grpc: `http://127.0.0.1:${grpc.port}` }],
  })
  const upstream = dropBlocks(rig.upstreams.of(undefined), random, DROPPED_ONE_IN)
  const between = Math.max(4, Math.ceil((2 * slots) / kills))
  let restarts = 0
  let looks = 0
  let supervisor = await openSupervisor(engine, upstream, random)
  try {
    await hasGrown(supervisor, 5)
    for (let kill = 0; kill < kills; kill++) {
      await hasGrown(supervisor, randomInt(random, between + 1))
      if (await isCovered(engine, supervisor, rpc)) looks++
      const what = randomInt(random, 12)
      if (what === 0) {
        // The whole of it ends in order and begins anew, as when the operator restarts it.
        restarts += supervisor.status().restarts
        await supervisor[Symbol.asyncDispose]()
        supervisor = await openSupervisor(engine, upstream, random)
      } else if (what === 1) await engine.breakMore()
      killSome(random, supervisor, grpc)
    }
    await hasGrown(supervisor, 8)
    restarts += supervisor.status().restarts
  } finally {
    await supervisor[Symbol.asyncDispose]()
  }
  assert.ok(restarts > 0, 'the database was never killed')
  assert.ok(looks > kills / 4, `coverage could be looked at ${looks} times only`)
  const found = await engine.find()
  try {
    const compared = await compare(rpc, found)
    return `${compared}; ${restarts} restarts, ${upstream.dropped} blocks left out of the stream, coverage right ${looks} times`
  } finally {
    await found[Symbol.asyncDispose]?.()
  }
}

function openSupervisor(
  { store }: TruthEngine,
  { upstream }: DroppingUpstream,
  random: Random,
): Promise<IngestSupervisor> {
  const fill = { parallel: 4, blocksMax: 64 }
  return keepIngesting(
    {
      store: { ...store, rows: ROWS },
      ingest: { includeAccounts: true, batchBlocks: 4, batchMs: 100, heldMax: 64, fill },
    },
    {
      upstream,
      clock: systemClock,
      random,
      log: silentLogger,
      metrics: indexerMetrics(createMetricsRegistry()),
    },
  )
}

function killSome(random: Random, supervisor: IngestSupervisor, stream: { resetConnections(): void }): void {
  const what = randomInt(random, 3)
  if (what !== 0) stream.resetConnections()
  if (what !== 1) supervisor.store()?.kill()
}

/** Everything that `coverage` calls complete is there: as many blocks as the chain has, and all of their transactions. False when nobody answered. */
async function isCovered(engine: TruthEngine, supervisor: IngestSupervisor, rpc: string): Promise<boolean> {
  const reported = await engine.askLive(
    supervisor,
    "SELECT from_slot, to_slot FROM coverage WHERE table_name = 'blocks'",
  )
  const [from, to] = (reported?.[0] ?? []).map(Number)
  if (from === undefined || to === undefined) return false
  // Asked later than what it is held against: rows may be ahead of coverage, coverage never of the rows.
  const within = `slot >= ${from} AND slot <= ${to}`
  const blocks = await engine.askLive(supervisor, `SELECT count(*), sum(tx_count) FROM blocks WHERE ${within}`)
  const transactions = await engine.askLive(supervisor, `SELECT count(*) FROM transactions WHERE ${within}`)
  if (blocks === undefined || transactions === undefined) return false
  const slots = await call<number[]>(rpc, 'getBlocks', [from, to, { commitment: 'confirmed' }])
  const [count, counted] = (blocks[0] ?? []).map(Number)
  const found = { blocks: count, transactions: Number(transactions[0]?.[0]) }
  assert.deepEqual(found, { blocks: slots.length, transactions: counted }, `coverage says ${from} to ${to}`)
  return true
}

async function compare(rpc: string, found: Finding): Promise<string> {
  const [from, to] = found.range
  const expected = listRows([batchRowsOf(await blocksOf(rpc, from, to), ROWS)])
  assert.ok(expected.blocks.length > 10 && expected.transactions.length > 50, 'something happened')
  for (const table of TABLES.filter(({ name }) => name !== 'accounts')) {
    // How a block came and how final it was is not the same for both.
    const columns = table.columns.filter(({ name }) => name !== 'commitment' && name !== 'source')
    const positions = columns.map(({ name }) => table.columns.findIndex((column) => column.name === name))
    const names = columns.map(({ name }) => name)
    const rows = (await found.rowsOf(table.name, names, to)).map((row) => indexedRowText(columns, row)).toSorted()
    const wanted = expected[table.name]
      .map((row) =>
        indexedRowText(
          columns,
          positions.map((position) => row[position]),
        ),
      )
      .toSorted()
    const strange = rows.findIndex((row, position) => row !== wanted[position])
    assert.deepEqual([rows.length, rows[strange]], [wanted.length, wanted[strange]], table.name)
  }
  const accounts = await compareAccounts(found, expected.account_activity)
  const count = Object.values(expected).reduce((sum, rows) => sum + rows.length, 0)
  return `${expected.blocks.length} blocks, ${count} rows and ${accounts} accounts are as getBlock says`
}

/**
 * getBlock tells no accounts, and a block that had to be asked for brings none. What is there is there once, and has the balance that the last
 * transaction of its slot left.
 */
async function compareAccounts(found: Finding, activity: readonly Row[]): Promise<number> {
  const at = (name: string): number => columnAt('account_activity', name)
  const balances = new Map<string, unknown>()
  const keyOf = (account: unknown, slot: unknown): string => JSON.stringify([account, Number(slot)])
  // Rows are in the order of the chain.
  for (const row of activity)
    if (row[at('mint')] === '') balances.set(keyOf(row[at('account')], row[at('slot')]), row[at('post')])
  const columns = ['pubkey', 'slot', 'lamports']
  const rows = await found.rowsOf('accounts', columns, found.range[1])
  assert.equal(new Set(rows.map(([pubkey]) => String(pubkey))).size, rows.length, 'an account is there twice')
  let compared = 0
  for (const [pubkey, slot, lamports] of rows) {
    const balance = balances.get(keyOf(pubkey, slot))
    if (balance === undefined) continue
    assert.deepEqual([pubkey, slot, BigInt(lamports as string)], [pubkey, slot, BigInt(balance as bigint)])
    compared++
  }
  assert.ok(compared > 0 && tableOf('accounts').key.length === 1, 'no account could be compared')
  return compared
}

async function blocksOf(rpc: string, from: number, to: number) {
  const blocks = []
  for (const slot of await call<number[]>(rpc, 'getBlocks', [from, to, { commitment: 'confirmed' }])) {
    const block = await call<unknown>(rpc, 'getBlock', [slot, { ...GET_BLOCK_CONFIG, commitment: 'confirmed' }])
    blocks.push(blockFromJson(slot, block))
  }
  return blocks
}

async function hasGrown(supervisor: IngestSupervisor, blocks: number): Promise<void> {
  const head = () => supervisor.status().ingest?.headSlot ?? 0
  const first = head()
  await until(`${blocks} blocks more are in`, () => head() >= first + blocks, GROW_MS).catch((cause: unknown) => {
    throw new Error(`ingest stands still: ${JSON.stringify(supervisor.status())}`, { cause })
  })
}

async function call<Result>(url: string, method: string, params: readonly unknown[]): Promise<Result> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  return (parseExactJson(await response.text()) as { result: Result }).result
}
