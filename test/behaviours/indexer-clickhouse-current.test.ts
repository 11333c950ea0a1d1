import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AsyncChdb } from 'chdb-wasm'
import { addBlockRows, emptyRows } from '../../src/indexer/block-rows.ts'
import { tableDdl, viewDdl } from '../../src/indexer/clickhouse-ddl.ts'
import { planStatements, revokeStatements, userStatements } from '../../src/indexer/clickhouse-provision.ts'
import { TABLES } from '../../src/indexer/schema.ts'
import { makeTestChain } from '../../src/indexer/test-blocks.ts'
import { TEST_PLAN, TEST_USER } from '../../src/indexer/test-provision.ts'

/** The engine takes about ten seconds to start and up to two gigabytes, so it belongs to the long form. */
const skip = process.env['SLUICE_FULL'] === '1' ? false : 'the newest engine from npm is started with SLUICE_FULL=1'

describe('the dialect of current servers, on ClickHouse 26.5 from npm', { skip }, () => {
  let database: AsyncChdb
  before(async () => {
    const moduleUrl = new URL('./chdb.mjs', import.meta.resolve('chdb-wasm')).href
    database = await AsyncChdb.create({ moduleUrl: new URL(moduleUrl).pathname })
    for (const statement of [...tableDdl('chain', 'current'), ...viewDdl('chain', 'chain', 'current')])
      await run(statement)
  })
  after(() => database?.terminate())

  const run = async (statement: string): Promise<string> => (await database.query(statement, 'TabSeparated')).text()

  test('tables keep what is sent as the writer sends it, once for each token', async () => {
    const rows = emptyRows()
    const [block] = makeTestChain({ seed: 9, blocks: 1, transactionsPerBlock: 10 })
    assert.ok(block !== undefined)
    addBlockRows(rows, block, { commitment: 'confirmed', source: 'stream' }, { includeVotes: true, includeLogs: true })
    for (const table of TABLES.filter(({ name }) => rows[name].length > 0)) {
      const names = table.columns.map(({ name }) => name)
      const lines = rows[table.name].map((row) =>
        JSON.stringify(Object.fromEntries([...names.map((name, at) => [name, plain(row[at])]), ['_version', 1]])),
      )
      const insert = (token: string): Promise<string> =>
        run(`INSERT INTO chain_base.${table.name} SETTINGS insert_deduplication_token = '${token}', async_insert = 0,
          input_format_parallel_parsing = 0 FORMAT JSONEachRow ${lines.join('\n')}`)
      for (let time = 0; time < 3; time++) await insert(`${table.name}:1`)
      const once = Number(await run(`SELECT count() FROM chain_base.${table.name}`))
      // Some keys of the made-up chain come twice in a transaction; parts may already be merged.
      assert.ok(once > 0 && once <= lines.length, `${table.name}: ${once} of ${lines.length}`)
      // Another token is another insert, which the key makes one again.
      await insert(`${table.name}:2`)
      const seen = Number(await run(`SELECT count() FROM chain.${table.name}`))
      const keys = Number(await run(`SELECT uniqExact(${table.key.join(', ')}) FROM chain_base.${table.name}`))
      assert.equal(seen, keys, table.name)
    }
  })

  test('blocks become final by the progress alone, and coverage tells what is complete', async () => {
    const [slot] = (await run('SELECT max(slot) FROM chain.blocks')).trim().split('\n').map(Number)
    assert.equal(await run('SELECT commitment FROM chain.blocks'), 'confirmed\n')
    assert.equal(await run('SELECT * FROM chain.coverage'), '')
    await run(`INSERT INTO chain_base._progress (id, version, finalized_slot, tip_slot, from_slots, to_slots)
      VALUES (0, 1, ${slot}, ${(slot ?? 0) + 3}, [1, 900], [5, ${slot}])`)
    assert.equal(await run("SELECT count() FROM chain.blocks WHERE commitment = 'finalized'"), '1\n')
    assert.equal(
      await run("SELECT from_slot, to_slot, lag_slots, open_gaps FROM chain.coverage WHERE table_name = 'blocks'"),
      `900\t${slot}\t3\t1\n`,
    )
  })

  test('statements that make and end accounts are read by the parser', async () => {
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

function plain(value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
