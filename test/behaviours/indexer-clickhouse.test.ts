import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import type { ClickHouseClient } from '@clickhouse/client'
import { until } from '../../src/platform/process/test-wait.ts'
import { CLICKHOUSE_ADMIN, type ClickHouseServer, startClickHouse } from '../support/indexer/clickhouse.ts'
import { clientOf, testClients } from '../support/indexer/clients.ts'
import { type IndexerAccount, type IndexerRig, startIndexerRig } from '../support/indexer/start.ts'

const HEAVY = 'SELECT sum(sipHash64(number)) FROM numbers(100000000000)'

describe("queries on the operator's ClickHouse, Debian's server behind the gateway", () => {
  let server: ClickHouseServer
  let rig: IndexerRig
  let account: IndexerAccount
  let unknown: IndexerAccount
  let client: ClickHouseClient
  before(async () => {
    server = await startClickHouse()
    rig = await startIndexerRig(
      // Longer than any wait of the tests: a query that ends sooner was killed.
      { query: { secondsMax: 120, rowsMax: 200_000, concurrentPerSubscription: 2 } },
      { url: server.url, ...CLICKHOUSE_ADMIN, database: 'chain' },
    )
    account = await rig.subscribe('analyst')
    unknown = await rig.subscribe('forgotten')
    await server.setReaders([{ user: account.username, password: account.password }])
    client = clientOf(rig, account)
    await until('blocks are indexed', () => (rig.indexer.status().ingest?.transactions ?? 0) > 20, 60_000)
  })
  after(async () => {
    await client?.close()
    await rig?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
  })

  testClients(() => ({ rig, account, client }), {
    heavy: HEAVY,
    long: 'SELECT number FROM numbers(150000)',
    longRows: 150_000,
  })

  const ask = (query: string, headers: Record<string, string> = account.headers, fields = '') =>
    fetch(`${rig.url}/?${fields}`, { method: 'POST', headers, body: query })
  const customerQueries = () =>
    server.run(
      "SELECT count() FROM system.processes WHERE query NOT LIKE '%system.processes%' AND query LIKE '%numbers%'",
    )

  test('an error of the server is an error of the client', async () => {
    await assert.rejects(client.query({ query: 'SELECT * FROM nosuch', format: 'JSON' }), /nosuch/)
  })

  test('rows and coverage match the chain', async () => {
    const coverage = await (await ask("SELECT to_slot, open_gaps FROM coverage WHERE table_name = 'blocks'")).text()
    assert.match(coverage, /^[1-9]\d*\t0\n$/)
    const transactions = await (await ask('SELECT sum(tx_count - vote_tx_count) FROM blocks')).text()
    assert.ok(Number(transactions) > 20)
  })

  test('the ledger has the bytes of results as they are sent, and not the text of an error', async () => {
    const { access, on } = rig.gateway
    const caller = access.authenticate({ token: account.token }, 'indexer', Date.now())
    assert.ok(caller.ok)
    const ledger = async () => {
      await access.usage.flush()
      const rows = await on.store.usage({ subscriptionId: caller.subscription.id })
      return rows.reduce((sum, { bytes }) => sum + bytes, 0)
    }
    const before = await ledger()
    const large = await bodyBytes('SELECT number FROM numbers(50000)', '')
    const compressed = await bodyBytes('SELECT number FROM numbers(50000)', 'enable_http_compression=1')
    assert.ok(large > 250_000 && compressed > 1000 && compressed < large, `${large} and ${compressed} bytes`)
    assert.equal(await ledger(), before + large + compressed)
    // Found by the server, not before it.
    assert.match(await (await ask("SELECT toInt32('x')")).text(), /Code: 6\b/)
    assert.equal(await ledger(), before + large + compressed)
  })

  /** Bytes of the body as they come, before they are inflated. */
  function bodyBytes(query: string, fields: string): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    const headers = { ...account.headers, 'accept-encoding': 'gzip' }
    const sent = request(`${rig.url}/?${fields}`, { method: 'POST', headers, agent: false }, (response) => {
      let bytes = 0
      response.on('data', (chunk: Buffer) => (bytes += chunk.length))
      response.on('end', () => resolve(bytes))
    })
    sent.on('error', reject)
    sent.end(query)
    return promise
  }

  test('customers may only read, within the limits of the gateway', async () => {
    const written = await ask('CREATE TABLE chain.mine (x UInt8) ENGINE = Memory')
    assert.notEqual(written.status, 200)
    assert.match(await written.text(), /Code: 164|readonly/i)
    const many = await ask(
      'SELECT number FROM numbers(300000)',
      account.headers,
      'max_result_rows=1000000&wait_end_of_query=1',
    )
    assert.match(await many.text(), /Code: 396/)
    const large = await ask('SELECT number FROM numbers(1000)', account.headers, 'max_result_bytes=1000')
    assert.match(await large.text(), /Code: 396/)
    // This server writes an error after the first rows as a last row, so its results are complete before they are sent.
    const late = await ask('SELECT number FROM numbers(300000)')
    assert.equal(late.status, 500)
    assert.match(await late.text(), /^Code: 396\b/)
    const setting = await ask('SELECT 1', account.headers, 'max_memory_usage=1')
    assert.equal(setting.status, 404)
    assert.match(await setting.text(), /Code: 115/)
    assert.equal((await ask('SELECT 1', account.headers, 'database=system')).status, 404)
    assert.equal((await ask('SELECT currentDatabase()', account.headers, 'database=solana')).status, 200)
  })

  test('a missing or wrong login or token gives the same 401 without a request to the server', async () => {
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
      const response = await ask('SELECT 1', headers as Record<string, string>)
      seen.add(`${response.status} ${await response.text()}`)
    }
    assert.equal(seen.size, 1)
    assert.match([...seen].join(), /^401 Code: 516\. DB::Exception: .*AUTHENTICATION_FAILED/)
    // The gateway accepts the login and the server does not: the operator has not granted it.
    const forgotten = await ask('SELECT 1', unknown.headers)
    assert.equal(forgotten.status, 401)
    assert.match(await forgotten.text(), /Code: 516/)
  })

  test('a client that disconnects ends its query at the server', async () => {
    const controller = new AbortController()
    const heavy = client.query({
      query: HEAVY,
      abort_signal: controller.signal,
    })
    await until('the server computes', async () => (await customerQueries()) === '1\n')
    controller.abort()
    await assert.rejects(heavy)
    await until('the server has stopped', async () => (await customerQueries()) === '0\n')
    await until('the permit is released', () => rig.indexer.status().runningQueries === 0)
  })

  test('a query over its time limit is ended, and a third concurrent one is refused', async () => {
    const both = [1, 2].map((seconds) => ask(HEAVY, account.headers, `max_execution_time=${seconds}`))
    await until('both run', () => rig.indexer.status().runningQueries === 2)
    const third = await ask('SELECT 1')
    assert.equal(third.status, 429)
    assert.match(await third.text(), /Code: 202.*concurrentPerSubscription is 2/)
    for (const response of await Promise.all(both)) assert.match(await response.text(), /Code: 159/)
    await until('the server has stopped', async () => (await customerQueries()) === '0\n')
  })

  test('while the server is down queries get a retryable error and ingest waits; both continue after its restart', async () => {
    await server.kill()
    const away = await ask('SELECT 1')
    assert.equal(away.status, 503)
    assert.ok(Number(away.headers.get('retry-after')) >= 1)
    assert.match(await away.text(), /Code: 209\..*SOCKET_TIMEOUT/)
    await server.start()
    const head = rig.indexer.status().ingest?.headSlot ?? 0
    await until('ingest continues', () => (rig.indexer.status().ingest?.headSlot ?? 0) > head + 2, 60_000)
    assert.equal(await (await ask('SELECT 1')).text(), '1\n')
  })

  test('runs a query of the operator, read-only', async () => {
    const { body } = await rig.indexer.query('SELECT count() > 0 FROM blocks', 'TabSeparated')
    assert.equal(Buffer.from(body).toString(), '1\n')
    await assert.rejects(rig.indexer.query('DROP TABLE blocks', 'TabSeparated'), /readonly|Code: 164/i)
  })
})
