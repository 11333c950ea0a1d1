import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { createRandom, seedsOf } from '../../../test/support/process/property.ts'
import { type DuckDatabase, openDuckDatabase } from '../../platform/db/duckdb.ts'
import { type AccountStates, accountBatchOf, accountHistory, accountStatesAfter } from '../ingest/test-accounts.ts'
import { brokenRows } from '../ingest/test-rows.ts'
import { deleteRepeated, replaceAccounts } from './accounts-before.ts'
import { recentRowsMaxOf } from './settled-accounts.ts'
import { openDuckStore } from './store.ts'
import { replaceInConnections } from './test-connections.ts'
import { openQueryDatabase } from './test-queries.ts'

async function read(database: DuckDatabase, sql: string): Promise<unknown[][]> {
  using connection = await database.connect()
  const rows: unknown[][] = []
  for (const columns of (await connection.run(sql)).pieces())
    columns[0]?.forEach((_, at) => rows.push(columns.map((column) => column[at])))
  return rows
}

async function stateOf(database: DuckDatabase): Promise<AccountStates> {
  const rows = await read(database, 'SELECT pubkey, slot, lamports FROM base._accounts_now ORDER BY pubkey, slot')
  const state: Record<string, readonly [number, number]> = {}
  for (const [key, slot, balance] of rows) state[String(key)] = [Number(slot), Number(balance)]
  assert.equal(Object.keys(state).length, rows.length, 'an account has one row')
  return state
}

async function keptIn(database: DuckDatabase): Promise<number> {
  return Number((await read(database, 'SELECT count(*) FROM base._accounts_before'))[0]?.[0])
}

async function openMemory(options: Parameters<typeof openDuckStore>[2] = {}) {
  const database = await openDuckDatabase(':memory:')
  return { database, store: await openDuckStore(database, () => 0, options) }
}

