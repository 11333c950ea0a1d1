/**
 * Measures the indexer; each figure is one line of JSON: rows per second into the embedded engine, from geyser blocks as bytes to committed
 * transactions in all tables; the same while customers run the worst queries; the query pack beside ingest; a short query beside four results of a
 * million rows; results of ten million rows in several formats, and ingest beside one; and the query pack on the embedded engine, on Debian's PostgreSQL and on Debian's ClickHouse over the same rows.
 * Usage: node bench/indexer.ts [ingest] [fair] [results] [pack] [blocks=200] [transactions=500]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EXAMPLE_QUERIES } from '../src/indexer/example-queries.ts'
import { makeTestChain } from '../src/indexer/ingest/test-blocks.ts'
import { batchRowsOf, listRows } from '../src/indexer/ingest/test-rows.ts'
import { type StoreProcess, startStoreProcess } from '../src/indexer/store/process.ts'
import type { ChainBlock } from '../src/solana/chain-block.ts'
import { geyserBytesOf } from '../src/solana/geyser/test-block.ts'
import { packValues } from '../test/support/indexer/pack.ts'
import { comparePack } from './support/indexer-pack.ts'
import { cpuSecondsOf, measureResult } from './support/indexer-results.ts'

const ROWS = { includeVotes: true, includeLogs: true }
const WORST = 'SELECT count(*) FROM transactions a, transactions b, transactions c WHERE a.fee + b.fee + c.fee = 1'
const CUSTOMERS = 8
const BATCH = 8
const GOAL_ROWS = 100_000
const GOAL_SHARE = 0.8
const RESULT_ROWS = 10_000_000
const RESULT_FORMATS = ['JSONEachRow', 'RowBinary', 'Native', 'Parquet', 'ArrowStream']
/** Resident memory of either process above its size before. */
const GOAL_BYTES = 64 * 1024 * 1024
/** Enough for some seconds on each engine; loading the two servers takes most of the time. */
const PACK_BLOCKS = 48

const parts = process.argv.slice(2).filter((argument) => !/^\d+$/.test(argument))
const [blocks = 200, transactions = 500] = process.argv
  .slice(2)
  .filter((argument) => /^\d+$/.test(argument))
  .map(Number)
const isSelected = (part: string): boolean => parts.length === 0 || parts.includes(part)

