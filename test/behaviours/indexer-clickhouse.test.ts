import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { until } from '../../src/host/test-wait.ts'
import { CLICKHOUSE_ADMIN, type ClickHouseServer, startClickHouse } from '../support/clickhouse.ts'
import { type IndexerAccount, type IndexerRig, startIndexerRig } from '../support/indexer.ts'

const run = promisify(execFile)

describe("queries on the operator's ClickHouse, Debian's server behind the gateway", () => {
  let server: ClickHouseServer
  let rig: IndexerRig
  let account: IndexerAccount
  let unknown: IndexerAccount
  let client: ClickHouseClient
  before(async () => {
    server = await startClickHouse()
    rig = await startIndexerRig(
      // Longer than the tests wait for anything: what ends sooner was ended.
      { query: { secondsMax: 120, rowsMax: 200_000, concurrentPerSubscription: 2 } },
      { url: server.url, ...CLICKHOUSE_ADMIN, database: 'chain' },
    )
    account = await rig.subscribe('analyst')
    unknown = await rig.subscribe('forgotten')
    await server.setReaders([{ user: account.username, password: account.password }])
    client = createClient({
      url: rig.url,
      username: account.username,
      password: account.password,
      http_headers: { 'x-token': account.token },
      log: { level: ClickHouseLogLevel.OFF },
    })
    await until('blocks are indexed', () => (rig.indexer.status().ingest?.transactions ?? 0) > 20, 60_000)
  })
  after(async () => {
    await client?.close()
    await rig?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
  })

  const ask = (query: string, headers: Record<string, string> = account.headers, fields = '') =>
    fetch(`${rig.url}/?${fields}`, { method: 'POST', headers, body: query })
  const customerQueries = () =>
    server.run(
      "SELECT count() FROM system.processes WHERE query NOT LIKE '%system.processes%' AND query LIKE '%numbers%'",
    )

  test('@clickhouse/client: ping, formats, a long stream, an error', async () => {
    assert.deepEqual(await client.ping(), { success: true })
    assert.equal((await client.ping({ select: true })).success, true)
    const query = 'SELECT slot, fee_payer, signers FROM transactions ORDER BY slot, tx_index LIMIT 2'
    const json = await (await client.query({ query, format: 'JSON' })).json<{ slot: string; signers: string[] }>()
    assert.deepEqual(
      json.meta?.map(({ name, type }) => `${name} ${type}`),
      ['slot UInt64', 'fee_payer String', 'signers Array(String)'],
    )
    assert.equal(typeof json.data[0]?.slot, 'string')
    const csv = await (await client.query({ query, format: 'CSVWithNames' })).text()
    assert.match(csv, /^"slot","fee_payer","signers"\n\d+,"\w+","\['\w+'\]"\n/)
    const answer = await client.query({ query: 'SELECT number FROM numbers(150000)', format: 'JSONEachRow' })
    let rows = 0
    for await (const piece of answer.stream()) rows += piece.length
    assert.equal(rows, 150_000)
    await assert.rejects(client.query({ query: 'SELECT * FROM nosuch', format: 'JSON' }), /nosuch/)
  })

  test('curl, by address and by body, with a receipt and the own query id', async () => {
    const login = ['-s', '-i', '-u', `${account.username}:${account.password}`, '-H', `x-token: ${account.token}`]
    const byBody = await run('curl', [
      ...login,
      '--data',
      'SELECT 1 AS x FORMAT JSONEachRow',
      `${rig.url}/?query_id=mine`,
    ])
    assert.match(byBody.stdout, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\{"x":1\}\n$/)
    assert.match(byBody.stdout, /x-clickhouse-query-id: mine\r/i)
    assert.match(byBody.stdout, /x-sluice-coverage-slot: [1-9]\d*/i)
    const byAddress = await run('curl', [
      ...login,
      '-G',
      '--data-urlencode',
      "query=SELECT 'a\tb', NULL",
      `${rig.url}/`,
    ])
    assert.match(byAddress.stdout, /\r\n\r\na\\tb\t\\N\n$/)
  })

  test('the answer is packed when the client asks for it', async () => {
    const zipped = createClient({
      url: rig.url,
      username: account.username,
      password: account.password,
      http_headers: { 'x-token': account.token },
      log: { level: ClickHouseLogLevel.OFF },
      compression: { response: true, request: true },
    })
    const answer = await zipped.query({ query: 'SELECT number FROM numbers(1000)', format: 'JSON' })
    assert.equal((await answer.json()).rows, 1000)
    await zipped.close()
  })

  test('rows and coverage are those of the chain', async () => {
    const coverage = await (await ask("SELECT to_slot, open_gaps FROM coverage WHERE table_name = 'blocks'")).text()
    assert.match(coverage, /^[1-9]\d*\t0\n$/)
    const whole = await (await ask('SELECT sum(tx_count - vote_tx_count) FROM blocks')).text()
    assert.ok(Number(whole) > 20)
    const accounts = await (await ask('SELECT count() > 0, count() = uniqExact(pubkey) FROM accounts')).text()
    assert.equal(accounts, '1\t1\n')
  })

  test('customers read; limits of the gateway hold', async () => {
    const written = await ask('CREATE TABLE chain.mine (x UInt8) ENGINE = Memory')
    assert.notEqual(written.status, 200)
    assert.match(await written.text(), /Code: 164|readonly/i)
    const many = await ask(
      'SELECT number FROM numbers(300000)',
      account.headers,
      'max_result_rows=1000000&wait_end_of_query=1',
    )
    assert.match(await many.text(), /Code: 396/)
    const setting = await ask('SELECT 1', account.headers, 'max_memory_usage=1')
    assert.equal(setting.status, 404)
    assert.match(await setting.text(), /Code: 115/)
    assert.equal((await ask('SELECT 1', account.headers, 'database=system')).status, 404)
    assert.equal((await ask('SELECT currentDatabase()', account.headers, 'database=solana')).status, 200)
  })

  test('either half missing or wrong is the same 401, and the server is not asked', async () => {
    const { username, password, token } = account
    const basic = (name: string, secret: string) => `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}`
    const login = basic(username, password)
    const seen = new Set<string>()
    for (const headers of [
      { authorization: login },
      { 'x-token': token },
      { authorization: basic(username, 'wrong'), 'x-token': token },
      { authorization: login, 'x-token': unknown.token },
      { authorization: basic(CLICKHOUSE_ADMIN.user, CLICKHOUSE_ADMIN.password), 'x-token': token },
    ]) {
      const answer = await ask('SELECT 1', headers as Record<string, string>)
      seen.add(`${answer.status} ${await answer.text()}`)
    }
    assert.equal(seen.size, 1)
    assert.match([...seen].join(), /^401 Code: 516\. DB::Exception: .*AUTHENTICATION_FAILED/)
    // Good here and not known there: the operator has not granted it.
    const forgotten = await ask('SELECT 1', unknown.headers)
    assert.equal(forgotten.status, 401)
    assert.match(await forgotten.text(), /Code: 516/)
  })

  test('who leaves takes the query along', async () => {
    const controller = new AbortController()
    const heavy = client.query({
      query: 'SELECT sum(sipHash64(number)) FROM numbers(100000000000)',
      abort_signal: controller.signal,
    })
    await until('the server computes', async () => (await customerQueries()) === '1\n')
    controller.abort()
    await assert.rejects(heavy)
    await until('the server has stopped', async () => (await customerQueries()) === '0\n')
    await until('the seat is free', () => rig.indexer.status().runningQueries === 0)
  })

  test('a query that takes too long is ended, and a third one at a time is refused', async () => {
    const heavy = 'SELECT sum(sipHash64(number)) FROM numbers(100000000000)'
    const both = [1, 2].map((seconds) => ask(heavy, account.headers, `max_execution_time=${seconds}`))
    await until('both run', () => rig.indexer.status().runningQueries === 2)
    const third = await ask('SELECT 1')
    assert.equal(third.status, 429)
    assert.match(await third.text(), /Code: 202.*Maximum: 2/)
    for (const answer of await Promise.all(both)) assert.match(await answer.text(), /Code: 159/)
    await until('the server has stopped', async () => (await customerQueries()) === '0\n')
  })

  test('a server that is gone: a retryable answer, ingest waits, and all goes on when it is back', async () => {
    await server.kill()
    const away = await ask('SELECT 1')
    assert.equal(away.status, 503)
    assert.ok(Number(away.headers.get('retry-after')) >= 1)
    assert.match(await away.text(), /Code: 209\..*SOCKET_TIMEOUT/)
    await server.start()
    const head = rig.indexer.status().ingest?.headSlot ?? 0
    await until('ingest goes on', () => (rig.indexer.status().ingest?.headSlot ?? 0) > head + 2, 60_000)
    assert.equal(await (await ask('SELECT 1')).text(), '1\n')
  })

  test("the operator's own question", async () => {
    const { body } = await rig.indexer.query('SELECT count() > 0 FROM blocks', 'TabSeparated')
    assert.equal(Buffer.from(body).toString(), '1\n')
    await assert.rejects(rig.indexer.query('DROP TABLE blocks', 'TabSeparated'), /readonly|Code: 164/i)
  })
})
