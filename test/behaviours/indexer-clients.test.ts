import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { type ClickHouseClient, ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { until } from '../../src/host/test-wait.ts'
import { type IndexerAccount, type IndexerRig, startIndexerRig } from '../support/indexer.ts'

const run = promisify(execFile)

describe('the query interface, with the clients people have', () => {
  let rig: IndexerRig
  let account: IndexerAccount
  let client: ClickHouseClient
  before(async () => {
    rig = await startIndexerRig()
    account = await rig.subscribe('analyst')
    client = createClient({
      url: rig.url,
      username: account.username,
      password: account.password,
      http_headers: { 'x-token': account.token },
      log: { level: ClickHouseLogLevel.OFF },
    })
    await until('blocks are indexed', () => (rig.indexer.status().ingest?.transactions ?? 0) > 20, 30_000)
  })
  after(async () => {
    await client?.close()
    await rig?.[Symbol.asyncDispose]()
  })

  async function read<Row>(
    query: string,
    given: Parameters<ClickHouseClient['query']>[0] | object = {},
  ): Promise<Row[]> {
    const answer = await client.query({ format: 'JSONEachRow', ...given, query })
    return (await answer.json()) as Row[]
  }

  test('ping, with and without a query', async () => {
    assert.deepEqual(await client.ping(), { success: true })
    assert.equal((await client.ping({ select: true })).success, true)
  })

  test('formats', async () => {
    const query = 'SELECT slot, fee_payer, success, signers FROM transactions ORDER BY slot, tx_index LIMIT 2'
    const json = await (await client.query({ query, format: 'JSON' })).json<{ slot: string; signers: string[] }>()
    assert.deepEqual(
      json.meta?.map(({ name, type }) => `${name} ${type}`),
      ['slot UInt64', 'fee_payer String', 'success Bool', 'signers Array(String)'],
    )
    assert.equal(json.rows, 2)
    assert.equal(typeof json.data[0]?.slot, 'string')
    assert.equal(json.data[0]?.signers.length, 1)
    const compact = await (await client.query({ query, format: 'JSONCompact' })).json<unknown[]>()
    assert.equal(compact.data.length, 2)
    const csv = await (await client.query({ query, format: 'CSVWithNames' })).text()
    assert.match(csv, /^"slot","fee_payer","success","signers"\n\d+,"\w+",true,"\['\w+'\]"\n/)
    const tabs = await (await client.query({ query, format: 'TabSeparatedWithNames' })).text()
    assert.match(tabs, /^slot\tfee_payer\tsuccess\tsigners\n\d+\t\w+\ttrue\t\['\w+'\]\n/)
  })

  test('parameters are values, whatever is in them', async () => {
    const text = `it's "quoted" \\ and\ttabbed`
    const rows = await read<Record<string, unknown>>(
      'SELECT {text:String} AS text, {number:UInt64} AS number, {list:Array(String)} AS list, {nothing:Nullable(String)} AS nothing',
      { query_params: { text, number: '18446744073709551615', list: ['a', "b'c"], nothing: null } },
    )
    assert.deepEqual(rows, [{ text, number: '18446744073709551615', list: ['a', "b'c"], nothing: null }])
    await assert.rejects(read('SELECT {absent:String}'), { code: '456', type: 'UNKNOWN_QUERY_PARAMETER' })
  })

  test('a stream of many rows', async () => {
    const query = 'SELECT a.signature FROM transactions a, transactions b LIMIT 50000'
    const answer = await client.query({ query, format: 'JSONEachRow' })
    let rows = 0
    for await (const piece of answer.stream()) rows += piece.length
    assert.ok(rows >= 400 && rows <= 50_000, `${rows} rows`)
  })

  test('errors have their types, and none says anything of the engine', async () => {
    const cases = [
      ['SELECT nosuch FROM blocks', '47', 'UNKNOWN_IDENTIFIER'],
      ['SELECT * FROM nosuch', '60', 'UNKNOWN_TABLE'],
      ['SELECT nosuch(1)', '46', 'UNKNOWN_FUNCTION'],
      ['SELECT FROM WHERE', '62', 'SYNTAX_ERROR'],
      ['DROP TABLE blocks', '164', 'READONLY'],
    ] as const
    for (const [query, code, type] of cases) {
      await assert.rejects(read(query), (error: unknown) => {
        assert.ok(error instanceof ClickHouseError, String(error))
        assert.deepEqual([error.code, error.type], [code, type], query)
        assert.doesNotMatch(error.message, /DuckDB|Did you mean|Candidate|base\./i)
        return true
      })
    }
    await assert.rejects(client.insert({ table: 'blocks', values: [{ slot: 1 }], format: 'JSONEachRow' }), {
      type: 'READONLY',
    })
    await assert.rejects(read('SELECT 1', { clickhouse_settings: { max_memory_usage: '1' } }), {
      type: 'UNKNOWN_SETTING',
    })
  })

  test('a query that takes too long is stopped, and others go on meanwhile', async () => {
    const heavy =
      'SELECT count(*) FROM transactions a, transactions b, transactions c, transactions d WHERE a.fee + b.fee + c.fee + d.fee = 1'
    const stopped = assert.rejects(read(heavy, { clickhouse_settings: { max_execution_time: 1 } }), {
      code: '159',
      type: 'TIMEOUT_EXCEEDED',
    })
    const head = rig.indexer.status().ingest?.headSlot ?? 0
    assert.deepEqual(await read('SELECT 1 AS one'), [{ one: 1 }])
    await stopped
    await until('ingest goes on', () => (rig.indexer.status().ingest?.headSlot ?? 0) > head)
    assert.equal(rig.indexer.status().restarts, 0)
  })

  test('an aborted query ends on the server too', async () => {
    const controller = new AbortController()
    const heavy = read('SELECT count(*) FROM transactions a, transactions b, transactions c, transactions d', {
      abort_signal: controller.signal,
    })
    await until('it runs', () => rig.indexer.status().runningQueries === 1)
    controller.abort()
    await assert.rejects(heavy)
    await until('it ended', () => rig.indexer.status().runningQueries === 0)
  })

  test('compression', async () => {
    const zipped = createClient({
      url: rig.url,
      username: account.username,
      password: account.password,
      http_headers: { 'x-token': account.token },
      log: { level: ClickHouseLogLevel.OFF },
      compression: { response: true, request: true },
    })
    const answer = await zipped.query({ query: 'SELECT * FROM transactions LIMIT 100', format: 'JSON' })
    const { rows } = await answer.json()
    assert.ok((rows ?? 0) > 10)
    await zipped.close()
  })

  test('the tables say themselves what they are', async () => {
    const tables = await read<{ name: string }>('SHOW TABLES')
    assert.deepEqual(
      tables.map(({ name }) => name),
      [
        'account_activity',
        'accounts',
        'blocks',
        'coverage',
        'instructions',
        'rewards',
        'token_transfers',
        'transactions',
      ],
    )
    const columns = await read<{ name: string; type: string }>('DESCRIBE TABLE blocks')
    assert.deepEqual(columns[0], { ...columns[0], name: 'slot', type: 'UInt64' })
    assert.deepEqual(await read('EXISTS TABLE nosuch'), [{ result: 0 }])
    const [coverage] = await read<{ to_slot: string; open_gaps: string }>(
      "SELECT * FROM coverage WHERE table_name = 'blocks'",
    )
    assert.equal(coverage?.open_gaps, '0')
    const [newest] = await read<{ slot: string }>('SELECT max(slot) AS slot FROM blocks')
    assert.ok(Number(coverage?.to_slot) <= Number(newest?.slot))
  })

  test('accounts are there once, however often they changed', async () => {
    const [found] = await read<{ rows: string; keys: string }>(
      'SELECT count(*) AS rows, count(DISTINCT pubkey) AS keys FROM accounts',
    )
    assert.ok(Number(found?.keys) > 0)
    assert.equal(found?.rows, found?.keys)
  })

  test('curl, by address and by body, with a receipt', async () => {
    const login = ['-s', '-i', '-u', `${account.username}:${account.password}`, '-H', `x-token: ${account.token}`]
    const byBody = await run('curl', [...login, '--data', 'SELECT 1 AS x FORMAT JSONEachRow', rig.url])
    assert.match(byBody.stdout, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\{"x":1\}\n$/)
    assert.match(byBody.stdout, /x-clickhouse-summary: \{"read_rows":"1",.*"result_rows":"1","result_bytes":"8"/i)
    assert.match(byBody.stdout, /x-sluice-coverage-slot: \d+/i)
    const byAddress = await run('curl', [
      ...login,
      '-G',
      '--data-urlencode',
      "query=SELECT 'a\tb', NULL",
      `${rig.url}/`,
    ])
    assert.match(byAddress.stdout, /\r\n\r\na\\tb\t\\N\n$/)
  })
})
