import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { DuckConnection } from '../../platform/db/duckdb.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { beginReading } from './customer-schema.ts'
import { openQueryDatabase } from './test-queries.ts'

/** On the connection of a query, without the SQL policy: the engine itself refuses what the policy should have refused. */
describe('T14: the engine is locked below the SQL policy', () => {
  let opened: Awaited<ReturnType<typeof openQueryDatabase>>
  let connection: DuckConnection
  const folder = makeTestFolder()

  before(async () => {
    opened = await openQueryDatabase()
    connection = await opened.database.connect()
  })
  after(() => {
    connection[Symbol.dispose]()
    opened[Symbol.dispose]()
    folder[Symbol.dispose]()
  })

  test('enable_external_access: refuses to read and write files and to load extensions', async () => {
    const out = folder.file('out.csv')
    for (const sql of [
      "SELECT * FROM read_csv('/etc/passwd')",
      "SELECT * FROM read_text('/etc/passwd')",
      "SELECT * FROM glob('/etc/*')",
      `COPY (SELECT 1) TO '${out}'`,
      `EXPORT DATABASE '${folder.file('all')}'`,
      `ATTACH '${folder.file('other.duckdb')}'`,
      "LOAD '/tmp/nothing.duckdb_extension'",
    ]) {
      await assert.rejects(connection.run(sql), /^Error: Permission Error|disabled by configuration/, sql)
    }
    assert.equal(existsSync(out), false)
  })

  test('no extension is installed or loaded automatically, and nothing spills to a file', async () => {
    const names = ['allow_community_extensions', 'autoinstall_known_extensions', 'autoload_known_extensions']
    const settings = [...names, 'temp_directory'].map((name) => `current_setting('${name}')::VARCHAR`)
    const [piece] = (await connection.run(`SELECT ${settings.join(', ')}`)).pieces()
    assert.deepEqual(piece?.flat(), ['false', 'false', 'false', ''])
  })

  test('lock_configuration: no connection can change a setting', async () => {
    for (const sql of [
      'SET threads = 1',
      "SET temp_directory = '/tmp'",
      'SET GLOBAL default_null_order = nulls_first',
      'RESET enable_external_access',
      'SET allow_community_extensions = true',
      'SET lock_configuration = false',
    ])
      await assert.rejects(connection.run(sql), /configuration has been locked/, sql)
  })

  test('READ ONLY: the transaction of a query cannot write into any table', async () => {
    using reading = await opened.database.connect()
    for (const sql of [
      'INSERT INTO memory.base._ranges SELECT * FROM memory.base._ranges',
      'DELETE FROM memory.base.blocks',
      'UPDATE memory.base.blocks SET slot = 0',
      'DROP TABLE memory.base.blocks',
      'CREATE TABLE memory.base.mine (a INTEGER)',
      'CREATE VIEW customers.solana.mine AS SELECT 1',
      'DROP VIEW customers.solana.blocks',
    ]) {
      await beginReading(reading)
      await assert.rejects(reading.run(sql), /read-only/, sql)
      await reading.run('ROLLBACK')
    }
  })
})
