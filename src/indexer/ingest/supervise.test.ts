import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { indexerMetrics } from '../metrics.ts'
import { superviseIngest } from './supervise.ts'

test('the start does not wait for a server that responds to pings and is at work for minutes', {
  timeout: 30_000,
}, async (t) => {
  let statements = 0
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/ping') === true) return void response.end('Ok.\n')
    statements += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const clock = createManualClock()
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const fill = { parallel: 1, blocksMax: 1 }
  const starting = superviseIngest(
    {
      store: {
        clickhouse: { url, user: 'default', password: '', database: 'chain' },
        ...{ path: '', memoryBytes: 2 ** 26, threads: 1, rows: { includeVotes: false, includeLogs: false } },
        results: { resultBytesMax: 1 },
      } as unknown as Parameters<typeof superviseIngest>[0]['store'],
      ingest: { includeAccounts: false, batchBlocks: 1, batchMs: 100, heldMax: 1, fill },
    },
    {
      upstream: {} as unknown as Parameters<typeof superviseIngest>[1]['upstream'],
      ...{ clock, random: secureRandom, log: silentLogger },
      metrics: indexerMetrics(createMetricsRegistry()),
    },
  )
  await until('it has a statement', () => statements > 0)
  await clock.advanceAsync(20_000)
  const supervisor = await starting
  assert.equal(supervisor.status().state, 'opening')
  // A stop does not wait for the server.
  await supervisor[Symbol.asyncDispose]()
})
