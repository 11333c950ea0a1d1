import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client'
import { until } from '../../src/platform/process/test-wait.ts'
import { clientOf, testClients } from '../support/indexer/clients.ts'
import { type IndexerAccount, type IndexerRig, startIndexerRig } from '../support/indexer/start.ts'

const HEAVY =
  'SELECT count(*) FROM transactions a, transactions b, transactions c, transactions d WHERE a.fee + b.fee + c.fee + d.fee = 1'

describe('the query interface, with common clients', () => {
  let rig: IndexerRig
  let account: IndexerAccount
  let client: ClickHouseClient
  before(async () => {
    rig = await startIndexerRig()
    account = await rig.subscribe('analyst')
    client = clientOf(rig, account)
    await until('blocks are indexed', () => (rig.indexer.status().ingest?.transactions ?? 0) > 20, 30_000)
  })
  after(async () => {
    await client?.close()
    await rig?.[Symbol.asyncDispose]()
  })

  testClients(() => ({ rig, account, client }), {
    heavy: HEAVY,
    long: 'SELECT a.signature FROM transactions a, transactions b, transactions c LIMIT 5000',
    longRows: 5000,
  })

  async function read<Row>(
    query: string,
    given: Parameters<ClickHouseClient['query']>[0] | object = {},
  ): Promise<Row[]> {
    const response = await client.query({ format: 'JSONEachRow', ...given, query })
    return (await response.json()) as Row[]
  }

  test('parameters are bound as values, whatever they contain', async () => {
    const text = `it's "quoted" \\ and\ttabbed`
    const rows = await read<Record<string, unknown>>(
      'SELECT {text:String} AS text, {number:UInt64} AS number, {list:Array(String)} AS list, {nothing:Nullable(String)} AS nothing',
      { query_params: { text, number: '18446744073709551615', list: ['a', "b'c"], nothing: null } },
    )
    assert.deepEqual(rows, [{ text, number: '18446744073709551615', list: ['a', "b'c"], nothing: null }])
    await assert.rejects(read('SELECT {absent:String}'), { code: '456', type: 'UNKNOWN_QUERY_PARAMETER' })
  })

  test('errors have ClickHouse types and reveal nothing about the engine', async () => {
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

  test('a query over its time limit is stopped, and others continue meanwhile', async () => {
    const stopped = assert.rejects(read(HEAVY, { clickhouse_settings: { max_execution_time: 1 } }), {
      code: '159',
      type: 'TIMEOUT_EXCEEDED',
    })
    const head = rig.indexer.status().ingest?.headSlot ?? 0
    assert.deepEqual(await read('SELECT 1 AS one'), [{ one: 1 }])
    await stopped
    await until('ingest continues', () => (rig.indexer.status().ingest?.headSlot ?? 0) > head)
    assert.equal(rig.indexer.status().restarts, 0)
  })

  test('SHOW, DESCRIBE and EXISTS describe the tables, and coverage is not ahead of them', async () => {
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

  test('the summary header states rows and bytes of the result', async () => {
    const response = await fetch(rig.url, {
      method: 'POST',
      headers: account.headers,
      body: 'SELECT 1 AS x FORMAT JSONEachRow',
    })
    await response.text()
    assert.match(
      response.headers.get('x-clickhouse-summary') ?? '',
      /^\{"read_rows":"1",.*"result_rows":"1","result_bytes":"8"/,
    )
  })
})
