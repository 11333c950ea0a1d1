import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BUILT_IN_PLANS } from '../../access/plan.ts'
import { createManualClock } from '../../core/clock.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { ConnectionReport } from './connections.ts'
import { createAccountEndpoints, PAGES_PER_SECOND, USAGE_PAGES } from './endpoints.ts'
import { NO_REPORTS } from './reports.ts'

function setUp() {
  const clock = createManualClock()
  const refused: string[] = []
  const endpoints = createAccountEndpoints({
    access: { issueTicket: () => ({ ticket: 'wst_x', expiresAtMs: 0 }) } as never,
    connections: {} as never,
    meter: { refused: (limit) => void refused.push(limit) },
    clock,
  })
  /** Posts a body of this size to `/v1/ws-ticket` and returns the status. */
  const post = async (subscription: string, bodyBytes = 0) => {
    const request = { body: Buffer.alloc(bodyBytes), requestId: 'r', query: '', accept: undefined }
    const response = await endpoints
      .at('/v1/ws-ticket')
      ?.respond({ subscription: { id: subscription } } as never, request)
    return response?.status
  }
  return { clock, post, refused }
}

/** A body that costs as much as this many requests, its own included. */
const bytesOf = (pages: number) => (pages - 1) * 16 * 1024

test('limits account requests by rate, for each subscription', async () => {
  const { clock, post, refused } = setUp()
  for (let at = 0; at < 10 * PAGES_PER_SECOND; at++) assert.equal(await post('a'), 200)
  assert.equal(await post('a'), 429)
  assert.equal(await post('b'), 200)
  clock.advance(1000)
  for (let at = 0; at < PAGES_PER_SECOND; at++) assert.equal(await post('a'), 200)
  assert.equal(await post('a'), 429)
  assert.deepEqual(refused, ['pagesPerSecond', 'pagesPerSecond'])
})

test('a subscription over its rate stays over it while 10,000 others make requests', async () => {
  const { clock, post } = setUp()
  for (let at = 0; at <= 10 * PAGES_PER_SECOND; at++) await post('greedy')
  for (let at = 0; at < 9999; at++) await post(`other-${at}`)
  clock.advance(100)
  await post('one more')
  for (let at = 0; at < 2; at++) await post('greedy')
  assert.equal(await post('greedy'), 429)
})

test('a larger body takes more of the rate, and one beyond the burst is always refused', async () => {
  const { post } = setUp()
  assert.equal(await post('b', bytesOf(10 * PAGES_PER_SECOND + 1)), 429)
  assert.equal(await post('a', bytesOf(9 * PAGES_PER_SECOND)), 200)
  assert.equal(await post('a', bytesOf(2 * PAGES_PER_SECOND)), 429)
  assert.equal(await post('a', bytesOf(PAGES_PER_SECOND)), 200)
})

const REQUEST = { body: Buffer.alloc(0), requestId: 'r', query: '', accept: undefined }
const CALLER = {
  tokenSha256: 'digest of the token',
  subscription: { id: 'sub_1', name: 'one', plan: 'grow', products: ['bundle', 'dedicated-node'], validUntil: null },
  limits: { methods: {} },
} as never

/** The endpoints of a gateway in which `sub_1` has very many connections. */
function setUpAccount() {
  const asked: string[] = []
  const connections: ConnectionReport[] = Array.from({ length: 1500 }, (_, at) => ({
    ...{ id: `con_${at}`, interface: 'ws', since: '2026-01-01T00:00:00.000Z' },
    ...{ age_seconds: 1, remote_address: '192.0.2.1', subscriptions: 0, bytes_out: 0 },
  }))
  const token = { last4: 'wxyz', notAfter: null, sha256: 'digest of the token', id: 'tok_1', subscriptionId: 'sub_1' }
  const node = { name: 'own', rpc: 'http://10.0.0.9:8899', headers: { 'x-token': 'secret of the node' } }
  const endpoints = createAccountEndpoints({
    access: {
      quota: () => ({ limit: 1, remaining: 1, resetMs: 0, month: { limit: 1, used: 0, resetMs: 0 }, buckets: [] }),
      permits: { taken: () => ({}) },
      snapshot: () => ({
        byDigest: (digest: string) => (digest === token.sha256 ? { token, customer: { name: 'acme' } } : undefined),
        nodesOf: (id: string) => (id === 'sub_1' ? [node] : []),
      }),
    } as never,
    connections: {
      async of(id) {
        asked.push(id)
        return connections
      },
      async close(id, connection) {
        asked.push(`${id} ${connection}`)
        return connection === 'con_1'
      },
    },
    meter: { refused() {} },
    clock: createManualClock(),
    reports: { ...NO_REPORTS, usage: async () => ({ ok: true, lines: [], asOfMs: 0 }) },
  })
  const respond = async (path: string) => {
    const response = await endpoints.at(path)?.respond(CALLER, REQUEST)
    assert.ok(response)
    return { status: response.status, body: response.body as Record<string, unknown> }
  }
  return { respond, asked }
}

