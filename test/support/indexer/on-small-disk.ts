import { closeSync, ftruncateSync, openSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { makeTestChain } from '../../../src/indexer/ingest/test-blocks.ts'
import { batchRowsOf, listRows } from '../../../src/indexer/ingest/test-rows.ts'
import { TABLES } from '../../../src/indexer/schema.ts'
import { type StoreProcess, startStoreProcess } from '../../../src/indexer/store/process.ts'
import { catalogueOf, openDuckDatabase } from '../../../src/platform/db/duckdb.ts'
import type { ChainBlock } from '../../../src/solana/chain-block.ts'
import { geyserBytesOf } from '../../../src/solana/geyser/test-block.ts'

/** Report that the program prints as JSON. */
export type SmallDiskIndexerReport = {
  /** Batches that were refused on a full disk, and restarts of the database. */
  refused: number
  restarts: number
  /** Inconsistencies found; empty when there are none. */
  faults: string[]
}

const RESULTS = { heldBytesMax: 0, heldBytesPerSubscription: 0 }
const ROWS = { includeVotes: true, includeLogs: true }
const CHAIN = makeTestChain({ seed: 4, blocks: 40, transactionsPerBlock: 60 })
const BATCH = 4
const BLOCK_BYTES = 64 * 1024
/** Free blocks on the disk for each batch; undefined for enough. */
const FREE = [undefined, 4, 0, undefined, 8, 2, undefined, 1, 16, undefined] as const

/** Writes a chain into a database on a small disk that is sometimes full. The only argument is the folder on it. */
if (import.meta.main) {
  const folder = process.argv[2] ?? ''
  const path = join(folder, 'chain.duckdb')
  const report: SmallDiskIndexerReport = { refused: 0, restarts: 0, faults: [] }
  const filler = openSync(join(folder, 'filler'), 'w')
  const leaveFree = (blocks: number | undefined): void => {
    ftruncateSync(filler, 0)
    if (blocks === undefined) return
    const { bavail, bsize } = statfsSync(folder)
    const fill = Math.floor((bavail * bsize) / BLOCK_BYTES) - blocks
    for (let at = 0; at < fill; at++) writeSync(filler, Buffer.alloc(BLOCK_BYTES, 1), 0, BLOCK_BYTES, at * BLOCK_BYTES)
  }
  const open = () =>
    startStoreProcess({ path, memoryBytes: 256 * 1024 * 1024, threads: 1, rows: ROWS, results: RESULTS })

  let store = await open()
  for (const [at, free] of FREE.entries()) {
    const blocks = CHAIN.slice(at * BATCH, (at + 1) * BATCH)
    leaveFree(free)
    const isWritten = await write(store, blocks).then(
      () => true,
      () => false,
    )
    if (isWritten) continue
    report.refused++
    leaveFree(undefined)
    // As ingest does when a batch is refused: a new process, which continues after the last complete range.
    await store[Symbol.asyncDispose]()
    store = await open()
    report.restarts++
    const head = store.progress.ranges.at(-1)?.to ?? 0
    const [first, last] = [blocks[0] as ChainBlock, blocks.at(-1) as ChainBlock]
    // A commit that failed may have taken effect, but never partially.
    if (head !== first.parentSlot && head !== last.slot) report.faults.push(`batch ${at}: complete up to ${head}`)
    await write(store, blocks)
  }
  await store[Symbol.asyncDispose]()
  closeSync(filler)

  const expected = listRows([batchRowsOf(CHAIN, ROWS)])
  using database = await openDuckDatabase(path)
  using connection = await database.connect()
  for (const { name } of TABLES) {
    const [piece] = (await connection.run(`SELECT count(*) FROM ${catalogueOf(path)}.base.${name}`)).pieces()
    const count = Number(piece?.[0]?.[0])
    if (count !== expected[name].length) report.faults.push(`${name}: ${count} rows of ${expected[name].length}`)
  }
  process.stdout.write(JSON.stringify(report))
}

async function write(store: StoreProcess, blocks: readonly ChainBlock[]): Promise<void> {
  const [first, last] = [blocks[0] as ChainBlock, blocks.at(-1) as ChainBlock]
  for (const block of blocks) {
    const raw = { slot: block.slot, source: 'stream' as const, bytes: geyserBytesOf(block) }
    await store.ask({ kind: 'decode', id: block.slot, raw })
  }
  const range = { from: first.parentSlot + 1, to: last.slot }
  const name = `${range.from}-${range.to}:${last.blockhash}`
  const ids = blocks.map(({ slot }) => slot)
  await store.ask({ kind: 'write', ids, name, range, finalizedSlot: 0, tipSlot: range.to })
}
