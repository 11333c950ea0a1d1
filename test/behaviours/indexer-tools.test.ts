import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import { ClickHouseError } from '@clickhouse/client'
import { until } from '../../src/platform/process/test-wait.ts'
import { clientOf } from '../support/indexer/clients.ts'
import { expandNativeBlocks } from '../support/indexer/lz4.ts'
import { readRowBinary } from '../support/indexer/row-binary.ts'
import { type IndexerAccount, type IndexerRig, startIndexerRig } from '../support/indexer/start.ts'
import { TOOL_STATEMENTS } from '../support/indexer/tool-statements.ts'

describe('tools that connect to the query interface', () => {
  let rig: IndexerRig
  let account: IndexerAccount
  let other: IndexerAccount
  before(async () => {
    rig = await startIndexerRig({ query: { sessionsPerSubscription: 5 } })
    account = await rig.subscribe('analyst')
    other = await rig.subscribe('stranger')
    await until('blocks are indexed', () => (rig.indexer.status().ingest?.transactions ?? 0) > 20, 30_000)
  })
  after(() => rig?.[Symbol.asyncDispose]())

  async function ask(
    query: string,
    fields: Readonly<Record<string, string>> = {},
    { as = account, headers = {} }: { as?: IndexerAccount; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; text: string; headers: Headers }> {
    const url = `${rig.url}/?${new URLSearchParams(fields).toString()}`
    const response = await fetch(url, { method: 'POST', headers: { ...as.headers, ...headers }, body: query })
    return { status: response.status, text: await response.text(), headers: response.headers }
  }

  test('statements of Grafana, Superset, Metabase and drivers run, and reveal nothing about other customers', async () => {
    const failed: string[] = []
    for (const { tool, when, source, sql, fields, expected } of TOOL_STATEMENTS) {
      assert.match(source, /^[\w-]+\/[\w-]+ \S/, 'every statement names its source')
      const { status, text } = await ask(sql, fields)
      for (const secret of [other.username, other.token, 'stranger']) assert.ok(!text.includes(secret), sql)
      const isRight = status === 200 && (expected?.test(text) ?? text !== '')
      if (!isRight) failed.push(`${tool}, ${when}: ${sql}\n${status} ${text.slice(0, 300)}`)
    }
    assert.deepEqual(failed, [])
  })

  test('a session of @clickhouse/client keeps SET and USE; other sessions and customers do not see it', async () => {
    const client = clientOf(rig, account, { session_id: 'one' })
    const values = async (query: string, of = client) =>
      await (await of.query({ query, format: 'TabSeparated' })).text()
    await client.command({
      query: "SET session_timezone = 'Asia/Tokyo', max_result_rows = 2, result_overflow_mode = 'break'",
    })
    await client.command({ query: 'USE system' })
    assert.equal(await values('SELECT timezone(), currentDatabase()'), 'Asia/Tokyo\tsystem\n')
    assert.equal(await values('SELECT number FROM numbers'), '0\n1\n')
    assert.equal(await values("SHOW SETTINGS LIKE 'max_result_rows'"), 'max_result_rows\tUInt64\t2\n')
    const second = clientOf(rig, account, { session_id: 'two' })
    assert.equal(await values('SELECT timezone(), currentDatabase()', second), 'UTC\tsolana\n')
    const same = await ask(
      'SELECT timezone(), currentDatabase()',
      { session_id: 'one', session_check: '1' },
      { as: other },
    )
    assert.deepEqual([same.status, same.headers.get('x-clickhouse-exception-code')], [404, '372'])
    await client.close()
    await second.close()
  })

  test('Native has the head of the protocol that client_protocol_version names, as clickhouse-go reads it', async () => {
    const fields = { default_format: 'Native', client_protocol_version: '54460' }
    const url = `${rig.url}/?${new URLSearchParams(fields).toString()}`
    const response = await fetch(url, { method: 'POST', headers: account.headers, body: 'SELECT version()' })
    const bytes = Buffer.from(await response.arrayBuffer())
    assert.deepEqual([...bytes.subarray(0, 10)], [1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 1, 0])
  })

  test('session_check, session_timeout and the number of sessions', async () => {
    assert.equal(
      (await ask('SELECT 1', { session_id: 'new', session_check: '1' })).headers.get('x-clickhouse-exception-code'),
      '372',
    )
    assert.match(
      (await ask('SELECT 1', { session_id: 'new', session_timeout: '4000' })).text,
      /larger than max_session_timeout: 3600.*INVALID_SESSION_TIMEOUT/,
    )
    assert.match((await ask('SELECT 1', { session_id: 'new', session_timeout: '-1' })).text, /INVALID_SESSION_TIMEOUT/)
    assert.match((await ask('SELECT 1', { session_id: 'x'.repeat(129) })).text, /more than 128 characters/)
    const used: Awaited<ReturnType<typeof ask>>[] = []
    for (const id of ['1', '2', '3', '4', '5', '6'])
      used.push(await ask('SET max_threads = 1', { session_id: id, session_timeout: '60' }, { as: other }))
    assert.deepEqual(
      used.map(({ status }) => status),
      [200, 200, 200, 200, 200, 429],
    )
    const refused = used.find(({ status }) => status === 429)
    assert.match(
      refused?.text ?? '',
      /Code: 700\. DB::Exception: Too many sessions: indexer\.query\.sessionsPerSubscription is 5\./,
    )
    assert.ok(refused?.headers.get('retry-after'))
  })

  test('the headers of a response', async () => {
    const { headers, text } = await ask('SELECT 1 AS x', {
      query_id: 'mine',
      send_progress_in_http_headers: '1',
      default_format: 'JSONEachRow',
    })
    assert.equal(text, '{"x":1}\n')
    assert.equal(headers.get('x-clickhouse-query-id'), 'mine')
    assert.equal(headers.get('x-clickhouse-format'), 'JSONEachRow')
    assert.equal(headers.get('x-clickhouse-timezone'), 'UTC')
    assert.equal(headers.get('x-clickhouse-server-display-name'), 'test')
    assert.match(headers.get('x-clickhouse-progress') ?? '', /^\{"read_rows":"1",/)
    assert.match(headers.get('x-clickhouse-summary') ?? '', /"result_rows":"1"/)
    assert.equal((await ask('SELECT 1')).headers.get('x-clickhouse-progress'), null)
    const failed = await ask('SELECT nosuch FROM blocks')
    assert.equal(failed.headers.get('x-clickhouse-exception-code'), '47')
    assert.match(failed.text, /^Code: 47\. DB::Exception: .* \(UNKNOWN_IDENTIFIER\)\n$/)
  })

  test('Accept-Encoding chooses zstd, lz4 or gzip when compression is enabled; compress=1 gives blocks', async () => {
    const query = 'SELECT number FROM system.numbers LIMIT 20000'
    const fields = { enable_http_compression: '1' }
    const plain = (await ask(query)).text
    const get = async (accept: string, given: Record<string, string> = fields) => {
      const response = await fetch(`${rig.url}/?${new URLSearchParams({ ...given, query }).toString()}`, {
        headers: { ...account.headers, 'accept-encoding': accept },
      })
      return { encoding: response.headers.get('content-encoding'), response }
    }
    const gzip = await get('gzip')
    assert.equal(gzip.encoding, 'gzip')
    assert.equal(await gzip.response.text(), plain)
    const lz4 = await get('br, lz4, gzip')
    assert.equal(lz4.encoding, 'lz4')
    assert.equal(
      Buffer.from(await lz4.response.arrayBuffer())
        .subarray(0, 4)
        .toString('hex'),
      '04224d18',
    )
    const zstd = await get('gzip, zstd;q=0.5')
    assert.equal(zstd.encoding, 'zstd')
    const bytes = Buffer.from(await zstd.response.arrayBuffer())
    // Some releases of fetch decode zstd themselves.
    assert.equal((bytes[0] === 0x28 ? zstdDecompressSync(bytes) : bytes).toString(), plain)
    assert.equal((await get('zstd;q=0, identity')).encoding, null)
    assert.equal((await get('zstd', {})).encoding, null)
    const native = await get('identity', { compress: '1' })
    const block = Buffer.from(await native.response.arrayBuffer())
    assert.equal(expandNativeBlocks(block).toString(), plain)
    assert.match((await ask('SELECT 1', { compress: 'x' })).text, /BAD_ARGUMENTS/)
    const failed = await fetch(`${rig.url}/?compress=1`, { method: 'POST', headers: account.headers, body: 'SELECT x' })
    assert.equal(failed.status, 404)
    const error = expandNativeBlocks(Buffer.from(await failed.arrayBuffer())).toString()
    assert.match(error, /^Code: 47\. DB::Exception: .*\n$/)
  })

  test('a client as the JDBC driver: one session, compressed blocks, parameters, types with the rows', async () => {
    // As client-v2 of ClickHouse/clickhouse-java sends it.
    const fields = {
      database: 'solana',
      compress: '1',
      session_id: 'jdbc',
      default_format: 'RowBinaryWithNamesAndTypes',
    }
    const login = {
      'x-clickhouse-user': account.username,
      'x-clickhouse-key': account.password,
      'x-token': account.token,
    }
    const run = async (query: string, more: Record<string, string> = {}) => {
      const url = `${rig.url}/?${new URLSearchParams({ ...fields, ...more }).toString()}`
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...login, 'x-clickhouse-database': 'solana' },
        body: query,
      })
      assert.equal(response.headers.get('x-clickhouse-exception-code'), null, query)
      const body = expandNativeBlocks(Buffer.from(await response.arrayBuffer()))
      return query.includes(' FORMAT ') ? { names: [], types: [], rows: [] } : readRowBinary(body)
    }
    const connect = await run('SELECT currentUser() AS user, timezone() AS timezone, version() AS version LIMIT 1')
    assert.deepEqual(connect, {
      names: ['user', 'timezone', 'version'],
      types: ['String', 'String', 'String'],
      rows: [[account.username, 'UTC', '25.8.1.1']],
    })
    await run('SET max_block_size = 100')
    await run('USE solana')
    for (const { sql, tool } of TOOL_STATEMENTS) if (tool === 'jdbc') await run(sql)
    const found = await run(
      'SELECT slot, block_time, leader FROM blocks WHERE slot >= {from:UInt64} ORDER BY slot LIMIT 1',
      {
        param_from: '1',
      },
    )
    assert.deepEqual(
      [found.names, found.types],
      [
        ['slot', 'block_time', 'leader'],
        ['UInt64', "DateTime('UTC')", 'LowCardinality(String)'],
      ],
    )
    assert.equal(found.rows.length, 1)
    const text = (await ask('SELECT slot, toUnixTimestamp(block_time), leader FROM blocks ORDER BY slot LIMIT 1')).text
    assert.equal(`${found.rows[0]?.map(String).join('\t')}\n`, text)
    const values = await run("SELECT 1.5 AS f, [toNullable(1), NULL] AS l, toDateTime64('2026-01-01 00:00:00', 3) AS t")
    assert.deepEqual(values.types, ['Float64', 'Array(Nullable(UInt8))', 'DateTime64(3)'])
    assert.deepEqual(values.rows, [[1.5, [1, null], 1_767_225_600_000n]])
  })

  test('settings that are not on the list are refused with the code of ClickHouse', async () => {
    const client = clientOf(rig, account)
    await assert.rejects(
      client.query({ query: 'SELECT 1', clickhouse_settings: { max_memory_usage: '1' } }),
      (error: unknown) => {
        assert.ok(error instanceof ClickHouseError)
        assert.deepEqual([error.code, error.type], ['115', 'UNKNOWN_SETTING'])
        return true
      },
    )
    const accepted = { max_block_size: '100', join_use_nulls: 1, log_comment: 'x', session_timezone: 'UTC' } as const
    assert.equal(
      await (await client.query({ query: 'SELECT 1', format: 'CSV', clickhouse_settings: accepted })).text(),
      '1\n',
    )
    await client.close()
  })
})
