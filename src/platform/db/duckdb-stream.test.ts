import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type DuckConnection, type DuckDatabase, openDuckDatabase } from './duckdb.ts'
import { type DuckRows, StreamFailed } from './duckdb-stream.ts'

describe('rows as the engine makes them', () => {
  let database: DuckDatabase
  let connection: DuckConnection

  before(async () => {
    database = await openDuckDatabase(':memory:', { threads: '3' })
    connection = await database.connect()
  })
  after(() => {
    connection[Symbol.dispose]()
    database[Symbol.dispose]()
  })

  async function stream(sql: string): Promise<DuckRows> {
    await connection.run('ROLLBACK').catch(() => {})
    await connection.run('BEGIN TRANSACTION READ ONLY')
    return connection.streamOnWorkers(sql)
  }

  async function countRows(rows: DuckRows): Promise<number> {
    let count = 0
    for (let chunk = await rows.next(); chunk !== undefined; chunk = await rows.next()) count += chunk.rowCount
    return count
  }

  test('all of them, with names, types and values', async () => {
    await using rows = await stream('SELECT i::UBIGINT AS n, i::VARCHAR AS text FROM range(10000) t(i)')
    assert.deepEqual(rows.columns, [
      { name: 'n', type: { kind: 'fixed', name: 'UBIGINT', width: 8 } },
      { name: 'text', type: { kind: 'text', name: 'VARCHAR' } },
    ])
    const chunk = await rows.next()
    assert.deepEqual(chunk?.row(7), [7n, '7'])
    assert.equal((chunk?.rowCount ?? 0) + (await countRows(rows)), 10_000)
    assert.equal(await rows.next(), undefined)
  })

  test('one that fails after its first rows does not look complete', async () => {
    await using rows = await stream(
      "SELECT CASE WHEN i = 900000 THEN 'x' ELSE '1' END::INTEGER FROM range(1000000) t(i)",
    )
    await assert.rejects(countRows(rows), StreamFailed)
  })

  test('one that is interrupted does not look complete', async () => {
    await using rows = await stream('SELECT i FROM range(100000000) t(i)')
    await rows.next()
    connection.interrupt()
    await assert.rejects(countRows(rows), StreamFailed)
  })

  test('one that fails before its first row gives the reason', async () => {
    await assert.rejects(stream("SELECT 'x'::INTEGER"), /^Error: Conversion Error/)
  })

  test('rows that are not read are not produced', async () => {
    const bytesOf = async (): Promise<number> => {
      using other = await database.connect()
      const [piece] = (await other.run('SELECT sum(memory_usage_bytes)::DOUBLE FROM duckdb_memory()')).pieces()
      return Number(piece?.[0]?.[0])
    }
    await using rows = await stream(
      "SELECT i, i::VARCHAR || '................................' FROM range(20000000) t(i)",
    )
    await rows.next()
    const [before, residentBefore] = [await bytesOf(), process.memoryUsage.rss()]
    for (let look = 0; look < 20; look++) await bytesOf()
    assert.ok((await bytesOf()) - before < 16e6)
    assert.ok(process.memoryUsage.rss() - residentBefore < 64e6)
  })

  test('the connection can be used after one that was not read to its end', async () => {
    {
      await using rows = await stream('SELECT i FROM range(100000000) t(i)')
      await rows.next()
    }
    await using next = await stream('SELECT 1')
    assert.equal(await countRows(next), 1)
  })
})
