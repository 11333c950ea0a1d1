import assert from 'node:assert/strict'
import { createSeededRandom, type Random, randomInt } from '../../../src/core/random.ts'
import { columnAt, type Row } from '../../../src/indexer/ingest/batch-rows.ts'
import { type IngestSupervisor, superviseIngest } from '../../../src/indexer/ingest/supervise.ts'
import { batchRowsOf, listRows } from '../../../src/indexer/ingest/test-rows.ts'
import { indexerMetrics } from '../../../src/indexer/metrics.ts'
import { TABLES, type TableName, tableOf } from '../../../src/indexer/schema.ts'
import type { StoreOptions } from '../../../src/indexer/store/protocol.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { until } from '../../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import type { ChainBlock } from '../../../src/solana/chain-block.ts'
import { blockFromJson, GET_BLOCK_CONFIG, parseExactJson } from '../../../src/solana/json/block.ts'
import { startFaultProxy } from '../../faults/fault-proxy.ts'
import { startRig } from '../../faults/upstreams-rig.ts'
import { type DroppingUpstream, dropBlocks } from '../gateway/dropping-upstream.ts'
import { startQuickLocalnet } from '../solana/localnet.ts'
import { indexedRowText } from './rows.ts'

const ROWS = { includeVotes: true, includeLogs: true }
const DROPPED_ONE_IN = 20
/** Much longer than any restart. */
const GROW_MS = 120_000

/** Content of a store, read with the engine's own client. */
export type Finding = {
  /** The only range that `coverage` reports as complete. */
  readonly range: readonly [from: number, to: number]
  /** Rows of a table up to `to`, of these columns. */
  rowsOf(table: TableName, columns: readonly string[], to: number): Promise<readonly (readonly unknown[])[]>
}

/** One of the two engines, as the test needs it. */
export type TruthEngine = AsyncDisposable & {
  readonly store: Omit<StoreOptions, 'rows'>
  /** Injects a fault of this engine. */
  injectFault(): Promise<void>
  /** Rows of a query while ingest runs, as a customer sees them; undefined while the engine is unreachable. */
  queryLive(supervisor: IngestSupervisor, sql: string): Promise<readonly (readonly unknown[])[] | undefined>
  /** Opens the store after ingest has ended. */
  find(): Promise<Finding & Partial<AsyncDisposable>>
}

export type TruthRun = {
  readonly seed: number
  readonly kills: number
  /** Least number of slots in total. */
  readonly slots: number
}

/**
 * Follows a localnet with traffic while the writer and the stream are killed, blocks are dropped from the stream and ingest is restarted. `coverage`
 * must never be ahead of the rows; at the end every table is compared with getBlock. Resolves with a summary.
 */
