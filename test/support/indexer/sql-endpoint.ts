import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Call } from '../../../src/access/admission.ts'
import type { Access } from '../../../src/access/call-access.ts'
import type { Caller } from '../../../src/access/callers.ts'
import type { Charged } from '../../../src/access/quota/charge.ts'
import { createManualClock } from '../../../src/core/clock.ts'
import { createSeededRandom } from '../../../src/core/random.ts'
import type { ClickHouseProxy } from '../../../src/indexer/clickhouse/proxy.ts'
import { startIndexerServer } from '../../../src/indexer/http.ts'
import { indexerMetrics } from '../../../src/indexer/metrics.ts'
import type { QueryError } from '../../../src/indexer/query/error.ts'
import type { QueryExecutor } from '../../../src/indexer/query/executor.ts'
import type { QueryJob } from '../../../src/indexer/query/request.ts'
import type { QueryResult } from '../../../src/indexer/query/result.ts'
import { createHeldBytes } from '../../../src/platform/http/held-bytes.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'

export const PART = Buffer.alloc(256 * 1024, 7)
export const READ_SECONDS_MAX = 60
const LOGIN = { authorization: `Basic ${Buffer.from('user:password').toString('base64')}`, 'x-token': 'token' }

/** The SQL endpoint for one customer, whose queries all have the same result of many parts. */
export async function openServer({
  trustedProxies,
  plaintext,
  failure,
  proxy,
  heldBytesPerSubscription = 1e9,
}: {
  trustedProxies?: string[]
  plaintext?: 'behind-proxy'
  /** What every query ends with. */
  failure?: QueryError
  /** In place of the embedded database. */
  proxy?: Pick<ClickHouseProxy, 'validate'>
  heldBytesPerSubscription?: number
} = {}) {
  const clock = createManualClock()
  const jobs: QueryJob[] = []
  let taken = 0
  async function* parts(): AsyncGenerator<Uint8Array> {
    for (; taken < 400; taken++) yield PART
  }
  const end = { rows: 1, bytes: 400 * PART.length, elapsedSeconds: 0 }
  const head = { format: 'RowBinary', contentType: 'application/octet-stream', coverageSlot: 1, end }
  const result: QueryResult = { ...head, parts, [Symbol.dispose]() {} }
  async function run(_: string, job: QueryJob): Promise<QueryResult> {
    if (failure !== undefined) throw failure
    jobs.push(job)
    return result
  }
  const executor = { run } as unknown as QueryExecutor
  const charges = new Set<object>()
  const caller = { ok: true, subscription: { id: 'sub' } }
  const refused = { ok: false, reason: 'unknown' }
  const access = {
    authenticateIndexer: ({ token }: { token?: string }) => (token === 'token' ? caller : refused),
    admit() {
      const charged = { ok: true }
      charges.add(charged)
      return charged
    },
    countBytes() {},
    refund: (_caller: Caller, _call: Call, charged: Charged) => void charges.delete(charged),
  }
  const heldBytes = createHeldBytes({ bytesMax: 1e9, ownerBytesMax: heldBytesPerSubscription, waitMs: 0 }, clock)
  const server = await startIndexerServer(
    {
      listen: { host: '127.0.0.1', port: 0, plaintext },
      trustedProxies,
      limits: { secondsMax: 10, rowsMax: 1000, bytesMax: 1e9 },
      readSecondsMax: READ_SECONDS_MAX,
      displayName: 'test',
    },
    {
      access: access as unknown as Access,
      engine: proxy === undefined ? { executor } : { proxy: proxy as ClickHouseProxy },
      coverageSlot: () => 1,
      metrics: indexerMetrics(createMetricsRegistry()),
      heldBytes,
      ...{ clock, log: silentLogger, random: createSeededRandom(1) },
      onRefused() {},
      onNotAfter() {},
    },
  )
  async function get(path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    const sent = request({ host: '127.0.0.1', port: server.address.port, path, headers: { ...LOGIN, ...headers } })
    sent.on('error', () => {})
    const [response] = (await once(sent.end(), 'response')) as [IncomingMessage]
    response.on('error', () => {})
    return response
  }
  const post = (path: string, body: NonNullable<RequestInit['body']>, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${server.address.port}${path}`, { method: 'POST', body, headers: { ...LOGIN, ...headers } })
  return {
    clock,
    address: server.address,
    heldBytes,
    jobs,
    charges,
    get,
    post,
    taken: () => taken,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
