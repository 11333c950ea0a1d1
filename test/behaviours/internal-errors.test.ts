import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCors } from '../../src/execution/api/cors.ts'
import { startHttpEndpoint } from '../../src/execution/api/http.ts'
import { startRpcServer } from '../../src/gateway/http.ts'
import { startIndexerServer } from '../../src/indexer/http.ts'
import { createHeldBytes } from '../../src/platform/http/held-bytes.ts'
import type { HttpServer } from '../../src/platform/http/server/server.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { createLogger, type Logger } from '../../src/platform/telemetry/logger.ts'
import { startSenderServer } from '../../src/sender/http.ts'
import { TRANSACTION_LIMITS } from '../../src/solana/transaction/types.ts'
import { AMPLE_HELD_BYTES } from '../support/gateway/held-bytes.ts'

const JSON_BODY = { 'content-type': 'application/json' }
const LISTEN = { host: '127.0.0.1', port: 0 }
const broken = (): never => {
  throw new Error('a mistake of the program')
}

type ServerRequest = {
  readonly path: string
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** In chunks, which only node:http reads. */
  readonly isChunked?: true
}

/** Servers whose dependencies all throw, each with requests that call them: on the fast path and through node:http. */
const LISTENERS: readonly {
  readonly name: string
  open(common: Common): Promise<HttpServer>
  readonly requests: readonly ServerRequest[]
}[] = [
  {
    name: 'RPC',
    open: (common) =>
      startRpcServer(
        { listen: LISTEN },
        {
          ...common,
          meter: { refused: broken },
          rpc: {
            authenticate: () => ({ ok: true, limits: { requestBytes: 1000 }, subscription: { id: 's' } }) as never,
            forward: broken,
            refuseBody: broken,
            refuseUnreadable: broken,
            quota: () => ({ limit: null, remaining: null, resetMs: 0 }),
            countSent: () => {},
          },
          heldBytes: createHeldBytes({ bytesMax: 1e6, ownerBytesMax: 1e6, waitMs: 0 }, common.clock),
          account: { at: broken },
          health: broken,
          tarpit: { addressOf: () => '127.0.0.1' },
          documents: broken,
          docsUrl: () => undefined,
        },
      ),
    requests: [
      { path: '/', method: 'POST', headers: JSON_BODY, body: '{}' },
      { path: '/', method: 'POST', headers: JSON_BODY, body: '{}', isChunked: true },
      { path: '/health', method: 'GET' },
      { path: '/docs/', method: 'GET' },
    ],
  },
  {
    name: 'sender',
    open: (common) =>
      startSenderServer(
        {
          listen: LISTEN,
          trustedProxies: [],
          readsPerAddressPerSecond: 100,
          receiptsMax: 1,
          waitersMax: 1,
          waitersPerAddressMax: 1,
          ...TRANSACTION_LIMITS,
        },
        {
          ...common,
          accept: broken,
          receipts: { get: broken } as never,
          terms: {} as never,
          version: '0',
          isHealthy: broken,
          refusals: { report: broken, record: broken },
          onDuplicate: broken,
          heldBytes: AMPLE_HELD_BYTES,
        },
      ),
    requests: [
      { path: '/', method: 'POST', headers: JSON_BODY, body: '{"jsonrpc":"2.0","id":1,"method":"getHealth"}' },
      { path: '/api/v1/transactions', method: 'POST', body: 'bytes' },
      { path: `/v1/transactions/${'1'.repeat(64)}`, method: 'GET' },
    ],
  },
  {
    name: 'indexer',
    open: (common) =>
      startIndexerServer(
        { listen: LISTEN, limits: {} as never, readSecondsMax: 60, displayName: 'test' },
        {
          ...common,
          access: { authenticateIndexer: broken } as never,
          engine: { executor: {} as never },
          coverageSlot: broken,
          heldBytes: AMPLE_HELD_BYTES,
          metrics: {} as never,
        },
      ),
    requests: [{ path: '/', method: 'POST', body: 'SELECT 1' }],
  },
  {
    name: 'execution',
    open: (common) =>
      startHttpEndpoint({ listen: LISTEN }, {
        ...common,
        access: undefined,
        routes: {} as never,
        lookups: {} as never,
        runWork: broken,
        history: broken,
        rpcPost: broken,
        budget: { unitsPerSecond: 1, take: () => ({ ok: true }), charge() {} },
        cors: createCors([]),
        clientAddress: () => '127.0.0.1',
        onLimit() {},
        page: undefined,
        isSimulated: false,
        documents: undefined,
        metricsText: broken,
        onUpgrade: undefined,
      } as Parameters<typeof startHttpEndpoint>[1]),
    requests: ['/metrics', '/v1/history', '/v1/search?q=1'].map((path) => ({ path, method: 'GET' })),
  },
]

type Common = {
  readonly log: Logger
  readonly clock: typeof systemClock
  readonly random: typeof secureRandom
  onRefused(): void
  onNotAfter(): void
}

for (const { name, open, requests } of LISTENERS) {
  test(`${name}: an internal error is a 500, and log and response have the same request id`, async () => {
    const lines: { readonly msg: string; readonly request_id?: string }[] = []
    const destination = { write: (line: string) => lines.push(JSON.parse(line) as (typeof lines)[number]) }
    const log = createLogger({ level: 'info', destination })
    await using server = await open({ log, clock: systemClock, random: secureRandom, onRefused() {}, onNotAfter() {} })
    for (const { path, method, headers, body, isChunked } of requests) {
      for (const own of [undefined, 'mine-1']) {
        const id = own === undefined ? {} : { 'x-request-id': own }
        const response = await fetch(`http://127.0.0.1:${server.address.port}${path}`, {
          method,
          headers: { ...headers, ...id },
          body: (isChunked ? new Blob([body ?? '']).stream() : body) ?? null,
          duplex: 'half',
        })
        assert.equal(response.status, 500, path)
        assert.doesNotMatch(await response.text(), /mistake/)
        const reported = response.headers.get('x-request-id')
        assert.match(reported ?? '', own === undefined ? /^[0-9A-Z]{26}$/ : /^mine-1$/, path)
        assert.deepEqual(
          lines.splice(0).map(({ msg, request_id }) => [msg, request_id]),
          [['request handler failed', reported]],
          path,
        )
      }
    }
  })
}
