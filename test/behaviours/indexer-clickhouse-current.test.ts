import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AsyncChdb } from 'chdb-wasm'
import { tableDdl, viewDdl } from '../../src/indexer/clickhouse/ddl.ts'
import { planStatements, revokeStatements, userStatements } from '../../src/indexer/clickhouse/provision.ts'
import { openClickHouseStore } from '../../src/indexer/clickhouse/store.ts'
import { TEST_PLAN, TEST_USER } from '../../src/indexer/clickhouse/test-provision.ts'
import { makeTestChain } from '../../src/indexer/ingest/test-blocks.ts'
import { batchOf, batchRowsOf, brokenRows, listRows } from '../../src/indexer/ingest/test-rows.ts'
import { TABLES } from '../../src/indexer/schema.ts'
import { delay, systemClock } from '../../src/platform/process/clock.ts'
import type { ChainBlock } from '../../src/solana/chain-block.ts'
import { startHttpOver } from '../support/indexer/clickhouse-http.ts'

/** The engine takes some seconds to start and up to two gigabytes while it runs. */
describe('the dialect of current servers, on ClickHouse 26.5 from npm', () => {
  let database: AsyncChdb
  before(async () => {
    const moduleUrl = new URL('./chdb.mjs', import.meta.resolve('chdb-wasm')).href
    database = await AsyncChdb.create({ moduleUrl: new URL(moduleUrl).pathname })
    for (const statement of [...tableDdl('chain', 'current'), ...viewDdl('chain', 'chain', 'current')])
      await run(statement)
  })
  after(() => database?.terminate())

  const run = async (statement: string): Promise<string> => (await database.query(statement, 'TabSeparated')).text()

  test('inserts of the writer are stored once for each token', async () => {
    const rows = listRows([batchRowsOf(makeTestChain({ seed: 9, blocks: 1, transactionsPerBlock: 10 }))])
    for (const table of TABLES.filter(({ name }) => rows[name].length > 0)) {
      const names = table.columns.map(({ name }) => name)
      const lines = rows[table.name].map((row) =>
        JSON.stringify(Object.fromEntries([...names.map((name, at) => [name, jsonValue(row[at])]), ['_version', 1]])),
      )
      const insert = (token: string): Promise<string> =>
        run(`INSERT INTO chain_base.${table.name} SETTINGS insert_deduplication_token = '${token}', async_insert = 0,
          input_format_parallel_parsing = 0 FORMAT JSONEachRow ${lines.join('\n')}`)
      for (let time = 0; time < 3; time++) await insert(`${table.name}:1`)
      const once = Number(await run(`SELECT count() FROM chain_base.${table.name}`))
      assert.equal(once, lines.length, table.name)
      // Another token is another insert; the view merges its rows by key.
      await insert(`${table.name}:2`)
      const seen = Number(await run(`SELECT count() FROM chain.${table.name}`))
      const keys = Number(await run(`SELECT uniqExact(${table.key.join(', ')}) FROM chain_base.${table.name}`))
      assert.equal(seen, keys, table.name)
    }
  })

  test('the progress alone makes blocks finalized, and coverage lists what is complete', async () => {
    const [slot] = (await run('SELECT max(slot) FROM chain.blocks')).trim().split('\n').map(Number)
    assert.equal(await run('SELECT commitment FROM chain.blocks'), 'confirmed\n')
    assert.equal(await run('SELECT * FROM chain.coverage'), '')
    await run(`INSERT INTO chain_base._progress (id, version, finalized_slot, tip_slot, from_slots, to_slots)
      VALUES (0, 1, ${slot}, ${(slot ?? 0) + 3}, [1, 900], [5, ${slot}])`)
    assert.equal(await run("SELECT count() FROM chain.blocks WHERE commitment = 'finalized'"), '1\n')
    assert.equal(
      await run(
        "SELECT from_slot, to_slot, lag_slots, open_gaps, missing_slots FROM chain.coverage WHERE table_name = 'blocks'",
      ),
      `900\t${slot}\t3\t1\t['6-899']\n`,
    )
  })

  test('the writer, over HTTP: a batch that is interrupted and repeated is stored once', async () => {
    await using http = await startHttpOver(run)
    await using store = await openClickHouseStore(
      { url: http.url, user: 'default', password: '', database: 'written' },
      { nowMs: () => systemClock.nowMs(), wait: (ms) => delay(systemClock, ms) },
    )
    const chain = makeTestChain({ seed: 5, blocks: 6, transactionsPerBlock: 5 })
    const batches = [batchOf(chain.slice(0, 3)), batchOf(chain.slice(3))]
    const slots = () => run('SELECT slot FROM written_base.blocks ORDER BY slot')
    const all = chain.map(({ slot }) => `${slot}\n`).join('')
    for (const batch of batches) await store.write(batch)
    assert.equal(await slots(), all)
    const [, second] = batches
    assert.ok(second !== undefined)
    // An interrupted batch, then the same again: the server recognises the rows of its first tables by their tokens.
    const next = { ...second, name: 'next', range: { from: second.range.to + 1, to: second.range.to + 1 } }
    const rows = [batchRowsOf([{ ...(chain[0] as ChainBlock), slot: next.range.from, transactions: [] }])]
    for (let time = 0; time < 2; time++) await assert.rejects(store.write({ ...next, rows: [...rows, brokenRows()] }))
    await store.write({ ...next, rows })
    assert.equal(await slots(), `${all}${next.range.from}\n`)
    assert.deepEqual((await store.progress()).ranges, [{ from: batches[0]?.range.from, to: next.range.to }])
  })

  test('the parser accepts the statements that create and drop accounts', async () => {
    const statements = [
      ...planStatements(TEST_PLAN),
      ...userStatements(TEST_USER),
      ...revokeStatements(TEST_USER.username),
    ]
    for (const statement of statements) {
      const quoted = statement.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
      assert.notEqual(await run(`SELECT formatQuery('${quoted}')`), '', statement)
    }
    await assert.rejects(run("SELECT formatQuery('CREATE USER u_a IDENTIFIED WITH nothing BY 1')"))
  })

  test('the only user of this engine may not create accounts, so their effect is not tested here', async () => {
    for (const statement of planStatements(TEST_PLAN).filter((text) => text.startsWith('CREATE')))
      await assert.rejects(run(statement), /Code: 497/, statement)
  })

  test('the settings of a plan exist', async () => {
    const profile = planStatements(TEST_PLAN).find((statement) => statement.startsWith('ALTER SETTINGS PROFILE')) ?? ''
    const names = [...profile.matchAll(/(?:SETTINGS|,) (\w+) =/g)].map(([, name]) => name)
    assert.ok(names.length > 10)
    const known = await run(
      `SELECT count() FROM system.settings WHERE name IN (${names.map((name) => `'${name}'`).join()})`,
    )
    assert.equal(Number(known), names.length)
  })
})

function jsonValue(value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
