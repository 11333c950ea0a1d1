import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { until } from '../../../src/platform/process/test-wait.ts'
import type { IndexerAccount, IndexerRig } from './start.ts'

const run = promisify(execFile)

export type ClientRig = {
  readonly rig: IndexerRig
  readonly account: IndexerAccount
  readonly client: ClickHouseClient
}

/** The official client with the options of a customer. */
export function clientOf(
  { url }: Pick<IndexerRig, 'url'>,
  { username, password, token }: IndexerAccount,
  options: Parameters<typeof createClient>[0] = {},
): ClickHouseClient {
  return createClient({
    url,
    username,
    password,
    http_headers: { 'x-token': token },
    log: { level: ClickHouseLogLevel.OFF },
    ...options,
  })
}

/** Tests with common clients, for either engine; `heavy` runs for minutes there, `long` returns `longRows` rows. */
export function testClients(
  started: () => ClientRig,
  { heavy, long, longRows }: { readonly heavy: string; readonly long: string; readonly longRows: number },
): void {
  test('ping, with and without a query', async () => {
    const { client } = started()
    assert.deepEqual(await client.ping(), { success: true })
    assert.equal((await client.ping({ select: true })).success, true)
  })

  test('formats', async () => {
    const { client } = started()
    const query = 'SELECT slot, fee_payer, signers FROM transactions ORDER BY slot, tx_index LIMIT 2'
    const json = await (await client.query({ query, format: 'JSON' })).json<{ slot: string; signers: string[] }>()
    assert.deepEqual(
      json.meta?.map(({ name, type }) => `${name} ${type}`),
      ['slot UInt64', 'fee_payer String', 'signers Array(String)'],
    )
    assert.equal(json.rows, 2)
    assert.equal(typeof json.data[0]?.slot, 'string')
    assert.equal(json.data[0]?.signers.length, 1)
    const counted = await (await client.query({ query: 'SELECT count() FROM blocks', format: 'JSON' })).json()
    assert.deepEqual(counted.meta, [{ name: 'count()', type: 'UInt64' }])
    const compact = await (await client.query({ query, format: 'JSONCompact' })).json<unknown[]>()
    assert.equal(compact.data.length, 2)
    const csv = await (await client.query({ query, format: 'CSVWithNames' })).text()
    assert.match(csv, /^"slot","fee_payer","signers"\n\d+,"\w+","\['\w+'\]"\n/)
    const tabs = await (await client.query({ query, format: 'TabSeparatedWithNames' })).text()
    assert.match(tabs, /^slot\tfee_payer\tsigners\n\d+\t\w+\t\['\w+'\]\n/)
  })

  test('a stream of many rows', async () => {
    const response = await started().client.query({ query: long, format: 'JSONEachRow' })
    let rows = 0
    for await (const piece of response.stream()) rows += piece.length
    assert.equal(rows, longRows)
  })

  test('an aborted query ends on the server too', async () => {
    const { rig, client } = started()
    const controller = new AbortController()
    const running = client.query({ query: heavy, format: 'JSONEachRow', abort_signal: controller.signal })
    await until('it runs', () => rig.indexer.status().runningQueries === 1)
    controller.abort()
    await assert.rejects(running)
    await until('it ended', () => rig.indexer.status().runningQueries === 0)
  })

  test('compression of request and response', async () => {
    const { rig, account } = started()
    const zipped = clientOf(rig, account, { compression: { response: true, request: true } })
    const response = await zipped.query({ query: long, format: 'JSON' })
    assert.equal((await response.json()).rows, longRows)
    await zipped.close()
  })

  test('each account has one row, however often it changed', async () => {
    const query = 'SELECT count() > 0 AS some, count() = uniqExact(pubkey) AS once FROM accounts'
    const rows = await (await started().client.query({ query, format: 'JSONEachRow' })).json<Record<string, unknown>>()
    assert.deepEqual(
      rows.map(({ some, once }) => [Number(some), Number(once)]),
      [[1, 1]],
    )
  })

  test('curl, with the query in the URL and in the body, the coverage header and the query id of the client', async () => {
    const { rig, account } = started()
    const login = ['-s', '-i', '-u', `${account.username}:${account.password}`, '-H', `x-token: ${account.token}`]
    const body = ['--data', 'SELECT 1 AS x FORMAT JSONEachRow', `${rig.url}/?query_id=mine`]
    const byBody = await run('curl', [...login, ...body])
    assert.match(byBody.stdout, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\{"x":1\}\n$/)
    assert.match(byBody.stdout, /x-clickhouse-query-id: mine\r/i)
    assert.match(byBody.stdout, /x-sluice-coverage-slot: [1-9]\d*/i)
    const inUrl = ['-G', '--data-urlencode', "query=SELECT 'a\tb', NULL", `${rig.url}/`]
    const byUrl = await run('curl', [...login, ...inUrl])
    assert.match(byUrl.stdout, /\r\n\r\na\\tb\t\\N\n$/)
  })
}
