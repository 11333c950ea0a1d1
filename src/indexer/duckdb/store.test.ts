import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type DuckConnection, type DuckDatabase, openDuckDatabase } from '../../platform/db/duckdb.ts'
import type { ChainBlock } from '../../solana/chain-block.ts'
import { makeTestChain } from '../ingest/test-blocks.ts'
import { batchOf, brokenRows, listRows } from '../ingest/test-rows.ts'
import { TABLES } from '../schema.ts'
import type { WriteBatch } from '../store/store.ts'
import { openDuckStore } from './store.ts'
import { replaceInConnections } from './test-connections.ts'

const CHAIN = makeTestChain({ seed: 7, blocks: 40, transactionsPerBlock: 20 })

describe('the embedded store', () => {
  test('a batch that is written several times is stored once', async () => {
    using database = await openDuckDatabase(':memory:')
    await using store = await openDuckStore(database, () => 1_800_000_000_000)
    const halves = [batchOf(CHAIN.slice(0, 20)), batchOf(CHAIN.slice(20))]
    for (const batch of [...halves, ...halves, halves[0] as WriteBatch]) await store.write(batch)
    const complete = batchOf(CHAIN)
    const counts = await countsOf(database)
    for (const { name } of TABLES) assert.equal(counts[name], listRows(complete.rows)[name].length, name)
    const { ranges, recent } = await store.progress()
    assert.deepEqual(ranges, [complete.range])
    assert.deepEqual(recent.at(-1), { slot: CHAIN.at(-1)?.slot, blockhash: CHAIN.at(-1)?.blockhash })
    assert.equal(recent.length, CHAIN.length)
  })

  test('values are read as they were written', async () => {
    using database = await openDuckDatabase(':memory:')
    await using store = await openDuckStore(database, () => 0)
    const batch = batchOf(CHAIN.slice(0, 3))
    await store.write(batch)
    using connection = await database.connect()
    for (const { name, columns, key } of TABLES) {
      const found = await rowsOf(connection, `SELECT * FROM base.${name} ORDER BY ${key.join(', ')}`)
      const at = key.map((column) => columns.findIndex((each) => each.name === column))
      const given = listRows(batch.rows)[name].toSorted((a, b) =>
        compare(
          at.map((i) => a[i]),
          at.map((i) => b[i]),
        ),
      )
      assert.deepEqual(found.map(comparable), given.map(comparable), name)
    }
  })

  test('a rewind deletes all rows of the blocks from its slot on', async () => {
    using database = await openDuckDatabase(':memory:')
    await using store = await openDuckStore(database, () => 0)
    await store.write(batchOf(CHAIN))
    const cut = CHAIN[25] as ChainBlock
    await store.rewind(cut.slot)
    const rest = batchOf(CHAIN.slice(0, 25))
    const counts = await countsOf(database)
    for (const { name } of TABLES) assert.equal(counts[name], listRows(rest.rows)[name].length, name)
    assert.deepEqual((await store.progress()).ranges, [{ from: rest.range.from, to: cut.slot - 1 }])
  })

  test('blocks of a fork are replaced in one transaction: a failed one leaves the old blocks, a repeated one changes nothing', async () => {
    using database = await openDuckDatabase(':memory:')
    await using store = await openDuckStore(database, () => 0)
    await store.write(batchOf(CHAIN))
    const [cut, last] = [CHAIN[25] as ChainBlock, CHAIN[27] as ChainBlock]
    // Other transactions in three of the slots; the slots after them are not part of the fork.
    const other = CHAIN.slice(25, 28).map((block) => ({
      ...block,
      blockhash: `${block.blockhash}x`,
      transactions: block.transactions.slice(0, 4),
    }))
    const fork = { ...batchOf(other), rewindFrom: cut.slot, range: { from: cut.slot, to: last.slot } }
    await assert.rejects(store.write({ ...fork, rows: [...fork.rows, brokenRows()] }))
    const before = batchOf(CHAIN)
    assert.deepEqual((await store.progress()).ranges, [before.range])
    for (const [name, count] of Object.entries(await countsOf(database)))
      assert.equal(count, listRows(before.rows)[name as 'blocks'].length, name)
    for (let times = 0; times < 2; times++) {
      await store.write(fork)
      const after = batchOf([...CHAIN.slice(0, 25), ...other])
      assert.deepEqual((await store.progress()).ranges, [{ from: before.range.from, to: last.slot }])
      for (const [name, count] of Object.entries(await countsOf(database)))
        assert.equal(count, listRows(after.rows)[name as 'blocks'].length, name)
    }
  })

  test('blocks become finalized, and coverage lists what is complete', async () => {
    using database = await openDuckDatabase(':memory:')
    await using store = await openDuckStore(database, () => 0)
    await store.write(batchOf(CHAIN.slice(0, 5)))
    await store.write(batchOf(CHAIN.slice(10, 20), { finalizedSlot: CHAIN[3]?.slot ?? 0 }))
    using connection = await database.connect()
    const final = await rowsOf(connection, `SELECT slot FROM base.blocks WHERE commitment = 'finalized' ORDER BY slot`)
    assert.deepEqual(
      final.map(([slot]) => Number(slot)),
      CHAIN.slice(0, 4).map(({ slot }) => slot),
    )
    const coverage = await rowsOf(
      connection,
      'SELECT table_name, from_slot, to_slot, open_gaps, lag_slots FROM base.coverage',
    )
    assert.equal(coverage.length, TABLES.length)
    for (const row of coverage) {
      assert.deepEqual(row.slice(1).map(Number), [(CHAIN[10] as ChainBlock).parentSlot + 1, CHAIN[19]?.slot, 1, 0])
    }
  })

  test('a checkpoint runs after 128 batches and calls onCheckpoint', async () => {
    using database = await openDuckDatabase(':memory:')
    let checkpoints = 0
    await using store = await openDuckStore(database, () => 0, { onCheckpoint: async () => void checkpoints++ })
    const blocks = makeTestChain({ seed: 8, blocks: 129, transactionsPerBlock: 0 })
    for (const block of blocks.slice(0, 127)) await store.write(batchOf([block]))
    assert.equal(checkpoints, 0)
    for (const block of blocks.slice(127)) await store.write(batchOf([block]))
    assert.equal(checkpoints, 1)
  })

  test('a checkpoint runs as soon as the texts in the log have logTextBytesMax', async () => {
    using database = await openDuckDatabase(':memory:')
    const batches = CHAIN.slice(0, 8).map((block) => batchOf([block]))
    const bytes = batches.map(({ rows }) => rows.reduce((sum, { texts }) => sum + texts.packed().bytes.length, 0))
    const logTextBytesMax = bytes.slice(0, 3).reduce((sum, each) => sum + each, 0)
    const checkpointsAfter: number[] = []
    let checkpoints = 0
    const onCheckpoint = async (): Promise<void> => void checkpoints++
    await using store = await openDuckStore(database, () => 0, { onCheckpoint, logTextBytesMax })
    for (const batch of batches.slice(0, 4)) {
      await store.write(batch)
      checkpointsAfter.push(checkpoints)
    }
    assert.deepEqual(checkpointsAfter, [0, 0, 1, 1])
  })

  test('a batch that fails leaves no rows', async () => {
    using database = await openDuckDatabase(':memory:')
    await using store = await openDuckStore(database, () => 0)
    const good = batchOf(CHAIN.slice(0, 10))
    const next = batchOf(CHAIN.slice(10, 20))
    const broken = { ...next, rows: [...next.rows, brokenRows()] }
    await store.write(good)
    await assert.rejects(store.write(broken))
    const counts = await countsOf(database)
    for (const { name } of TABLES) assert.equal(counts[name], listRows(good.rows)[name].length, name)
    await store.write(next)
    assert.equal((await countsOf(database))['blocks'], 20)
  })

  test('a COMMIT that fails after it took effect counts as written', async () => {
    using database = await openDuckDatabase(':memory:')
    let failures = 1
    const failing = replaceInConnections(database, (connection) => ({
      async prepareHere(sql) {
        const run = await connection.prepareHere(sql)
        return async () => {
          await run()
          if (failures-- > 0) throw new Error('Out of Memory Error: after the fact')
        }
      },
    }))
    await using store = await openDuckStore(failing, () => 0)
    await store.write(batchOf(CHAIN.slice(0, 20)))
    await store.write(batchOf(CHAIN.slice(20)))
    assert.deepEqual((await store.progress()).ranges, [batchOf(CHAIN).range])
    assert.equal((await countsOf(database))['blocks'], CHAIN.length)
  })
})