const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
try {
  if (isSelected('ingest')) await measureIngest()
  if (isSelected('fair')) await measureFairness()
  if (isSelected('results')) await measureResults()
  if (isSelected('pack'))
    await comparePack(makeTestChain({ seed: 2, blocks: PACK_BLOCKS, transactionsPerBlock: 500 }), folder, report)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function measureIngest(): Promise<void> {
  const chain = makeTestChain({ seed: 1, blocks, transactionsPerBlock: transactions })
  const sample = listRows([batchRowsOf(chain.slice(0, 4), ROWS)])
  const rowsPerBlock = Object.values(sample).reduce((sum, rows) => sum + rows.length, 0) / Math.min(4, chain.length)
  await using store = await startStoreProcess({
    path: join(folder, 'chain.duckdb'),
    memoryBytes: 2 ** 30,
    threads: 2,
    rows: ROWS,
    results: { heldBytesMax: 2 ** 28, heldBytesPerSubscription: 2 ** 26 },
  })
  // The first part is the warm-up, the second is measured alone, the third beside customers' queries, the fourth beside the query pack.
  const cuts = [0.15, 0.45, 0.75, 1].map((share) => Math.floor((share * blocks) / BATCH) * BATCH)
  const [warm = 0, half = 0, most = 0, end = 0] = cuts
  await ingest(store, chain.slice(0, warm))
  const alone = await ingest(store, chain.slice(warm, half))
  const asking = keepAsking(store, CUSTOMERS)
  const beside = await ingest(store, chain.slice(half, most))
  asking.stop()
  const queries = await asking.ended
  const aloneRows = (alone.blocks * rowsPerBlock) / alone.seconds
  const besideRows = (beside.blocks * rowsPerBlock) / beside.seconds
  const rows = alone.blocks * rowsPerBlock
  report('ingest', {
    rows_per_second: aloneRows,
    transactions_per_second: (alone.blocks * transactions) / alone.seconds,
    cpu_us_per_row: (alone.cpuSeconds * 1e6) / rows,
    cpu_us_per_transaction: (alone.cpuSeconds * 1e6) / (alone.blocks * transactions),
    parent_cpu_us_per_row: (alone.parentCpuSeconds * 1e6) / rows,
    rows_per_cpu_second: rows / (alone.cpuSeconds + alone.parentCpuSeconds),
    goal: GOAL_ROWS,
  })
  report(`ingest beside ${CUSTOMERS} worst queries`, {
    rows_per_second: besideRows,
    ratio: besideRows / aloneRows,
    queries,
    goal: GOAL_SHARE,
  })
  const values = packValues({ rows: [batchRowsOf(chain.slice(0, 4), ROWS)] })
  const packAlone = await timePack(store, values, () => false)
  let isOver = false
  const [packBeside] = await Promise.all([
    timePack(store, values, () => !isOver),
    ingest(store, chain.slice(most, end)).finally(() => (isOver = true)),
  ])
  report('query pack beside ingest at full speed', {
    slowest_ms: Math.max(...packBeside),
    slowest_ms_alone: Math.max(...packAlone),
    mean_ms: mean(packBeside),
    mean_ms_alone: mean(packAlone),
    queries: packBeside.length,
  })
}

/** Measures a count while four results of a million rows are formatted in the same process. */
async function measureFairness(): Promise<void> {
  await using store = await startStoreProcess({
    path: join(folder, 'fair.duckdb'),
    memoryBytes: 2 ** 29,
    threads: 2,
    rows: ROWS,
    results: { heldBytesMax: 2 ** 28, heldBytesPerSubscription: 2 ** 26 },
  })
  await ingest(store, makeTestChain({ seed: 1, blocks: 8, transactionsPerBlock: 200 }))
  const limits = { secondsMax: 120, rowsMax: 1_000_000, bytesMax: 2 ** 26 }
  let id = 0
  const ask = async (query: string): Promise<number> => {
    const startedMs = performance.now()
    const job = { query, parameters: {}, defaultFormat: 'JSONCompactEachRow', settings: {}, limits }
    const response = await store.ask({ kind: 'query', id: ++id, job, owner: String(id) })
    if (!response.ok) throw new Error(response.message)
    return performance.now() - startedMs
  }
  const short = 'SELECT count(*) FROM transactions'
  await ask(short)
  const aloneMs = await ask(short)
  const large = 'SELECT a.slot, b.fee, a.tx_index FROM transactions a, transactions b LIMIT 1000000'
  let isOver = false
  const larges = Promise.all([1, 2, 3, 4].map(() => ask(large))).finally(() => (isOver = true))
  const times: number[] = []
  while (!isOver) times.push(await ask(short))
  report('count(*) beside four results of a million rows', {
    slowest_ms: Math.max(...times),
    mean_ms: mean(times),
    alone_ms: aloneMs,
    large_ms: Math.max(...(await larges)),
  })
}

/** Measures results of ten million rows, and ingest while one of them is read. `SLUICE_BENCH_ROWS` gives another number of rows. */
async function measureResults(): Promise<void> {
  const rows = Number(process.env['SLUICE_BENCH_ROWS'] ?? RESULT_ROWS)
  await using store = await startStoreProcess({
    path: join(folder, 'results.duckdb'),
    memoryBytes: 2 ** 29,
    threads: 2,
    rows: ROWS,
    results: { heldBytesMax: 2 ** 28, heldBytesPerSubscription: 2 ** 26 },
  })
  const chain = makeTestChain({ seed: 1, blocks: 3 * BATCH + 16, transactionsPerBlock: 250 })
  await ingest(store, chain.slice(0, 16))
  const query = (format: string): string =>
    `SELECT a.slot, a.tx_index, b.fee, b.compute_units, a.block_time, b.success, a.signature FROM transactions a, transactions b, blocks c LIMIT ${rows} FORMAT ${format}`
  // The first run is the warm-up: it compiles the code and opens the file.
  await measureResult(store, { id: 1, query: query('Native').replace(String(rows), '100000'), rows })
  for (const [at, format] of RESULT_FORMATS.entries()) {
    const result = await measureResult(store, { id: at + 2, query: query(format), rows })
    report(`${rows} rows as ${format}`, {
      rows_per_second: rows / result.seconds,
      rows_per_cpu_second: rows / result.storeCpuSeconds,
      bytes: result.bytes,
      store_grown_bytes: result.storeGrownBytes,
      gateway_grown_bytes: result.gatewayGrownBytes,
      goal_bytes: GOAL_BYTES,
    })
  }
  const alone = await ingest(store, chain.slice(16, 16 + BATCH))
  const reading = measureResult(store, { id: 100, query: query('Native'), rows })
  const beside = await ingest(store, chain.slice(16 + BATCH))
  await reading
  const perSecond = ({ blocks: count, seconds }: Ingested): number => count / seconds
  report('ingest beside a result that is read', { ratio: perSecond(beside) / perSecond(alone), goal: GOAL_SHARE })
}

/** Milliseconds of each query of the pack. The pack runs at least once, and again while `isRepeated` holds. */
async function timePack(
  store: StoreProcess,
  parameters: Readonly<Record<string, string>>,
  isRepeated: () => boolean,
): Promise<number[]> {
  const limits = { secondsMax: 30, rowsMax: 1_000_000, bytesMax: 64_000_000 }
  const times: number[] = []
  do {
    for (const { sql: query } of EXAMPLE_QUERIES) {
      const startedMs = performance.now()
      const job = { query, parameters, defaultFormat: 'JSONCompact', settings: {}, limits }
      const response = await store.ask({ kind: 'query', id: -times.length - 1, job, owner: 'pack' })
      if (!response.ok) throw new Error(response.message)
      times.push(performance.now() - startedMs)
    }
  } while (isRepeated())
  return times
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

type Ingested = { blocks: number; seconds: number; cpuSeconds: number; parentCpuSeconds: number }

/** Decodes and writes blocks in batches, as ingest does. */
async function ingest(store: StoreProcess, part: readonly ChainBlock[]): Promise<Ingested> {
  const raws = part.map((block) => ({ slot: block.slot, source: 'stream' as const, bytes: geyserBytesOf(block) }))
  const startedMs = performance.now()
  const cpuBefore = cpuSecondsOf(store)
  const parentBefore = process.cpuUsage()
  for (let from = 0; from < part.length; from += BATCH) {
    const ids = raws.slice(from, from + BATCH).map(({ slot }) => slot)
    await Promise.all(raws.slice(from, from + BATCH).map((raw) => store.ask({ kind: 'decode', id: raw.slot, raw })))
    const [first, last] = [part[from], part[Math.min(from + BATCH, part.length) - 1]]
    const range = { from: (first?.parentSlot ?? 0) + 1, to: last?.slot ?? 0 }
    const name = `${range.from}-${range.to}`
    await store.ask({ kind: 'write', ids, name, range, finalizedSlot: 0, tipSlot: range.to })
  }
  const { user, system } = process.cpuUsage(parentBefore)
  return {
    blocks: part.length,
    seconds: (performance.now() - startedMs) / 1000,
    cpuSeconds: cpuSecondsOf(store) - cpuBefore,
    parentCpuSeconds: (user + system) / 1e6,
  }
}

function keepAsking(store: StoreProcess, count: number): { stop(): void; ended: Promise<number> } {
  let isStopped = false
  let asked = 0
  const limits = { secondsMax: 2, rowsMax: 1000, bytesMax: 1_000_000 }
  const job = { query: WORST, parameters: {}, defaultFormat: 'JSON', settings: {}, limits }
  const one = async (): Promise<void> => {
    while (!isStopped) await store.ask({ kind: 'query', id: ++asked, job, owner: 'worst' })
  }
  return {
    stop: () => void (isStopped = true),
    ended: Promise.all(Array.from({ length: count }, one)).then(() => asked),
  }
}

function report(path: string, figures: Readonly<Record<string, number | string>>): void {
  const rounded = Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [
      name,
      typeof value === 'number' ? Number(value.toPrecision(4)) : value,
    ]),
  )
  process.stdout.write(`${JSON.stringify({ bench: 'indexer', path, ...rounded })}\n`)
}