export async function checkTruth(engine: TruthEngine, { seed, kills, slots }: TruthRun): Promise<string> {
  const random = createSeededRandom(seed)
  await using node = await startQuickLocalnet({
    traffic: { enabled: true, tps: 150 },
    // The whole ledger is read at the end.
    limits: { ledgerBytesMax: 2 ** 31 },
  })
  await using grpc = await startFaultProxy({ target: { host: '127.0.0.1', port: node.grpc.port } })
  const rpc = `http://127.0.0.1:${node.rpc.port}`
  await using rig = await startRig({
    clock: systemClock,
    nodes: [{ name: 'localnet', rpc, grpc: `http://127.0.0.1:${grpc.port}` }],
  })
  const upstream = dropBlocks(rig.upstreams.shared, random, DROPPED_ONE_IN)
  const between = Math.max(4, Math.ceil((2 * slots) / kills))
  let restarts = 0
  let checks = 0
  let supervisor = await openSupervisor(engine, upstream, random)
  try {
    await hasGrown(supervisor, 5)
    for (let kill = 0; kill < kills; kill++) {
      await hasGrown(supervisor, randomInt(random, between + 1))
      if (await isCovered(engine, supervisor, rpc)) checks++
      const fault = randomInt(random, 12)
      if (fault === 0) {
        // An orderly restart, as by the operator.
        restarts += supervisor.status().restarts
        await supervisor[Symbol.asyncDispose]()
        supervisor = await openSupervisor(engine, upstream, random)
      } else if (fault === 1) await engine.injectFault()
      killSome(random, supervisor, grpc)
    }
    await hasGrown(supervisor, 8)
    restarts += supervisor.status().restarts
  } finally {
    await supervisor[Symbol.asyncDispose]()
  }
  assert.ok(restarts > 0, 'the database was never killed')
  assert.ok(checks > kills / 4, `coverage could be checked only ${checks} times`)
  const found = await engine.find()
  try {
    const compared = await compare(rpc, found)
    return `${compared}; ${restarts} restarts, ${upstream.dropped} blocks dropped from the stream, coverage correct ${checks} times`
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
  return superviseIngest(
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
  const target = randomInt(random, 3)
  if (target !== 0) stream.resetConnections()
  if (target !== 1) supervisor.store()?.kill()
}

/** Checks that the range of `coverage` has as many blocks as the chain, and all of their transactions. False when the engine did not respond. */
async function isCovered(engine: TruthEngine, supervisor: IngestSupervisor, rpc: string): Promise<boolean> {
  const reported = await engine.queryLive(
    supervisor,
    "SELECT from_slot, to_slot FROM coverage WHERE table_name = 'blocks'",
  )
  const [from, to] = (reported?.[0] ?? []).map(Number)
  if (from === undefined || to === undefined) return false
  // Read after coverage: rows may be ahead of coverage, coverage never ahead of rows.
  const within = `slot >= ${from} AND slot <= ${to}`
  const blocks = await engine.queryLive(supervisor, `SELECT count(*), sum(tx_count) FROM blocks WHERE ${within}`)
  const transactions = await engine.queryLive(supervisor, `SELECT count(*) FROM transactions WHERE ${within}`)
  if (blocks === undefined || transactions === undefined) return false
  const slots = await call<number[]>(rpc, 'getBlocks', [from, to, { commitment: 'confirmed' }])
  const [count, counted] = (blocks[0] ?? []).map(Number)
  const found = { blocks: count, transactions: Number(transactions[0]?.[0]) }
  assert.deepEqual(found, { blocks: slots.length, transactions: counted }, `coverage is ${from} to ${to}`)
  return true
}

async function compare(rpc: string, found: Finding): Promise<string> {
  const [from, to] = found.range
  const expected = await compareTables(await blocksOf(rpc, from, to), found)
  assert.ok(expected.blocks.length > 10 && expected.transactions.length > 50, 'the chain has blocks and transactions')
  const accounts = await compareAccounts(found, expected.account_activity)
  const count = Object.values(expected).reduce((sum, rows) => sum + rows.length, 0)
  return `${expected.blocks.length} blocks, ${count} rows and ${accounts} accounts are as in getBlock`
}

/** Checks that every table but `accounts` has exactly the rows of these blocks, and returns them. */
export async function compareTables(
  blocks: readonly ChainBlock[],
  found: Finding,
): Promise<Readonly<Record<TableName, readonly Row[]>>> {
  const expected = listRows([batchRowsOf(blocks, ROWS)])
  for (const table of TABLES.filter(({ name }) => name !== 'accounts')) {
    // The source and the commitment of a block differ between the two.
    const columns = table.columns.filter(({ name }) => name !== 'commitment' && name !== 'source')
    const indexes = columns.map(({ name }) => table.columns.findIndex((column) => column.name === name))
    const names = columns.map(({ name }) => name)
    const rows = (await found.rowsOf(table.name, names, found.range[1]))
      .map((row) => indexedRowText(columns, row))
      .toSorted()
    const expectedRows = expected[table.name]
      .map((row) =>
        indexedRowText(
          columns,
          indexes.map((index) => row[index]),
        ),
      )
      .toSorted()
    const different = rows.findIndex((row, at) => row !== expectedRows[at])
    assert.deepEqual([rows.length, rows[different]], [expectedRows.length, expectedRows[different]], table.name)
  }
  return expected
}

/**
 * getBlock returns no accounts, and a fetched block adds none. Each stored account has one row, with the balance after the last transaction of its
 * slot.
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
  assert.equal(new Set(rows.map(([pubkey]) => String(pubkey))).size, rows.length, 'an account has two rows')
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

/** The blocks of a range as a node's getBlock returns them. */
export async function blocksOf(rpc: string, from: number, to: number, commitment = 'confirmed'): Promise<ChainBlock[]> {
  const blocks: ChainBlock[] = []
  for (const slot of await call<number[]>(rpc, 'getBlocks', [from, to, { commitment }])) {
    const block = await call<unknown>(rpc, 'getBlock', [slot, { ...GET_BLOCK_CONFIG, commitment }])
    blocks.push(blockFromJson(slot, block))
  }
  return blocks
}

async function hasGrown(supervisor: IngestSupervisor, blocks: number): Promise<void> {
  const head = () => supervisor.status().ingest?.headSlot ?? 0
  const first = head()
  await until(`${blocks} more blocks are written`, () => head() >= first + blocks, GROW_MS).catch((cause: unknown) => {
    throw new Error(`ingest does not progress: ${JSON.stringify(supervisor.status())}`, { cause })
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
