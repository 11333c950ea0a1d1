import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AsyncChdb } from 'chdb-wasm'
import { CLICKHOUSE_TYPES, tableOf } from '../../src/indexer/schema.ts'
import {
  openAccountsDatabase,
  testAccountHistories,
  testFinalAccounts,
  testReplacedAccounts,
} from '../support/indexer/clickhouse-accounts.ts'
import { startHttpOver } from '../support/indexer/clickhouse-http.ts'
import { isFull } from '../support/process/property.ts'

describe("accounts on the operator's ClickHouse, 26.5 from npm", () => {
  let engine: AsyncChdb
  let http: Awaited<ReturnType<typeof startHttpOver>>
  const run = async (statement: string): Promise<string> => (await engine.query(statement, 'TSVRaw')).text()
  before(async () => {
    const moduleUrl = new URL('./chdb.mjs', import.meta.resolve('chdb-wasm')).href
    engine = await AsyncChdb.create({ moduleUrl: new URL(moduleUrl).pathname })
    http = await startHttpOver(run)
  })
  after(async () => {
    await http?.[Symbol.asyncDispose]()
    await engine?.terminate()
  })

  const opened = () => ({ url: http.url, user: 'default', password: '', run, prepare, prepareReopen })

  /** The file system of this engine has no hard links, which a deletion makes of the parts that it does not change. */
  async function prepare(base: string): Promise<void> {
    for (const table of ['accounts', '_account_updates'])
      await run(`ALTER TABLE ${base}.${table} MODIFY SETTING always_use_copy_instead_of_hardlinks = 1`)
  }

  /** Nor can it exchange two files, which replaces a view. */
  async function prepareReopen(views: string): Promise<void> {
    await run(`DROP DATABASE ${views}`)
  }

  testReplacedAccounts(opened)
  // A statement takes this engine some hundred milliseconds; the other cuts are made on Debian's server.
  testFinalAccounts(opened, isFull ? undefined : 1)
  testAccountHistories(opened, { short: 1, full: 5, steps: isFull ? 12 : 6 })

  test('the view has the published columns, and a lookup of an account reads by the primary key', async () => {
    await using database = await openAccountsDatabase(opened())
    const { name } = database
    const types = await run(
      `SELECT name, type FROM system.columns WHERE database = '${name}' AND table = 'accounts' ORDER BY position`,
    )
    const published = tableOf('accounts').columns.map((column) => `${column.name}\t${CLICKHOUSE_TYPES[column.type]}\n`)
    assert.equal(types, published.join(''))
    for (const [table, slot] of [
      ['accounts', 1],
      ['_account_updates', 100],
    ] as const)
      await run(
        `INSERT INTO ${name}_base.${table} (pubkey, slot) SELECT concat('key', toString(number)), ${slot} FROM numbers(50000)`,
      )
    const plan = await run(`EXPLAIN indexes = 1 SELECT lamports FROM ${name}.accounts WHERE pubkey = 'key7'`)
    const granules = [...plan.matchAll(/PrimaryKey[^]*?Granules: (\d+)\/(\d+)/g)].map(([, read]) => Number(read))
    assert.equal(granules.length, 2, plan)
    assert.ok(
      granules.every((count) => count <= 1),
      plan,
    )
  })

  test('by default all reads of one table in a statement share a snapshot', async () => {
    // The view reads the states by slot three times.
    const name = 'enable_shared_storage_snapshot_in_query'
    assert.equal(await run(`SELECT value FROM system.settings WHERE name = '${name}'`), '1\n')
  })
})
