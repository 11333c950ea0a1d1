import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { create, toJsonString } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import fc from 'fast-check'
import type { Limits } from '../../src/contract/limits.ts'
import { geyserCheck } from '../../src/contract/schemas/customer.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeRequestSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage, readMessageJson } from '../../src/solana/geyser/protobuf.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { subscribeRequests } from '../support/gateway/subscribe-requests.ts'
import { repeatsOf, seedOf } from '../support/process/property.ts'

const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const KEY = '11111111111111111111111111111111'

/** Field 13, which no version of the protocol has yet. */
const FUTURE = Buffer.from('6a030a0166', 'hex')
const NOTHING = Buffer.alloc(0)

type Verdict = {
  allowed: boolean
  rule: string | null
  filter: { kind: string; name: string } | null
  message: string | null
  counts: { accounts: number; filters: Record<string, number> } | null
  cost: number
}

describe('POST /v1/geyser/check', () => {
  let node: FakeNode
  let gateway: Gateway
  let client: Client
  let atNode = 0

  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => {
      call.sendHeaders()
      call.onMessage(() => void (atNode += 1))
    }
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc, ws: node.ws, grpc: node.grpc }])
    client = new Client(gateway.grpc, credentials.createInsecure())
  })
  after(async () => {
    client.close()
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  async function check(token: string, body: string): Promise<{ status: number; body: Verdict }> {
    const response = await fetch(`${gateway.url}/v1/geyser/check`, {
      method: 'POST',
      headers: { 'x-token': token, 'content-type': 'application/json' },
      body,
    })
    const verdict: unknown = await response.json()
    if (response.status === 200) geyserCheck.parse(verdict)
    return { status: response.status, body: verdict as Verdict }
  }

  it('a compressed body is refused with 415; every response has the budget of the token', async () => {
    const { token } = await gateway.subscribe({})
    const ask = (headers: Record<string, string>) =>
      fetch(`${gateway.url}/v1/geyser/check`, {
        method: 'POST',
        headers: { 'x-token': token, 'content-type': 'application/json', ...headers },
        body: '{}',
      })
    const refused = await ask({ 'content-encoding': 'gzip' })
    assert.deepEqual([refused.status, refused.headers.get('accept-encoding')], [415, 'identity'])
    for (const { headers } of [refused, await ask({})]) {
      assert.equal(headers.get('x-ratelimit-cost'), '0')
      assert.ok(Number(headers.get('x-ratelimit-remaining')) > 0)
    }
  })

  const overrides = {
    grpcAccountsPerStream: 2,
    grpcKinds: ['accounts', 'slots', 'transactions'] as const,
    grpcBlockedOwners: [TOKEN_PROGRAM],
  }
  const rows: [string, object, string | null, Verdict['filter']][] = [
    ['slots', { slots: { s: {} } }, null, null],
    ['snake case, as in the proto', { accounts: { a: { account: [KEY], nonempty_txn_signature: true } } }, null, null],
    ['camel case', { accounts: { a: { account: [KEY], nonemptyTxnSignature: true } }, fromSlot: '5' }, null, null],
    [
      'accounts',
      { accounts: { a: { account: [KEY, KEY, KEY] } } },
      'grpcAccountsPerStream',
      { kind: 'accounts', name: 'a' },
    ],
    ['a kind', { slots: { s: {} }, blocks: { b: {} } }, 'grpcKinds', { kind: 'blocks', name: 'b' }],
    ['an owner', { accounts: { t: { owner: [TOKEN_PROGRAM] } } }, 'grpcBlockedOwners', { kind: 'accounts', name: 't' }],
    [
      'a text that is no account',
      { accounts: { t: { account: [KEY, 'nonsense!'] } } },
      'readable',
      { kind: 'accounts', name: 't' },
    ],
    [
      'an owner of 31 bytes',
      { accounts: { t: { owner: [KEY.slice(1)] } } },
      'readable',
      { kind: 'accounts', name: 't' },
    ],
    ['everything', { transactions: { t: { vote: false } } }, 'grpcBlockedOwners', { kind: 'transactions', name: 't' }],
  ]

  it('returns the verdict of the gRPC server, with filter and rule, and neither forwards nor charges', async () => {
    const { token } = await gateway.subscribe({ overrides })
    const caller = gateway.access.authenticate({ token }, 'bundle', Date.now())
    assert.ok(caller.ok)
    for (const [name, request, rule, filter] of rows) {
      const { status, body } = await check(token, JSON.stringify(request))
      assert.deepEqual([status, body.allowed, body.rule, body.filter], [200, rule === null, rule, filter], name)
    }
    assert.deepEqual([gateway.access.quota(caller).month.used, atNode], [0, 0])

    // The same requests on real streams.
    for (const [name, request, rule] of rows) {
      const read = readMessageJson(SubscribeRequestSchema, JSON.stringify(request))
      assert.ok(read.ok)
      const before = atNode
      const stream = openStream(client, SUBSCRIBE, tokenMetadata(token))
      stream.send(encodeMessage(SubscribeRequestSchema, read.message))
      if (rule === null) {
        await until(`${name} is at the node`, () => atNode === before + 1)
        stream.call.cancel()
        continue
      }
      const { code, details } = await stream.ended
      const { body } = await check(token, JSON.stringify(request))
      assert.deepEqual([code, details], [GrpcCode.invalidArgument, body.message], name)
      assert.equal(atNode, before)
    }
  })

  it('returns the counts of a request', async () => {
    const { token } = await gateway.subscribe({ overrides: { methods: { Subscribe: { cost: 7 } } } })
    const request = { accounts: { a: { account: [KEY] }, b: { owner: [KEY] } }, slots: { s: {} }, entry: { e: {} } }
    const { body } = await check(token, JSON.stringify(request))
    assert.deepEqual([body.counts, body.cost], [{ accounts: 2, filters: { accounts: 2, slots: 1, entry: 1 } }, 7])
  })

  it('refuses an invalid body with the reason, and one over the limit', async () => {
    const { token } = await gateway.subscribe({})
    for (const body of ['', 'x', '[]', '{"slots":[]}', '{"fromSlot":"x"}', '['.repeat(50_000)]) {
      const { status, body: reported } = await check(token, body)
      assert.equal(status, 400, body.slice(0, 40))
      assert.match((reported as unknown as { message: string }).message, /^not a SubscribeRequest in JSON: /)
      assert.ok(JSON.stringify(reported).length < 600)
    }
    assert.equal((await check(token, ' '.repeat(2 ** 20 + 1))).status, 413)
    assert.equal((await check('no token', '{}')).status, 401)
    const { token: large } = await gateway.subscribe({ overrides: { requestBytes: 8 * 2 ** 20 } })
    assert.equal((await check(large, ' '.repeat(2 ** 20 + 1))).status, 413)
  })

  it('takes the accounts that a built-in plan allows, beyond the size of an RPC request', async () => {
    const { token } = await gateway.subscribe({ plan: 'professional' })
    const ask = (accounts: number) =>
      check(token, JSON.stringify({ accounts: { a: { account: Array(accounts).fill(TOKEN_PROGRAM) } } }))
    const allowed = await ask(2000)
    assert.deepEqual([allowed.status, allowed.body.allowed], [200, true])
    const refused = await ask(2001)
    assert.deepEqual([refused.status, refused.body.rule], [200, 'grpcAccountsPerStream'])
  })

  it('charges a large body as many small ones against pagesPerSecond', async () => {
    const { token } = await gateway.subscribe({ overrides: { requestBytes: 2 ** 20 } })
    const long = JSON.stringify({ slots: { s: {} } }) + ' '.repeat(2 ** 20 - 100)
    const statuses = []
    for (let at = 0; at < 6; at++) statuses.push((await check(token, long)).status)
    assert.deepEqual(statuses.slice(0, 3), [200, 200, 200])
    assert.ok(statuses.includes(429), statuses.join())
  })

  it('refuses by the same rules as a stream before counting', async () => {
    const { token } = await gateway.subscribe({ overrides: { requestBytes: 2 ** 20, grpcAccountsPerStream: 25 } })
    const slots = Object.fromEntries(Array.from({ length: 4097 }, (_, at) => [`s${at}`, {}]))
    const rows: [object | string, string][] = [
      [{ slots }, 'grpcRequestFilters'],
      [{ slots: { ['n'.repeat(300_000)]: {} } }, 'grpcRequestBytes'],
      [{ accounts: { a: { account: Array(20_000).fill('') } } }, 'grpcRequestFields'],
      [`{"accountsDataSlice":[${Array(8193).fill('{}').join(' ')}]}`, 'grpcRequestFields'],
      [`{"accounts":${'['.repeat(70_000)}${']'.repeat(70_000)}}`, 'grpcRequestFields'],
    ]
    for (const [request, rule] of rows) {
      const text = typeof request === 'string' ? request : JSON.stringify(request)
      const { status, body } = await check(token, text)
      assert.deepEqual([status, body.allowed, body.rule], [200, false, rule], text.slice(0, 40))
      assert.ok(body.message?.includes(rule), String(body.message))
    }
  })

  it('refuses fields that it does not know where the plan decides what may be selected, and names them elsewhere', async () => {
    const requests = [{ slots: { s: {} }, nothing: 1 }, { slots: { s: { blockFooter: {} } } }]
    const { token: strict } = await gateway.subscribe({ overrides: { grpcKinds: ['slots'] } })
    const { token: loose } = await gateway.subscribe({})
    for (const request of requests) {
      const refused = (await check(strict, JSON.stringify(request))).body
      assert.deepEqual([refused.allowed, refused.rule], [false, 'knownFields'])
      const passed = (await check(loose, JSON.stringify(request))).body
      assert.deepEqual([passed.allowed, passed.rule, passed.counts?.filters], [true, null, { slots: 1 }])
      assert.match(String(passed.message), /"(nothing|blockFooter)" is unknown; a stream passes unknown fields on/)
    }
  })

  it('refuses the filter kind of block footers by name on a plan with slots only', async () => {
    const { token } = await gateway.subscribe({ overrides: { grpcKinds: ['slots'] } })
    const { body } = await check(token, JSON.stringify({ slots: { s: {} }, blockFooter: { f: {} } }))
    assert.deepEqual([body.rule, body.filter], ['grpcKinds', { kind: 'block_footer', name: 'f' }])
  })

  it('has the verdict of a stream for any request, also with unknown fields', async (t) => {
    const loose: Partial<Limits> = { unitsPerSecond: null, grpcStreams: null, grpcAccountsPerStream: null }
    const strict: Partial<Limits> = {
      unitsPerSecond: null,
      grpcStreams: null,
      grpcAccountsPerStream: 6,
      grpcKinds: ['accounts', 'slots', 'transactions', 'entry'],
      grpcBlockedOwners: [TOKEN_PROGRAM],
    }
    let token = ''
    const own = new Client(gateway.grpc, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 })
    const seen = new Set<string | null>()
    const requests = fc.sample(subscribeRequests, { numRuns: repeatsOf({ short: 100, full: 2000 }), seed: seedOf(t) })
    for (const [at, init] of requests.entries()) {
      // A subscription may cancel 100 calls right after it made them.
      if (at % 50 === 0) ({ token } = await gateway.subscribe({ overrides: at % 100 === 0 ? loose : strict }))
      const isUnknown = at % 7 === 0
      const json = toJsonString(SubscribeRequestSchema, create(SubscribeRequestSchema, init))
      const text = isUnknown ? JSON.stringify({ ...JSON.parse(json), futureKind: { f: {} } }) : json
      const wire = Buffer.concat([encodeMessage(SubscribeRequestSchema, init), isUnknown ? FUTURE : NOTHING])
      const { body } = await check(token, text)
      seen.add(body.rule)
      const before = atNode
      const stream = openStream(own, SUBSCRIBE, tokenMetadata(token))
      stream.send(wire)
      if (body.allowed) await until('it is at the node', () => atNode === before + 1)
      else {
        const { code, details } = await stream.ended
        assert.deepEqual([code, atNode], [GrpcCode.invalidArgument, before], text)
        if (body.rule === 'knownFields') assert.match(details, /field 13 of SubscribeRequest.*knownFields/)
        else assert.equal(details, body.message)
      }
      stream.call.cancel()
    }
    own.close()
    t.diagnostic([...seen].map(String).join(', '))
    assert.ok(seen.has(null) && seen.has('grpcKinds') && seen.has('knownFields') && seen.has('readable'))
  })
})
