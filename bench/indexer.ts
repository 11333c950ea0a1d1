/**
 * Rows a second into the embedded engine, from geyser blocks as bytes to committed transactions, all tables on; and the same while customers run
 * the worst queries they may. Usage: node bench/indexer.ts [blocks=400] [transactions=500]
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addBlockRows, emptyRows } from '../src/indexer/block-rows.ts'
import { type StoreProcess, startStoreProcess } from '../src/indexer/store-process.ts'
import { makeTestChain } from '../src/indexer/test-blocks.ts'
import type { ChainBlock } from '../src/solana/chain-block.ts'
import { geyserBytesOf } from '../src/solana/test-geyser-block.ts'

const [blocks = 400, transactions = 500] = process.argv.slice(2).map(Number)
const BATCH = 8
const ROWS = { includeVotes: true, includeLogs: true }
const WORST = 'SELECT count(*) FROM transactions a, transactions b, transactions c WHERE a.fee + b.fee + c.fee = 1'

const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const GOAL_ROWS = 100_000
const GOAL_SHARE = 0.8
try {
  const chain = makeTestChain({ seed: 1, blocks, transactionsPerBlock: transactions })
  const raw = chain.map((block) => ({ slot: block.slot, source: 'stream' as const, bytes: geyserBytesOf(block) }))
  const rows = emptyRows()
  for (const block of chain.slice(0, 4)) addBlockRows(rows, block, { commitment: 'confirmed', source: 'stream' }, ROWS)
  const rowsPerBlock = Object.values(rows).reduce((sum, table) => sum + table.length, 0) / 4

  await using store = await startStoreProcess({
    path: join(folder, 'chain.duckdb'),
    memoryBytes: 2 ** 31,
    threads: 2,
    rows: ROWS,
  })
  const half = Math.floor(blocks / 2)
  const alone = await ingest(store, chain.slice(0, half), raw.slice(0, half))
  const asking = keepAsking(store, 8)
  const beside = await ingest(store, chain.slice(half), raw.slice(half))
  asking.stop()
  await asking.ended
  const aloneRows = (alone.blocks * rowsPerBlock) / alone.seconds
  const besideRows = (beside.blocks * rowsPerBlock) / beside.seconds
  report('ingest', {
    rows_per_second: aloneRows,
    transactions_per_second: (alone.blocks * transactions) / alone.seconds,
    cpu_us_per_transaction: (alone.cpuSeconds * 1e6) / (alone.blocks * transactions),
    goal: GOAL_ROWS,
  })
  report('ingest beside 8 worst queries', {
    rows_per_second: besideRows,
    ratio: besideRows / aloneRows,
    goal: GOAL_SHARE,
  })
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function ingest(
  store: StoreProcess,
  part: readonly ChainBlock[],
  raw: readonly { slot: number; source: 'stream'; bytes: Uint8Array }[],
): Promise<{ blocks: number; seconds: number; cpuSeconds: number }> {
  const startedMs = performance.now()
  const cpuBefore = cpuSecondsOf(store)
  for (let from = 0; from < part.length; from += BATCH) {
    const ids = raw.slice(from, from + BATCH).map((_, at) => (part[from] as ChainBlock).slot * 1000 + at)
    await Promise.all(
      raw.slice(from, from + BATCH).map((one, at) => store.ask({ kind: 'decode', id: ids[at] as number, raw: one })),
    )
    const piece = part.slice(from, from + BATCH)
    const range = { from: (piece[0] as ChainBlock).parentSlot + 1, to: (piece.at(-1) as ChainBlock).slot }
    await store.ask({
      kind: 'write',
      ids,
      name: `${range.from}-${range.to}`,
      range,
      finalizedSlot: 0,
      tipSlot: range.to,
    })
  }
  return {
    blocks: part.length,
    seconds: (performance.now() - startedMs) / 1000,
    cpuSeconds: cpuSecondsOf(store) - cpuBefore,
  }
}

function keepAsking(store: StoreProcess, count: number): { stop(): void; ended: Promise<unknown> } {
  let isStopped = false
  const limits = { secondsMax: 2, rowsMax: 1000, bytesMax: 1_000_000 }
  const one = async (customer: number): Promise<void> => {
    for (let at = 0; !isStopped; at++) {
      await store.ask({
        kind: 'query',
        id: customer * 10_000 + at,
        job: { query: WORST, parameters: {}, defaultFormat: 'JSON', settings: {}, limits },
      })
    }
  }
  return {
    stop: () => void (isStopped = true),
    ended: Promise.all(Array.from({ length: count }, (_, at) => one(at + 1))),
  }
}

/** User and system time of the database process so far. */
function cpuSecondsOf({ pid }: StoreProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

function report(path: string, figures: Record<string, number>): void {
  const rounded = Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [name, Number(value.toPrecision(4))]),
  )
  process.stdout.write(`${JSON.stringify({ bench: 'indexer', path, ...rounded })}\n`)
}
