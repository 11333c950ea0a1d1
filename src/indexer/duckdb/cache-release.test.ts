import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DuckConnection, openDuckDatabase } from '../../platform/db/duckdb.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { createCacheRelease } from './cache-release.ts'

const MIB = 1024 * 1024
const REST_BYTES = 4 * MIB
const MEMORY_BYTES = 256 * MIB

test('pages of the file are given back when nobody asks; the limit is what it was', async () => {
  using folder = makeTestFolder()
  using database = await openDuckDatabase(folder.file('rest.duckdb'), { memory_limit: '256MiB', threads: '2' })
  using connection = await database.connect()
  let isAsked = true
  const release = await createCacheRelease(database, {
    memoryBytes: MEMORY_BYTES,
    restBytes: REST_BYTES,
    isAsked: () => isAsked,
  })
  await connection.run('CREATE SCHEMA base')
  await connection.run(
    `CREATE TABLE base.wide AS SELECT md5(i::VARCHAR) AS text, hash(i) AS number FROM range(400000) t(i)`,
  )
  await connection.run('CHECKPOINT')
  await connection.run('SELECT sum(number), max(text) FROM base.wide')
  await connection.run(`SET allowed_configs = ['memory_limit']`)
  await connection.run('SET lock_configuration = true')
  const held = await bytesHeld(connection)
  assert.ok(held > 2 * REST_BYTES, `${held} bytes held`)

  await release()
  assert.equal(await bytesHeld(connection), held, 'nothing is taken from a query')

  isAsked = false
  await release()
  assert.ok((await bytesHeld(connection)) <= REST_BYTES, `${await bytesHeld(connection)} bytes held`)
  assert.equal(await valueOf(connection, `SELECT current_setting('memory_limit')`), '256.0 MiB')
  assert.equal(await valueOf(connection, 'SELECT count(*) FROM base.wide'), 400_000n)
})

async function bytesHeld(connection: DuckConnection): Promise<number> {
  return Number(await valueOf(connection, 'SELECT sum(memory_usage_bytes) FROM duckdb_memory()'))
}

async function valueOf(connection: DuckConnection, sql: string): Promise<unknown> {
  for (const [column] of (await connection.run(sql)).pieces()) return column?.[0]
  return undefined
}
