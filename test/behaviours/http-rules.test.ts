import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { executionOptions } from '../../src/execution/options.ts'
import { startIndexerServer } from '../../src/indexer/http.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { startOperatorListener } from '../../src/platform/http/server/operator-listener.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { BATCH_MAX } from '../../src/sender/accept/rpc.ts'
import { startTestExecution } from '../support/execution/start.ts'
import { AMPLE_HELD_BYTES } from '../support/gateway/held-bytes.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { startTestSender } from '../support/sender/start.ts'

const BATCH_ITEMS = 4
const LISTEN = { host: '127.0.0.1', port: 0 }
const ORIGIN = 'https://app.example.com'
type Listener = 'rpc' | 'sender' | 'execution' | 'indexer' | 'operator'

/** What does not exist, and what is not accepted, looks the same on every HTTP listener. The chain of localnet follows Agave instead. */
describe('every HTTP listener', () => {
  const opened = new AsyncDisposableStack()
  let gateway: Gateway
  let token: string
  let urls: Record<Listener, string>

  before(async () => {
    gateway = opened.use(await startGateway([]))
    token = (await gateway.subscribe({ overrides: { batchItems: BATCH_ITEMS } })).token
    const sender = opened.use(await startTestSender({ limits: { readsPerAddressPerSecond: 10_000 } }))
    const execution = opened.use(await startTestExecution())
    const registry = opened.use(createMetricsRegistry())
    const common = { log: silentLogger, clock: systemClock, random: secureRandom, onRefused() {}, onNotAfter() {} }
    const indexer = opened.use(
      await startIndexerServer(
        { listen: LISTEN, limits: {} as never, readSecondsMax: 60, displayName: 'test', corsOrigins: [ORIGIN] },
        {
          ...common,
          access: gateway.access,
          engine: { executor: {} as never },
          coverageSlot: () => 0,
          heldBytes: AMPLE_HELD_BYTES,
          metrics: indexerMetrics(registry),
        },
      ),
    )
    const operator = opened.use(
      await startOperatorListener(
        { listen: LISTEN },
        { ...common, registry, health: () => ({ state: 'ok', reasons: [], startedMs: 0 }) },
      ),
    )
    const at = (port: number) => `http://127.0.0.1:${port}`
    urls = {
      rpc: gateway.url,
      sender: sender.url,
      execution: execution.http,
      indexer: at(indexer.address.port),
      operator: at(operator.address.port),
    }
  })
  after(() => opened.disposeAsync())

  async function ask(listener: Listener, path: string, init: RequestInit = {}) {
    const response = await fetch(`${urls[listener]}${path}`, init)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    return { status: response.status, headers: response.headers, text, json: (isJson ? JSON.parse(text) : {}) as Body }
  }
  type Body = {
    error?: string | { code: number; message: string; data: Record<string, unknown> }
    message?: string
    paths?: string[]
    methods?: string[]
    request_id?: string
  }

  /** A path that exists, with a method that it does not take and the methods that it does. */
  const EXISTING: Record<Listener, readonly (readonly [path: string, wrong: string, allow: string])[]> = {
    rpc: [
      ['/', 'DELETE', 'POST, OPTIONS'],
      ['/health', 'POST', 'GET, HEAD, OPTIONS'],
      ['/v1/whoami', 'POST', 'GET, HEAD, OPTIONS'],
      ['/v1/usage', 'POST', 'GET, HEAD, OPTIONS'],
      ['/v1/account', 'DELETE', 'GET, HEAD, OPTIONS'],
      ['/v1/shreds', 'PUT', 'GET, HEAD, OPTIONS'],
      ['/v1/ws-ticket', 'GET', 'POST, OPTIONS'],
      ['/v1/geyser/check', 'PUT', 'POST, OPTIONS'],
      ['/v1/connections/con_1/close', 'GET', 'POST, OPTIONS'],
    ],
    sender: [
      ['/', 'GET', 'POST, OPTIONS'],
      ['/fast', 'DELETE', 'POST, OPTIONS'],
      ['/api/v1/transactions', 'GET', 'POST, OPTIONS'],
      ['/ping', 'POST', 'GET, HEAD, OPTIONS'],
      ['/v1/transactions/abc', 'POST', 'GET, HEAD, OPTIONS'],
    ],
    execution: [
      ['/', 'PUT', 'GET, HEAD, POST, OPTIONS'],
      ['/v1/tps', 'POST', 'GET, HEAD, OPTIONS'],
      ['/v1/blocks/7/lifecycle', 'DELETE', 'GET, HEAD, OPTIONS'],
      ['/health', 'POST', 'GET, HEAD, OPTIONS'],
      ['/metrics', 'POST', 'GET, HEAD, OPTIONS'],
    ],
    indexer: [
      ['/', 'PUT', 'GET, HEAD, POST, OPTIONS'],
      ['/ping', 'POST', 'GET, HEAD, OPTIONS'],
    ],
    operator: [
      ['/metrics', 'POST', 'GET, HEAD'],
      ['/healthz', 'OPTIONS', 'GET, HEAD'],
    ],
  }
  const LISTENERS = Object.keys(EXISTING) as Listener[]

  for (const listener of LISTENERS) {
    it(`${listener}: an unknown path is 404 in JSON with the paths that exist, and is not echoed`, async () => {
      for (const method of ['GET', 'POST']) {
        for (const path of [
          '/no-such-path',
          '//',
          '/v1',
          '/docs/no-such-path',
          '/%2e%2e/secret',
          '/no-such-path?query=SELECT%201',
        ]) {
          const { status, json, text, headers } = await ask(listener, path, { method })
          assert.deepEqual([status, json.error], [404, 'not-found'], `${method} ${path}`)
          assert.match(json.message ?? '', /does not exist/)
          const [known] = (EXISTING[listener][0] as readonly string[]) ?? []
          assert.ok(json.paths?.includes(known ?? ''), text)
          assert.doesNotMatch(text, /no-such-path|secret/)
          if (listener !== 'operator') assert.equal(json.request_id, headers.get('x-request-id'))
        }
      }
    })

    it(`${listener}: a slash at the end makes another path`, async () => {
      for (const [path, wrong] of EXISTING[listener].filter(([each]) => each !== '/')) {
        for (const method of ['GET', 'POST', wrong].filter((each) => each !== 'OPTIONS')) {
          const { status, json } = await ask(listener, `${path}/`, { method })
          assert.deepEqual([status, json.error], [404, 'not-found'], path)
          assert.match(json.message ?? '', /without the slash at its end/)
        }
      }
    })

    it(`${listener}: a method that a path does not take is 405 in JSON with Allow`, async () => {
      for (const [path, wrong, allow] of EXISTING[listener]) {
        const { status, json, headers } = await ask(listener, path, { method: wrong })
        assert.deepEqual([status, json.error, headers.get('allow')], [405, 'method-not-allowed', allow], path)
      }
    })
  }

  it('no cache keeps what changes, or what is for one customer', async () => {
    for (const [listener, path, status] of [
      ['rpc', '/health', 200],
      ['sender', '/ping', 200],
      ['sender', `/v1/transactions/${'1'.repeat(64)}`, 404],
      ['sender', `/v1/transactions/${'1'.repeat(64)}?wait=x`, 400],
      ['execution', '/v1/status', 200],
      ['indexer', '/ping', 200],
      ['indexer', '/?query=SELECT%201', 401],
      ['operator', '/healthz', 200],
    ] as const) {
      const response = await ask(listener, path)
      assert.deepEqual([response.status, response.headers.get('cache-control')], [status, 'no-store'], path)
    }
  })

  it('OPTIONS is 204 without a token on every path of a customer, and grants SQL to configured origins only', async () => {
    for (const listener of LISTENERS.filter((each) => each !== 'operator')) {
      for (const path of ['/', '/no-such-path']) {
        const { status, text } = await ask(listener, path, { method: 'OPTIONS' })
        assert.deepEqual([status, text], [204, ''], listener)
      }
    }
    const preflight = (origin: string) =>
      ask('indexer', '/', { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'POST' } })
    const granted = await preflight(ORIGIN)
    assert.equal(granted.headers.get('access-control-allow-origin'), ORIGIN)
    assert.match(granted.headers.get('access-control-allow-headers') ?? '', /authorization.*x-token/)
    assert.equal(granted.headers.get('access-control-allow-methods'), 'GET, HEAD, POST, OPTIONS')
    assert.equal(granted.headers.get('access-control-allow-credentials'), null)
    const refused = await preflight('https://elsewhere.example')
    assert.equal(refused.status, 204)
    for (const headers of [refused.headers, (await ask('indexer', '/ping')).headers]) {
      assert.deepEqual(
        [...headers].filter(([name]) => name.startsWith('access-control')),
        [],
      )
      assert.equal(headers.get('vary'), 'origin')
    }
    const queried = await ask('indexer', '/?query=SELECT%201', { headers: { origin: ORIGIN } })
    assert.deepEqual([queried.status, queried.headers.get('access-control-allow-origin')], [401, ORIGIN])
  })

  /** Every endpoint that reads JSON. */
  const JSON_ENDPOINTS = [
    ['rpc', '/'],
    ['rpc', '/v1/geyser/check'],
    ['sender', '/'],
    ['sender', '/fast'],
    ['execution', '/'],
  ] as const
  const CONTENT_TYPES: readonly (readonly [
    type: string | undefined,
    origin: string | undefined,
    isAccepted: boolean,
  ])[] = [
    ['application/json', undefined, true],
    ['application/json', ORIGIN, true],
    ['Application/JSON; charset=utf-8', ORIGIN, true],
    ['application/json-rpc', undefined, true],
    ['application/json-rpc; charset=utf-8', ORIGIN, true],
    [undefined, undefined, true],
    [undefined, ORIGIN, false],
    ['text/plain', undefined, false],
    ['text/plain', ORIGIN, false],
    ['application/x-www-form-urlencoded', undefined, false],
    ['multipart/form-data; boundary=x', ORIGIN, false],
    ['application/jsonp', undefined, false],
  ]

  for (const [listener, path] of JSON_ENDPOINTS) {
    it(`${listener} ${path}: one rule for content types; 415 in JSON with a code`, async () => {
      for (const [type, origin, isAccepted] of CONTENT_TYPES) {
        // Bytes have no content type of their own, as a text has.
        const body = Buffer.from('{}')
        const headers = {
          'x-token': token,
          ...(type === undefined ? {} : { 'content-type': type }),
          ...(origin === undefined ? {} : { origin }),
        }
        const { status, json } = await ask(listener, path, { method: 'POST', headers, body })
        if (isAccepted) assert.equal(status, 200, `${type}`)
        else {
          assert(typeof json.error === 'object', `${type}`)
          assert.deepEqual([status, json.error.code], [415, -32415], `${type}`)
          assert.match(json.error.message, /Content-Type: application\/json is required/)
          assert.match(String(json.error.data['fix']), /application\/json/)
        }
      }
    })
  }

  it('the raw endpoint of the sender reads bytes, text and JSON-RPC by content type', async () => {
    const post = (type: string | undefined, body: string) => {
      const headers = type === undefined ? {} : { 'content-type': type }
      return ask('sender', '/api/v1/transactions', { method: 'POST', headers, body: Buffer.from(body) })
    }
    // As bytes it begins with 97 signatures, as text it is not a whole transaction.
    for (const [type, error] of [
      [undefined, 'signature-count'],
      ['application/octet-stream', 'signature-count'],
      ['text/plain; charset=utf-8', 'invalid-params'],
    ] as const) {
      const { status, json } = await post(type, 'abc')
      assert.deepEqual([status, json.error], [400, error], `${type}`)
    }
    for (const type of ['application/json', 'application/json-rpc']) {
      const { status, text } = await post(type, '{"jsonrpc":"2.0","id":7,"method":"sendTransaction","params":["abc"]}')
      assert.equal(status, 200, type)
      assert.match(text, /"code":-32602,.*"id":7\}$/)
    }
    const { status, json } = await post('text/xml', '<a/>')
    assert.deepEqual([status, json.error], [415, 'unsupported-media-type'])
    assert.match(json.message ?? '', /octet-stream.*text\/plain.*application\/json/)
  })

  it('the raw endpoint of the sender takes the encoding identity, and names it where it refuses another', async () => {
    for (const [encoding, status, accepted] of [
      ['identity', 400, null],
      ['gzip', 415, 'identity'],
    ] as const) {
      const headers = { 'content-type': 'application/octet-stream', 'content-encoding': encoding }
      const refused = await ask('sender', '/api/v1/transactions', { method: 'POST', headers, body: 'abc' })
      assert.deepEqual([refused.status, refused.headers.get('accept-encoding')], [status, accepted], encoding)
    }
  })

  it('a batch of too many calls is 413 with the limit and its size', async () => {
    const { batchItemsMax } = executionOptions.parse({}).rpc
    for (const [listener, path, size] of [
      ['rpc', '/', BATCH_ITEMS],
      ['sender', '/', BATCH_MAX],
      ['sender', '/fast', BATCH_MAX],
      ['execution', '/', batchItemsMax],
    ] as const) {
      const call = { jsonrpc: '2.0', id: 1, method: 'getHealth' }
      const { status, json } = await ask(listener, path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-token': token },
        body: JSON.stringify(Array.from({ length: size + 1 }, () => call)),
      })
      assert(typeof json.error === 'object', listener)
      assert.deepEqual([status, json.error.code], [413, -32413], listener)
      assert.deepEqual([json.error.data['limit'], json.error.data['size']], ['batchItems', size], listener)
    }
  })

  it('the WebSocket listener of the bundle refuses plain requests with 426 in JSON', async () => {
    for (const [method, path] of [
      ['GET', '/'],
      ['POST', '/'],
      ['GET', '/no-such-path'],
    ] as const) {
      const response = await fetch(`${gateway.ws.replace('ws:', 'http:')}${path}`, { method })
      const { headers } = response
      assert.deepEqual(
        [response.status, headers.get('upgrade'), headers.get('connection')],
        [426, 'websocket', 'close, Upgrade'],
      )
      const body = (await response.json()) as Body
      assert.equal(body.error, 'upgrade-required')
      assert.match(body.message ?? '', /WebSockets only/)
    }
  })
})
