import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DuckConnection, openDuckDatabase } from '../../platform/db/duckdb.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { createCacheRelease } from './cache-release.ts'

const MIB = 1024 * 1024
const IDLE_BYTES = 4 * MIB
const MEMORY_BYTES = 256 * MIB

test('pages of the file are released while no query runs, and the memory limit is restored', async () => {
  using folder = makeTestFolder()
  using database = await openDuckDatabase(folder.file('idle.duckdb'), { memory_limit: '256MiB', threads: '2' })
  using connection = await database.connect()
  let isQueried = true
  const release = await createCacheRelease(database, {
    memoryBytes: MEMORY_BYTES,
    idleBytes: IDLE_BYTES,
    isQueried: () => isQueried,
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
  assert.ok(held > 2 * IDLE_BYTES, `${held} bytes held`)

  await release()
  assert.equal(await bytesHeld(connection), held, 'nothing is released while a query runs')

  isQueried = false
  await release()
  assert.ok((await bytesHeld(connection)) <= IDLE_BYTES, `${await bytesHeld(connection)} bytes held`)
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
