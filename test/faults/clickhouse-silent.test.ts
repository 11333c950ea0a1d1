import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createClickHouseProxy } from '../../src/indexer/clickhouse/proxy.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { QueryError } from '../../src/indexer/query/error.ts'
import { readQueryRequest } from '../../src/indexer/query/request.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { CLICKHOUSE_ADMIN, startClickHouse } from '../support/indexer/clickhouse.ts'
import { startFaultProxy } from './fault-proxy.ts'
import { onBusyMachine } from './gateway-rig.ts'

/** The limit stated in the table of faults. */
const REFUSED_WITHIN_MS = 1000
/** Far beyond it, so that waiting for the time limit of the query would be noticed. */
const SECONDS_MAX = 60

test('F16: when the network to ClickHouse drops all packets, a query fails within a second; a long query on a working network does not', async (t) => {
  await using server = await startClickHouse()
  const { hostname, port } = new URL(server.url)
  await using between = await startFaultProxy({ target: { host: hostname, port: Number(port) } })
  using proxy = createClickHouseProxy(
    {
      url: `http://${between.host}:${between.port}`,
      ...CLICKHOUSE_ADMIN,
      database: 'default',
      limits: { secondsMax: SECONDS_MAX, rowsMax: 1000, bytesMax: 1_000_000 },
      concurrent: 32,
      concurrentPerSubscription: 16,
      waitingMax: 0,
      waitSecondsMax: 0,
    },
    {
      clock: systemClock,
      random: secureRandom,
      log: silentLogger,
      metrics: indexerMetrics(createMetricsRegistry()),
    },
  )
  const login = { username: CLICKHOUSE_ADMIN.user, password: CLICKHOUSE_ADMIN.password }
  const nothing = { format: undefined, database: undefined }
  /** Forwards a customer's statement without the SQL policy. */
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const query = Buffer.concat(await Array.fromAsync(request)).toString()
    const validated = { ...readQueryRequest('', nothing, new Set()), query }
    const of = { subscriptionId: 'sub_1', plan: 'p', login, request: validated, acceptEncoding: undefined, headers: {} }
    try {
      await proxy.forward({ ...of, onSent: () => {} }, response, new AbortController().signal)
    } catch (error) {
      assert.ok(error instanceof QueryError)
      response.writeHead(error.httpStatus, { 'retry-after': String(error.retryAfterSeconds) }).end(error.type)
    }
  }
  const endpoint = createServer((request, response) => void respond(request, response))
  endpoint.listen(0, '127.0.0.1')
  await once(endpoint, 'listening')
  using _closing = { [Symbol.dispose]: () => endpoint.close().closeAllConnections() }
  const ask = async (query: string) => {
    const fromMs = performance.now()
    const reply = await fetch(`http://127.0.0.1:${(endpoint.address() as AddressInfo).port}`, {
      method: 'POST',
      body: query,
    })
    const text = await reply.text()
    return {
      status: reply.status,
      text,
      retryAfter: reply.headers.get('retry-after'),
      ms: performance.now() - fromMs,
    }
  }

  assert.deepEqual([(await ask('SELECT 1')).text, proxy.running], ['1\n', 0])
  const long = await ask('SELECT sleep(2.5)')
  assert.deepEqual([long.status, long.text], [200, '0\n'], 'a long query without output is not cut off')
  assert.ok(long.ms >= 2000)

  // A query that runs when the network is cut, after one of its pings got a response.
  const before = between.bytes.downstream
  const running = ask('SELECT count() FROM system.numbers')
  // Awaited below. Where the test fails before that, it fails with the end of the server, which is not the cause.
  running.catch(() => {})
  await until('a ping got its response', () => between.bytes.downstream > before)
  const cut = between.add({ type: 'timeout', timeoutMs: 0 })
  const refused = await Promise.all(Array.from({ length: 8 }, () => ask('SELECT 1')))
  for (const { status, text, retryAfter } of refused)
    assert.deepEqual([status, text, Number(retryAfter) >= 1], [503, 'SOCKET_TIMEOUT', true])
  const longestMs = Math.max(...refused.map(({ ms }) => ms))
  t.diagnostic(`503 within ${longestMs.toFixed(0)} ms (figure: ${REFUSED_WITHIN_MS})`)
  assert.ok(longestMs <= onBusyMachine(REFUSED_WITHIN_MS, 5000), `${longestMs} ms`)
  const interrupted = await running
  assert.deepEqual([interrupted.status, interrupted.text], [503, 'SOCKET_TIMEOUT'], 'long before its time limit')
  assert.ok(interrupted.ms < (SECONDS_MAX * 1000) / 2, `${interrupted.ms} ms`)
  assert.equal(proxy.running, 0)

  cut.remove()
  await until('the server responds again', async () => (await ask('SELECT 1')).text === '1\n')
})