describe('accounts of a block that is replaced', () => {
  test('have the state of the blocks before it', async () => {
    const { database, store } = await openMemory()
    using _ = database
    await store.write(accountBatchOf([{ slot: 10, balances: { a: 100, b: 1 } }]))
    await store.write(accountBatchOf([{ slot: 11, balances: { a: 50, c: 5 } }]))
    await store.write(accountBatchOf([{ slot: 11, balances: { b: 2 } }], { rewindFrom: 11 }))
    assert.deepEqual(await stateOf(database), { a: [10, 100], b: [11, 2] })
  })

  test('have it after a dead slot, and after several slots', async () => {
    const { database, store } = await openMemory()
    using _ = database
    for (const slot of [10, 11, 12, 13]) await store.write(accountBatchOf([{ slot, balances: { a: slot * 10 } }]))
    await store.rewind(13)
    assert.deepEqual(await stateOf(database), { a: [12, 120] })
    await store.write(accountBatchOf([{ slot: 14, balances: { a: 7 } }]))
    await store.rewind(11)
    assert.deepEqual(await stateOf(database), { a: [10, 100] })
    await store.rewind(10)
    assert.deepEqual(await stateOf(database), {})
  })

  test('have it where the blocks are parts of one batch', async () => {
    const { database, store } = await openMemory()
    using _ = database
    await store.write(accountBatchOf([{ slot: 9, balances: { a: 9 } }]))
    await store.write(
      accountBatchOf([10, 11, 12].map((slot) => ({ slot, balances: { a: slot * 10, [`only${slot}`]: 1 } }))),
    )
    await store.write(accountBatchOf([{ slot: 12, balances: {} }], { rewindFrom: 12 }))
    assert.deepEqual(await stateOf(database), { a: [11, 110], only10: [10, 1], only11: [11, 1] })
    await store.rewind(10)
    assert.deepEqual(await stateOf(database), { a: [9, 9] })
  })

  test('have it after a restart, and in a file of a version that had no earlier states', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-accounts-'))
    try {
      const file = join(folder, 'data.duckdb')
      {
        using database = await openDuckDatabase(file)
        await using store = await openDuckStore(database, () => 0)
        await store.write(accountBatchOf([{ slot: 10, balances: { a: 100 } }]))
        using connection = await database.connect()
        await connection.run('DROP TABLE base._accounts_before')
      }
      {
        using database = await openDuckDatabase(file)
        await using store = await openDuckStore(database, () => 0)
        await store.write(accountBatchOf([{ slot: 11, balances: { a: 50 } }]))
      }
      using database = await openDuckDatabase(file)
      await using store = await openDuckStore(database, () => 0)
      await store.rewind(11)
      assert.deepEqual(await stateOf(database), { a: [10, 100] })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('have it after a batch that failed, and one that was written twice', async () => {
    const { database, store } = await openMemory()
    using _ = database
    await store.write(accountBatchOf([{ slot: 10, balances: { a: 100 } }]))
    const next = accountBatchOf([11, 12].map((slot) => ({ slot, balances: { a: slot } })))
    await assert.rejects(store.write({ ...next, rows: [...next.rows, brokenRows()] }))
    assert.equal(await keptIn(database), 0)
    await store.write(next)
    await store.write(next)
    assert.equal(await keptIn(database), 2)
    await store.rewind(12)
    assert.deepEqual(await stateOf(database), { a: [11, 11] })
    await store.rewind(11)
    assert.deepEqual(await stateOf(database), { a: [10, 100] })
    assert.equal(await keptIn(database), 0)
  })
})

describe('earlier states of accounts', () => {
  test('are kept until the block that replaced them is final', async () => {
    const { database, store } = await openMemory()
    using _ = database
    for (let slot = 10; slot < 60; slot++)
      await store.write(accountBatchOf([{ slot, balances: { a: slot } }], { finalizedSlot: slot - 5 }))
    assert.equal(await keptIn(database), 5)
    await store.write(accountBatchOf([{ slot: 60, balances: { a: 60 } }], { finalizedSlot: 60 }))
    assert.equal(await keptIn(database), 0)
    assert.deepEqual(await stateOf(database), { a: [60, 60] })
  })

  test('are not visible to customers', async () => {
    using opened = await openQueryDatabase()
    for (const table of ['_accounts_before', 'base._accounts_before', 'solana._accounts_before'])
      await assert.rejects(opened.ask(`SELECT * FROM ${table}`), { name: 'QueryError' })
    const { body } = await opened.ask("SELECT count() FROM system.tables WHERE name LIKE '%before%'")
    assert.equal(body.toString(), '["0"]\n')
  })

  test('after any history the accounts are those of the blocks that remain', async (t) => {
    for (const seed of seedsOf(t, { short: 6, full: 200 })) {
      const random = createRandom(seed)
      const recentRowsMax = [1, 3, 9, 1000][seed % 4] as number
      const { database, store } = await openMemory({ recentRowsMaxOf: () => recentRowsMax })
      using _ = database
      let at = 0
      for (const step of accountHistory(random, { steps: 25 })) {
        if (step.kind === 'rewind') await store.rewind(step.fromSlot)
        else await store.write(step.batch)
        const expected = accountStatesAfter(step.chain)
        assert.deepEqual(await stateOf(database), expected, `SLUICE_SEEDS=${seed}-${seed}, step ${at++}`)
      }
    }
  })
})

describe('the accounts table', () => {
  test('is not read to write a batch', async () => {
    const { database, store } = await openMemory()
    using _ = database
    const batch = accountBatchOf([10, 11].map((slot) => ({ slot, balances: { a: slot, b: 2 } })))
    await store.write(batch)
    const statements = [...deleteRepeated(batch), ...replaceAccounts(batch)]
    assert.equal(statements.length, 4)
    for (const statement of statements) {
      const [explained] = await read(database, `EXPLAIN ${statement}`)
      // The names of tables are broken over lines.
      const plan = String(explained?.[1]).replaceAll(/[^\w.]/g, '')
      assert.match(plan, /base\._accounts_/)
      assert.doesNotMatch(plan, /base\.accounts/, statement)
    }
  })

  test('gets the final states once there are many of them, each account once', async () => {
    const { database, store } = await openMemory({ recentRowsMaxOf: () => 4 })
    using _ = database
    const counts = async () =>
      (
        await read(
          database,
          'SELECT (SELECT count(*) FROM base.accounts), (SELECT count(*) FROM base._accounts_recent)',
        )
      )
        .flat()
        .map(Number)
    // Written again and again, an account counts once.
    for (let slot = 10; slot < 20; slot++)
      await store.write(accountBatchOf([{ slot, balances: { a: slot, b: slot } }], { finalizedSlot: slot }))
    assert.deepEqual(await counts(), [0, 2])
    await store.write(accountBatchOf([{ slot: 20, balances: { c: 1, d: 1 } }], { finalizedSlot: 19 }))
    assert.deepEqual(await counts(), [0, 4])
    await store.write(accountBatchOf([{ slot: 21, balances: { e: 1, f: 1 } }], { finalizedSlot: 20 }))
    assert.deepEqual(await counts(), [4, 2])
    await store.write(accountBatchOf([{ slot: 22, balances: { a: 22 } }], { finalizedSlot: 20 }))
    assert.deepEqual(await stateOf(database), {
      a: [22, 22],
      b: [19, 19],
      c: [20, 1],
      d: [20, 1],
      e: [21, 1],
      f: [21, 1],
    })
    await store.rewind(21)
    assert.deepEqual(await stateOf(database), { a: [19, 19], b: [19, 19], c: [20, 1], d: [20, 1] })
  })

  describe('after a version without recent states has written to it', () => {
    const valuesOf = (key: string, slot: number, version: number, lamports: number): string =>
      `('${key}', 'o', ${slot}, ${version}, ${lamports}, false, 0, '', '')`

    test('has its newer states, and recent ones that are newer still', async () => {
      const { database, store } = await openMemory()
      using _ = database
      const balances = { older: 1, same: 5, newer: 1 }
      await store.write(accountBatchOf([{ slot: 10, balances }], { finalizedSlot: 10 }))
      using connection = await database.connect()
      const written = [valuesOf('older', 11, 0, 2), valuesOf('same', 10, 6, 6), valuesOf('newer', 9, 9, 9)]
      await connection.run(`INSERT INTO base.accounts VALUES ${written.join()}`)
      const expected = { newer: [10, 1], older: [11, 2], same: [10, 6] }
      const next = await openDuckStore(database, () => 0, { recentRowsMaxOf: () => 0 })
      assert.deepEqual(await stateOf(database), expected)
      await next.write(accountBatchOf([{ slot: 12, balances: { last: 1 } }], { finalizedSlot: 12 }))
      assert.deepEqual(await stateOf(database), { last: [12, 1], ...expected })
      assert.deepEqual(await read(database, 'SELECT count(*) FROM base._accounts_recent'), [[0n]])
    })
  })

  test('stays as it is when a move fails, which is reported, and a later move succeeds', async () => {
    using database = await openDuckDatabase(':memory:')
    let failures = 1
    const failing = replaceInConnections(database, (connection) => ({
      async run(sql, params) {
        if (sql.includes('INSERT INTO base.accounts') && failures-- > 0)
          throw new Error('Out of Memory Error: no space')
        return connection.run(sql, params)
      },
    }))
    const reported: unknown[] = []
    await using store = await openDuckStore(failing, () => 0, {
      recentRowsMaxOf: () => 1,
      onMoveFailed: (error) => reported.push(String(error)),
    })
    for (const slot of [10, 11]) {
      await store.write(accountBatchOf([{ slot, balances: { [`k${slot}`]: 1 } }], { finalizedSlot: slot }))
      assert.deepEqual(reported, ['Error: Out of Memory Error: no space'])
    }
    assert.deepEqual(await read(database, 'SELECT count(*) FROM base.accounts'), [[2n]])
  })

  test('has its keys uncompressed, because every query reads them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-accounts-'))
    try {
      using database = await openDuckDatabase(join(folder, 'data.duckdb'))
      await using _ = await openDuckStore(database, () => 0)
      using connection = await database.connect()
      const values = `lower(md5(range::VARCHAR)), 'o', range, range, 0, false, 0, '', ''`
      await connection.run(`INSERT INTO base.accounts SELECT ${values} FROM range(50000); CHECKPOINT`)
      const kinds = `SELECT DISTINCT compression FROM pragma_storage_info('base.accounts')
        WHERE column_name = 'pubkey' AND segment_type = 'VARCHAR'`
      assert.deepEqual(await read(database, kinds), [['Uncompressed']])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('is read by a move, whose cost for a batch grows with the root of its rows', () => {
    const moved = [0, 1e6, 1e8].map(recentRowsMaxOf)
    assert.deepEqual(
      moved.map((rows) => Math.round(rows / 1000)),
      [66, 66, 640],
    )
  })
})