test('a report of the store takes several pages of the rate', async () => {
  const { respond } = setUpAccount()
  const burst = (10 * PAGES_PER_SECOND) / USAGE_PAGES
  for (let at = 0; at < burst; at++) assert.equal((await respond('/v1/usage')).status, 200)
  assert.equal((await respond('/v1/usage')).status, 429)
})

test('lists of connections end at a maximum, and are those of the caller', async () => {
  const { respond, asked } = setUpAccount()
  const listed = (await respond('/v1/connections')).body
  assert.deepEqual([listed['total'], (listed['connections'] as object[]).length], [1500, 1000])
  assert.equal(((await respond('/v1/whoami')).body['connections'] as object[]).length, 100)
  assert.equal((await respond('/v1/connections/con_1/close')).status, 200)
  assert.equal((await respond('/v1/connections/con_2/close')).status, 404)
  assert.deepEqual(asked, ['sub_1', 'sub_1', 'sub_1 con_1', 'sub_1 con_2'])
})

test('the account has the end of its token and the names of its nodes, and nothing with which either is reached', async () => {
  const { respond } = setUpAccount()
  const { body } = await respond('/v1/account')
  assert.deepEqual([body['customer'], body['connections']], ['acme', 1500])
  assert.deepEqual(body['token'], { last4: 'wxyz', valid_until: null })
  assert.deepEqual(body['dedicated_nodes'], [{ name: 'own' }])
  assert.doesNotMatch(JSON.stringify(body), /digest|secret|10\.0\.0\.9|tok_1|sub_1/)
})

test('the report of decoded shreds is for those who have the product, and not found where nothing is decoded', async () => {
  const endpointOf = (decodedReport?: () => Promise<object | undefined>) =>
    createAccountEndpoints({
      access: {} as never,
      connections: {} as never,
      meter: { refused() {} },
      clock: createManualClock(),
      decodedReport,
    }).at('/v1/decoded/report')
  const report = { slots_complete: 1 }
  const served = endpointOf(async () => report)
  assert.equal(served?.product, 'shreds-decoded')
  assert.deepEqual(await served?.respond(CALLER, REQUEST), { status: 200, body: report })
  for (const missing of [endpointOf(), endpointOf(async () => undefined)])
    assert.equal((await missing?.respond(CALLER, REQUEST))?.status, 404)
})

test('the dry run takes as many accounts as the plan allows on a stream, and refuses one more by that rule', async () => {
  const endpoint = createAccountEndpoints({
    access: { permits: { taken: () => ({ grpcStreams: 0 }) } } as never,
    connections: {} as never,
    meter: { refused() {} },
    clock: createManualClock(),
  }).at('/v1/geyser/check')
  /** An address of 44 characters, the longest form. */
  const addressOf = (at: number) => encodeBase58(Buffer.concat([Buffer.alloc(28, 255), numberBytes(at)]))
  const numberBytes = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return bytes
  }
  for (const [plan, limits] of Object.entries(BUILT_IN_PLANS)) {
    const caller = { subscription: { id: plan }, limits, awaitsNode: false } as never
    const check = async (accounts: number) => {
      const account = Array.from({ length: accounts }, (_, at) => addressOf(at))
      const body = Buffer.from(JSON.stringify({ accounts: { a: { account } } }))
      assert.ok(body.length <= (endpoint?.bodyBytesMax?.(limits) ?? 0), `${plan}: ${body.length} bytes are read`)
      const reply = await endpoint?.respond(caller, { ...REQUEST, body })
      const { allowed, rule } = (reply?.body ?? {}) as Record<string, unknown>
      return [allowed, rule]
    }
    assert.deepEqual(await check(limits.grpcAccountsPerStream), [true, null], plan)
    assert.deepEqual(await check(limits.grpcAccountsPerStream + 1), [false, 'grpcAccountsPerStream'], plan)
  }
})
