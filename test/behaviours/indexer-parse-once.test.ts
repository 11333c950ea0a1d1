import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { createClickHouseProxy } from '../../src/indexer/clickhouse/proxy.ts'
import { createQueryRunner } from '../../src/indexer/duckdb/query-runner.ts'
import { openQueryDatabase } from '../../src/indexer/duckdb/test-queries.ts'
import { type IndexerServerDeps, startIndexerServer } from '../../src/indexer/http.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { QueryError } from '../../src/indexer/query/error.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { AMPLE_HELD_BYTES } from '../support/gateway/held-bytes.ts'

const LIMITS = { secondsMax: 30, rowsMax: 1000, bytesMax: 1_000_000 }
const COMMON = {
  clock: systemClock,
  random: secureRandom,
  log: silentLogger,
  metrics: indexerMetrics(createMetricsRegistry()),
}

/** Counts, in this process, tokenisations of `query` (each begins with one search for NUL) and parse trees read from JSON. */
function countWork(t: TestContext, query: string): () => { readonly tokenised: number; readonly trees: number } {
  const { indexOf } = String.prototype
  const searches = t.mock.method(String.prototype, 'indexOf', function (this: string, text: string, from?: number) {
    if (text === '\0' && String(this) === query) tokenised++
    return indexOf.call(this, text, from)
  })
  const parse = JSON.parse.bind(JSON)
  const reads = t.mock.method(JSON, 'parse', (text: string) => {
    if (text.includes('"statements"')) trees++
    return parse(text) as unknown
  })
  let tokenised = 0
  let trees = 0
  return () => {
    searches.mock.restore()
    reads.mock.restore()
    return { tokenised, trees }
  }
}

async function post(deps: Pick<IndexerServerDeps, 'engine'>, query: string): Promise<number> {
  const subscription = { id: 'sub_1', plan: 'pro' }
  await using server = await startIndexerServer(
    { listen: { host: '127.0.0.1', port: 0 }, limits: LIMITS, readSecondsMax: 60, displayName: 'test' },
    {
      ...COMMON,
      ...deps,
      access: {
        authenticateIndexer: () => ({ ok: true, subscription }),
        admit: () => ({ ok: true }),
        countBytes() {},
      } as never,
      coverageSlot: () => 77,
      heldBytes: AMPLE_HELD_BYTES,
      onRefused() {},
      onNotAfter() {},
    },
  )
  const response = await fetch(`http://127.0.0.1:${server.address.port}/`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('u_reader:password')}`, 'x-token': 'token' },
    body: query,
  })
  await response.text()
  return response.status
}

for (const [query, trees] of [
  ["SELECT leader, count() FROM blocks WHERE leader <> 'x' GROUP BY leader SETTINGS max_threads = 1 FORMAT JSON", 1],
  ['DESCRIBE TABLE blocks FORMAT JSON', 0],
] as const) {
  test(`the database process tokenises a query once and reads its parse tree once: ${query}`, async (t) => {
    using opened = await openQueryDatabase()
    const runner = createQueryRunner(opened.database, { heldBytesMax: 2 ** 20, heldBytesPerSubscription: 2 ** 20 })
    const counted = countWork(t, query)
    const job = { query, parameters: {}, defaultFormat: 'JSON', settings: {}, limits: LIMITS }
    const response = await runner.run(1, job, 'one')
    assert.deepEqual(counted(), { tokenised: 1, trees })
    assert.ok(response.ok)
  })

  test(`the HTTP server in front of the database process does not parse a query: ${query}`, async (t) => {
    const counted = countWork(t, query)
    const run = () => Promise.reject(new QueryError('READONLY', 'reached the executor'))
    const status = await post({ engine: { executor: { run, running: 0 } as never } }, query)
    assert.deepEqual([status, counted()], [400, { tokenised: 0, trees: 0 }])
  })

  test(`the HTTP server in front of ClickHouse tokenises a query once: ${query}`, async (t) => {
    const clickhouse = createServer((_request, response) => response.end('ok\n')).listen(0, '127.0.0.1')
    await new Promise((resolve) => clickhouse.once('listening', resolve))
    using proxy = createClickHouseProxy(
      {
        url: `http://127.0.0.1:${(clickhouse.address() as { port: number }).port}`,
        user: 'gateway',
        password: 'password',
        database: 'solana',
        limits: LIMITS,
        concurrent: 4,
        concurrentPerSubscription: 4,
        waitingMax: 0,
        waitSecondsMax: 0,
      },
      COMMON,
    )
    const counted = countWork(t, query)
    const status = await post({ engine: { proxy } }, query)
    clickhouse.closeAllConnections()
    clickhouse.close()
    assert.deepEqual([status, counted()], [200, { tokenised: 1, trees: 0 }])
  })
}