async function countsOf(database: DuckDatabase): Promise<Record<string, number>> {
  using connection = await database.connect()
  const counts: Record<string, number> = {}
  for (const { name } of TABLES) {
    const [row] = await rowsOf(connection, `SELECT count(*) FROM base.${name}`)
    counts[name] = Number(row?.[0])
  }
  return counts
}

async function rowsOf(connection: DuckConnection, sql: string): Promise<unknown[][]> {
  const rows: unknown[][] = []
  for (const columns of (await connection.run(sql)).pieces()) {
    columns[0]?.forEach((_, at) => rows.push(columns.map((column) => column[at])))
  }
  return rows
}

/** Values in one representation: numbers as strings, lists as arrays, times as seconds. */
function comparable(row: readonly unknown[]): unknown[] {
  return row.map((value) => {
    if (typeof value === 'bigint' || typeof value === 'number') return String(value)
    if (typeof value !== 'object' || value === null) return value
    if ('items' in value) return value.items
    return 'seconds' in value ? String(value.seconds) : value
  })
}

function compare(a: readonly unknown[], b: readonly unknown[]): number {
  for (let at = 0; at < a.length; at++) {
    const [x, y] = [a[at] as string | number, b[at] as string | number]
    if (x !== y) return x < y ? -1 : 1
  }
  return 0
}

test('coverage has the times of its first and last block, without reading those between', async () => {
  using database = await openDuckDatabase(':memory:')
  await using _ = await openDuckStore(database, () => 0)
  using connection = await database.connect()
  const last = 2_000_000
  for (const statement of [
    `INSERT INTO base.blocks SELECT range, make_timestamp((range::BIGINT + 1) * 1000000), 0, '', 0, '', '', 0, 0, '', '' FROM range(1, ${last} + 1)`,
    // Blocks between whose times are beyond both: they would be seen if they were read.
    'UPDATE base.blocks SET block_time = make_timestamp(9000000000000000) WHERE slot = 1000000',
    'UPDATE base.blocks SET block_time = make_timestamp(1000000) WHERE slot = 1000001',
    `INSERT INTO base._ranges VALUES (1, ${last})`,
  ])
    await connection.run(statement)
  const [piece] = (
    await connection.run('SELECT epoch(from_time)::BIGINT, epoch(to_time)::BIGINT FROM base.coverage LIMIT 1')
  ).pieces()
  assert.deepEqual(
    piece?.map(([value]) => Number(value)),
    [2, last + 1],
  )
})
