import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { constants, gunzipSync } from 'node:zlib'
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client'
import { until } from '../../src/platform/process/test-wait.ts'
import { clientOf } from '../support/indexer/clients.ts'
import { type IndexerAccount, type IndexerRig, startIndexerRig } from '../support/indexer/start.ts'

const ROWS = 60_000
const MANY = 'FROM transactions a, transactions b, transactions c'
/** Some 6 MB, more than what is formatted ahead of the reader. */
const LARGE = `SELECT a.slot AS slot, b.signature AS signature ${MANY} LIMIT ${ROWS}`
/** Fails at row 140,000, long after its first part was sent. */
const FAILING = `SELECT CAST(CASE WHEN n = 140000 THEN 'x' ELSE '1' END AS INTEGER) AS number, text
  FROM (SELECT row_number() OVER () AS n, a.signature AS text ${MANY} LIMIT 150000)`
const ENDLESS = `SELECT a.slot AS slot, b.signature AS signature, c.signature AS other ${MANY}`

describe('results that are sent while their query runs', () => {
  let rig: IndexerRig
  let account: IndexerAccount
  let client: ClickHouseClient
  before(async () => {
    rig = await startIndexerRig({ query: { rowsMax: 100_000_000, bytesMax: 2 ** 32, secondsMax: 300 } })
    account = await rig.subscribe('analyst')
    client = clientOf(rig, account)
    await until('blocks are indexed', () => (rig.indexer.status().ingest?.transactions ?? 0) > 300, 60_000)
  })
  after(async () => {
    await client?.close()
    await rig?.[Symbol.asyncDispose]()
  })

  const request = (query: string, search = '') =>
    fetch(`${rig.url}/${search}`, { method: 'POST', headers: account.headers, body: query })

  test('@clickhouse/client streams every row, in every format that it can stream', async () => {
    const formats = ['JSONEachRow', 'JSONStringsEachRow', 'JSONCompactEachRowWithNamesAndTypes', 'CSV'] as const
    for (const format of formats) {
      const result = await client.query({ query: LARGE, format })
      let rows = 0
      for await (const piece of result.stream()) rows += piece.length
      assert.equal(rows, ROWS + (format.endsWith('AndTypes') ? 2 : 0), format)
    }
  })

  test('@clickhouse/client reads Parquet as a stream of bytes, compressed too', async () => {
    const zipped = clientOf(rig, account, { compression: { response: true } })
    for (const each of [client, zipped]) {
      const { stream } = await each.exec({ query: `${LARGE} FORMAT Parquet` })
      const bytes = Buffer.concat(await stream.toArray())
      assert.deepEqual([bytes.subarray(0, 4).toString(), bytes.subarray(-4).toString()], ['PAR1', 'PAR1'])
      assert.ok(bytes.length > ROWS * 88)
    }
    await zipped.close()
  })

  test('a query that fails after its first rows is an error for every client', async () => {
    for (const format of ['JSONEachRow', 'RowBinary', 'Native', 'TabSeparated']) {
      const response = await request(`${FAILING} FORMAT ${format}`)
      assert.equal(response.status, 200)
      await assert.rejects(response.arrayBuffer(), `${format}: the body looks complete`)
    }
    const result = await client.query({ query: FAILING, format: 'JSONEachRow' })
    await assert.rejects(
      async () => {
        for await (const _ of result.stream());
      },
      (error: unknown) => error instanceof ClickHouseError && error.type === 'CANNOT_PARSE_TEXT',
    )
    const login = ['-u', `${account.username}:${account.password}`, '-H', `x-token: ${account.token}`]
    const { code, stdout } = await curl(['-s', '-i', ...login, '--data', FAILING, `${rig.url}/`])
    assert.equal(code, 18, 'curl: a partial file')
    const tag = /x-clickhouse-exception-tag: (\w{16})\r/i.exec(stdout)?.[1] ?? ''
    const trailer = new RegExp(
      `\\r\\n__exception__\\r\\n${tag}\\r\\n(Code: 6\\. DB::Exception: [^\\n]* \\(CANNOT_PARSE_TEXT\\)\\n)(\\d+) ${tag}\\r\\n__exception__\\r\\n`,
    )
    const [, message = '', length] = trailer.exec(stdout) ?? []
    assert.equal(Number(length), Buffer.byteLength(message))
    assert.doesNotMatch(stdout, /Conversion Error|Could not convert/)
  })

  test('the error is in a compressed body, too', async () => {
    const zipped = clientOf(rig, account, { compression: { response: true } })
    const result = await zipped.query({ query: FAILING, format: 'JSONEachRow' })
    await assert.rejects(async () => {
      for await (const _ of result.stream());
    })
    await zipped.close()
    const login = ['-u', `${account.username}:${account.password}`, '-H', `x-token: ${account.token}`]
    const headers = ['-H', 'accept-encoding: gzip']
    const { code, bytes } = await curl([
      '-s',
      ...headers,
      ...login,
      '--data',
      FAILING,
      `${rig.url}/?enable_http_compression=1`,
    ])
    assert.equal(code, 18)
    const body = gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }).toString()
    assert.match(body, /\r\n__exception__\r\n\w{16}\r\nCode: 6\./)
  })

  test('a query that reaches its time limit or its row limit after its first rows is an error', async () => {
    const cases = [
      [{ max_execution_time: 3 }, 'TIMEOUT_EXCEEDED'],
      [{ max_result_rows: '50000' }, 'TOO_MANY_ROWS_OR_BYTES'],
    ] as const
    for (const [clickhouse_settings, type] of cases) {
      await assert.rejects(
        async () => {
          const result = await client.query({ query: ENDLESS, format: 'JSONEachRow', clickhouse_settings })
          for await (const _ of result.stream());
        },
        (error: unknown) => error instanceof ClickHouseError && error.type === type,
        type,
      )
    }
    await until('no query runs', () => rig.indexer.status().runningQueries === 0)
  })

  test('wait_end_of_query holds the result until it is complete, so an error has its status', async () => {
    const failing = await request(FAILING, '?wait_end_of_query=1')
    assert.deepEqual([failing.status, failing.headers.get('x-clickhouse-exception-code')], [400, '6'])
    assert.match(await failing.text(), /^Code: 6\. [^\n]*\n$/)
    const complete = await request(`${LARGE} FORMAT TabSeparated`, '?wait_end_of_query=1')
    const summary = JSON.parse(complete.headers.get('x-clickhouse-summary') ?? '') as { result_rows: string }
    assert.equal(summary.result_rows, String(ROWS))
    assert.equal((await complete.text()).split('\n').length, ROWS + 1)
  })

  test('a client that disconnects in the middle ends its query', async () => {
    const controller = new AbortController()
    const response = await fetch(rig.url, {
      method: 'POST',
      headers: account.headers,
      body: ENDLESS,
      signal: controller.signal,
    })
    const reader = response.body?.getReader()
    await reader?.read()
    assert.equal(rig.indexer.status().runningQueries, 1)
    controller.abort()
    await until('it ended', () => rig.indexer.status().runningQueries === 0)
    assert.equal(await (await request('SELECT 1')).text(), '1\n')
  })

  test('ingest continues while a client reads slowly', async () => {
    const response = await request(ENDLESS)
    const reader = response.body?.getReader()
    await reader?.read()
    const head = rig.indexer.status().ingest?.headSlot ?? 0
    await until('ingest continues', () => (rig.indexer.status().ingest?.headSlot ?? 0) > head + 20, 60_000)
    await reader?.cancel()
    await until('it ended', () => rig.indexer.status().runningQueries === 0)
  })
})

function curl(args: readonly string[]): Promise<{ code: number; stdout: string; bytes: Buffer }> {
  return new Promise((resolve) => {
    execFile('curl', args, { encoding: 'buffer', maxBuffer: 2 ** 28 }, (error, bytes) => {
      resolve({ code: Number(error?.code ?? 0), stdout: bytes.toString('latin1'), bytes })
    })
  })
}
