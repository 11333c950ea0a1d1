import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../src/core/test-seed.ts'
import { CATALOGUE_TABLES } from '../../src/indexer/catalogue/catalogue.ts'
import { applyClickHousePolicy } from '../../src/indexer/clickhouse/policy/policy.ts'
import { createClickHouseProxy } from '../../src/indexer/clickhouse/proxy.ts'
import { openClickHouseStore } from '../../src/indexer/clickhouse/store.ts'
import { startIndexerServer } from '../../src/indexer/http.ts'
import { makeTestChain } from '../../src/indexer/ingest/test-blocks.ts'
import { batchOf } from '../../src/indexer/ingest/test-rows.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { parseStatement } from '../../src/indexer/query/statement.ts'
import { CANARY, CLICKHOUSE_FUZZ, makeStatement } from '../../src/indexer/query/test-fuzz.ts'
import { clickHouseEscapes, hostilePieces, SERVED_BY_GATEWAY } from '../../src/indexer/query/test-hostile.ts'
import { PUBLISHED_NAMES } from '../../src/indexer/schema.ts'
import { delay, systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { AMPLE_HELD_BYTES } from '../support/gateway/held-bytes.ts'
import { startGateway } from '../support/gateway/start.ts'
import { CLICKHOUSE_ADMIN, type ClickHouseServer, startClickHouse } from '../support/indexer/clickhouse.ts'
import { type IndexerAccount, subscribeIndexer } from '../support/indexer/start.ts'
import { createRandom, repeatsOf, seedOf } from '../support/process/property.ts'

const GENERATED = repeatsOf({ short: 400, full: 10_000 })
/** Generated statements that pass the policy. */
const RUN = repeatsOf({ short: 300, full: 100_000 })
const DATABASE = 'chain'
const LIMITS = { secondsMax: 10, rowsMax: 100_000, bytesMax: 10_000_000 }

/** This old server has no grants and runs every statement, so only the gateway's policy protects it. */
describe("hostile statements in front of the operator's ClickHouse", () => {
  const closing = new AsyncDisposableStack()
  let server: ClickHouseServer
  let url: string
  let account: IndexerAccount
  let other: IndexerAccount
  /** Connections to a port that no customer's statement may reach. */
  let touched = 0
  let port = 0
  before(async () => {
    const canary = createServer((socket) => {
      touched++
      socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 7\r\n\r\ncanary\n')
    }).listen(0, '127.0.0.1')
    await once(canary, 'listening')
    port = (canary.address() as { port: number }).port
    closing.defer(() => void canary.close())
    server = closing.use(await startClickHouse())
    const connection = { url: server.url, ...CLICKHOUSE_ADMIN, database: DATABASE }
    await using store = await openClickHouseStore(connection, {
      nowMs: () => systemClock.nowMs(),
      wait: (ms) => delay(systemClock, ms),
    })
    await store.write(batchOf(makeTestChain({ seed: 3, blocks: 10, transactionsPerBlock: 10 })))
    const gateway = closing.use(await startGateway([{ name: 'none', rpc: 'http://127.0.0.1:9' }]))
    const metrics = indexerMetrics(createMetricsRegistry())
    const common = { clock: systemClock, random: secureRandom, log: silentLogger, metrics }
    const target = {
      ...connection,
      limits: LIMITS,
      concurrent: 8,
      concurrentPerSubscription: 8,
      waitingMax: 0,
      waitSecondsMax: 0,
    }
    const proxy = closing.use(createClickHouseProxy(target, common))
    const endpoint = closing.use(
      await startIndexerServer(
        { listen: { host: '127.0.0.1', port: 0 }, limits: LIMITS, readSecondsMax: 60, displayName: 'test' },
        {
          ...common,
          access: gateway.access,
          engine: { proxy },
          coverageSlot: () => 1,
          heldBytes: AMPLE_HELD_BYTES,
          onRefused() {},
          onNotAfter() {},
        },
      ),
    )
    url = `http://127.0.0.1:${endpoint.address.port}`
    account = await subscribeIndexer(gateway, 'customer')
    other = await subscribeIndexer(gateway, 'other-customer')
    await server.setReaders([account, other].map(({ username, password }) => ({ user: username, password })))
  })
  after(() => closing.disposeAsync())

  const ask = async (query: string, fields = '') => {
    const response = await fetch(`${url}/?${fields}`, { method: 'POST', headers: account.headers, body: query })
    return { status: response.status, text: await response.text() }
  }
  /** Runs queries of the other customer until the signal is aborted. */
  const keepAsking = async (signal: AbortSignal): Promise<void> => {
    const body = 'SELECT sum(sipHash64(number)) FROM numbers(100000000000)'
    while (!signal.aborted)
      await fetch(url, { method: 'POST', headers: other.headers, body, signal }).then(
        (response) => response.text(),
        () => '',
      )
  }
  /** Everything that a statement could have changed. */
  const state = () =>
    server.run(
      `SELECT (SELECT count() FROM system.tables), (SELECT count() FROM system.databases), (SELECT count() FROM ${DATABASE}.transactions),
         (SELECT sum(cityHash64(*)) FROM ${DATABASE}.blocks), (SELECT count() FROM system.mutations), (SELECT sum(changed) FROM system.settings),
         (SELECT groupArray(name) FROM (SELECT name FROM system.columns WHERE database = '${DATABASE}' ORDER BY table, name))`,
    )
  const revealsNothing = (text: string, statement: string): void => {
    for (const secret of [other.username, 'other-customer', CLICKHOUSE_ADMIN.password, CLICKHOUSE_ADMIN.user])
      assert.ok(!text.includes(secret), `${statement}: ${text.slice(0, 300)}`)
    assert.doesNotMatch(text, /root:x:|canary|\b_progress\b|NetException|Connection refused|Poco::/, statement)
  }

  test('without the gateway the server connects to the port', async () => {
    assert.equal(await server.run(`SELECT * FROM url('http://127.0.0.1:${port}/', CSV, 'x String')`), 'canary\n')
    assert.equal(touched, 1)
  })

  test('T14: every escape is refused by the gateway; nothing is written, reached or revealed', async () => {
    const reached = touched
    const unchanged = await state()
    for (const statement of clickHouseEscapes(port)) {
      const { status, text } = await ask(statement)
      assert.ok(status >= 400 && status < 502, `${statement}: ${status} ${text.slice(0, 200)}`)
      // An error of the server itself would contain its version and no type.
      assert.match(text, /^Code: \d+\. DB::Exception: [^\n]+ \([A-Z_]{3,}\)\n$/, statement)
      revealsNothing(text, statement)
    }
    for (const [statement, fields] of [
      ['DROP TABLE blocks', 'readonly=0'],
      ['SELECT 1', 'readonly=0'],
      ['SELECT 1 SETTINGS readonly = 0', ''],
      ['SELECT 1 SETTINGS max_memory_usage = 1', ''],
      ['SELECT 1', 'default_format=Template'],
      ['SELECT 1 FORMAT CapnProto', ''],
      ['', `query=${encodeURIComponent(`SELECT * FROM url('http://127.0.0.1:${port}/', CSV, 'x String')`)}`],
      ["url('http://x/', CSV, 'x String')", 'query=SELECT%20*%20FROM'],
    ] as const) {
      const { status, text } = await ask(statement, fields)
      assert.ok(status >= 400 && status < 500, `${statement} ${fields}: ${status} ${text}`)
      assert.match(text, /^Code: \d+\. DB::Exception: [^\n]+ \([A-Z_]{3,}\)\n$/, statement)
    }
    assert.equal(touched, reached)
    assert.equal(await state(), unchanged)
  })

  test('functions about the connection, SHOW SETTINGS, SET and USE are served by the gateway', async () => {
    for (const [statement, expected] of Object.entries(SERVED_BY_GATEWAY)) {
      const { status, text } = await ask(statement)
      assert.equal(status, 200, `${statement}: ${text}`)
      assert.match(text, expected, statement)
      revealsNothing(text, statement)
    }
    assert.match((await ask('USE system')).text, /UNKNOWN_DATABASE/)
    assert.match((await ask('SET max_memory_usage = 1')).text, /UNKNOWN_SETTING/)
  })

  test('SHOW, DESCRIBE and EXISTS return the schema', async () => {
    assert.match((await ask('SHOW TABLES')).text, /^account_activity\naccounts\nblocks\n/)
    assert.match((await ask('DESCRIBE TABLE blocks')).text, /^slot\tUInt64\t/)
    assert.equal((await ask('EXISTS TABLE system.processes')).text, '0\n')
    assert.match((await ask('DESCRIBE TABLE system.processes')).text, /UNKNOWN_TABLE/)
  })

  test('T14: system and information_schema have the rows of our lists, and nothing of the server', async () => {
    for (const { database, name, columns, rows } of CATALOGUE_TABLES) {
      if (rows === undefined) continue
      const { status, text } = await ask(`SELECT * FROM ${database}.${name} FORMAT JSONCompact`)
      assert.equal(status, 200, `${database}.${name}: ${text}`)
      revealsNothing(text, name)
      const { meta, data } = JSON.parse(text) as { meta: { name: string }[]; data: unknown[][] }
      assert.deepEqual(
        meta.map((column) => column.name),
        columns.map((column) => column.name),
      )
      assert.equal(data.length, rows.length, name)
    }
    const databases = await ask('SELECT d.name FROM system.databases d ORDER BY name')
    assert.equal(databases.text, 'INFORMATION_SCHEMA\ninformation_schema\nsolana\nsystem\n')
    assert.equal((await ask("SELECT count() FROM system.tables WHERE name = '_progress'")).text, '0\n')
  })

  test(`T14: ${GENERATED} statements of hostile parts do not affect the running query of another customer`, async (t) => {
    const { seed } = seedFor('hostile statements on clickhouse')
    const reached = touched
    const unchanged = await state()
    const statements = fc
      .tuple(
        fc.constantFrom(
          'SELECT',
          'SELECT * FROM',
          'SELECT 1 FROM blocks',
          'SELECT 1 IN',
          'WITH x AS (SELECT 1) SELECT',
          '',
          'FROM',
        ),
        fc.array(fc.constantFrom(...hostilePieces(port)), { maxLength: 8 }),
        fc.constantFrom(' ', '  ', '\n', '/**/', ''),
      )
      .map(([head, tail, space]) => `${head} ${tail.join(space)}`)
    const leaving = new AbortController()
    const others = keepAsking(leaving.signal)
    let ran = 0
    for (const statement of fc.sample(statements, { seed, numRuns: GENERATED })) {
      // This old server takes query parameters for unknown settings.
      const { status, text } = await ask(statement, statement.includes('{p') ? 'param_p=1' : 'max_execution_time=2')
      if (status === 200) ran++
      assert.notEqual(status, 502, statement)
      revealsNothing(text, statement)
    }
    leaving.abort()
    await others
    t.diagnostic(`${ran} of ${GENERATED} ran`)
    assert.ok(ran > 0 && ran < GENERATED, `${ran} of ${GENERATED} ran`)
    assert.equal(touched, reached)
    assert.equal(await state(), unchanged)
  })

  test(`T14: ${RUN} generated statements that pass the policy return no canary`, async (t) => {
    await server.run(`CREATE DATABASE ${CANARY}`)
    await server.run(`CREATE TABLE ${CANARY}.secret (slot UInt64, leader String, a String) ENGINE = Memory`)
    await server.run(`INSERT INTO ${CANARY}.secret VALUES (1, 'a', '${CANARY}')`)
    assert.match(await server.run(`SELECT a FROM ${CANARY}.secret`), /canary/)
    const random = createRandom(seedOf(t))
    let [made, passed, ran, broken] = [0, 0, 0, 0]
    const work = async (): Promise<void> => {
      while (passed < RUN) {
        const statement = makeStatement(CLICKHOUSE_FUZZ, random)
        made++
        try {
          applyClickHousePolicy(parseStatement(statement), { tables: PUBLISHED_NAMES, database: DATABASE })
        } catch {
          continue
        }
        passed++
        // A query that fails after its headers were sent shows as a broken connection.
        const { status, text } = await ask(statement, 'max_execution_time=2').catch(() => ({ status: 0, text: '' }))
        if (status === 200) ran++
        if (status === 0) broken++
        // An error message of the server may repeat the statement.
        assert.ok(status !== 200 || !text.includes(CANARY), `${statement}: ${text.slice(0, 300)}`)
      }
    }
    await Promise.all(Array.from({ length: 4 }, work))
    t.diagnostic(
      `${passed} of ${made} passed: ${Math.round((100 * passed) / made)} %; ${ran} gave rows, ${broken} broke off`,
    )
    assert.ok(passed >= made / 5 && ran > 0 && broken <= passed / 100, `${passed}, ${ran}, ${broken}`)
  })
})
