import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureResult } from '../../bench/support/indexer-results.ts'
import { makeTestChain } from '../../src/indexer/ingest/test-blocks.ts'
import { startStoreProcess } from '../../src/indexer/store/process.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { geyserBytesOf } from '../../src/solana/geyser/test-block.ts'

/** `npm run bench indexer` measures ten million rows. */
const ROWS = process.env['SLUICE_FULL'] === '1' ? 2_000_000 : 250_000
const GROWN_BYTES_MAX = 64 * 1024 * 1024

test('a large result takes little memory in the gateway and in the database process', async (t) => {
  using folder = makeTestFolder()
  await using store = await startStoreProcess({
    path: folder.file('chain.duckdb'),
    memoryBytes: 2 ** 28,
    threads: 2,
    rows: { includeVotes: true, includeLogs: false },
    results: { heldBytesMax: 2 ** 23, heldBytesPerSubscription: 2 ** 23 },
  })
  const chain = makeTestChain({ seed: 1, blocks: 4, transactionsPerBlock: 100 })
  for (const block of chain)
    await store.ask({
      kind: 'decode',
      id: block.slot,
      raw: { slot: block.slot, source: 'stream', bytes: geyserBytesOf(block) },
    })
  const ids = chain.map(({ slot }) => slot)
  const range = { from: ids[0] ?? 0, to: ids.at(-1) ?? 0 }
  await store.ask({ kind: 'write', ids, name: 'all', range, finalizedSlot: 0, tipSlot: range.to })
  const sql =
    'SELECT a.slot, b.fee, a.signature, b.signature AS other FROM transactions a, transactions b, transactions c'
  const query = (format: string, rows: number): string => `${sql} LIMIT ${rows} FORMAT ${format}`
  await measureResult(store, { id: 1, query: query('Native', 50_000), rows: 50_000 })
  for (const [at, format] of ['RowBinary', 'Native', 'Parquet'].entries()) {
    const result = await measureResult(store, { id: at + 2, query: query(format, ROWS), rows: ROWS })
    t.diagnostic(`${format}: ${result.storeGrownBytes} and ${result.gatewayGrownBytes} bytes more`)
    assert.ok(result.bytes > ROWS * 180, format)
    assert.ok(result.storeGrownBytes < GROWN_BYTES_MAX, `${format}: ${result.storeGrownBytes} bytes`)
    assert.ok(result.gatewayGrownBytes < GROWN_BYTES_MAX, `${format}: ${result.gatewayGrownBytes} bytes`)
  }
})
