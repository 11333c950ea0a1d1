import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setCustomerState } from '../../src/access/provisioning/customers.ts'
import { cancelSubscription, suspendSubscription } from '../../src/access/provisioning/subscriptions.ts'
import { revokeTokens, rotateToken } from '../../src/access/provisioning/tokens.ts'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import {
  type GrpcGateway,
  openStream,
  PING,
  rawCall,
  SUBSCRIBE,
  startGrpcGateway,
  tokenMetadata,
} from '../support/gateway/grpc.ts'

const NO_MESSAGE = frameMessage(Buffer.alloc(0))

/** The specification's rules of authentication on gRPC, one row each. */
describe('credentials on the gRPC server', () => {
  let node: FakeNode
  let on: GrpcGateway
  let token: string
  const seen: GrpcCall[] = []

  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => {
      seen.push(call)
      if (call.path === SUBSCRIBE) {
        call.sendHeaders()
        call.onMessage((message) => void call.send(message))
      } else serveUnary(call, (message) => ({ ok: true, message }))
    }
    on = await startGrpcGateway([{ name: 'fake', grpc: node.grpc }])
    token = (await on.gateway.subscribe({})).token
  })
  after(async () => {
    await on[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  const ask = (headers: [string, string][], path = PING) => rawCall(on.port, path, headers, NO_MESSAGE)

  it('accepts the token from both credential sources', async () => {
    const cases: [string, [string, string][]][] = [
      ['x-token', [['x-token', token]]],
      ['authorization: Bearer', [['authorization', `Bearer ${token}`]]],
      ['the scheme in other case', [['authorization', `bearer ${token}`]]],
      ['spaces after the scheme', [['authorization', `Bearer   ${token}`]]],
      [
        'two carriers with the same value',
        [
          ['x-token', token],
          ['authorization', `Bearer ${token}`],
        ],
      ],
    ]
    for (const [name, headers] of cases) assert.equal((await ask(headers)).code, GrpcCode.ok, name)
  })

  it('refuses everything else with PERMISSION_DENIED in a trailers-only response that names the reason', async () => {
    const other = (await on.gateway.subscribe({})).token
    const unknown = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'
    const cases: [string, [string, string][], string][] = [
      ['nothing', [], 'missing'],
      ['an empty value', [['x-token', '']], 'malformed'],
      ['not a token', [['x-token', 'hello']], 'malformed'],
      ['a wrong checksum', [['x-token', `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`]], 'malformed'],
      ['an unknown token', [['x-token', unknown]], 'unknown'],
      ['8 KB', [['x-token', 'x'.repeat(8192)]], 'malformed'],
      ['another scheme', [['authorization', `Basic ${token}`]], 'missing'],
      ['x-api-key, which is for RPC', [['x-api-key', token]], 'missing'],
      [
        'two carriers that differ',
        [
          ['x-token', token],
          ['authorization', `Bearer ${other}`],
        ],
        'conflicting',
      ],
      [
        'one carrier twice, equal',
        [
          ['x-token', token],
          ['x-token', token],
        ],
        'conflicting',
      ],
      [
        'authorization twice, equal',
        [
          ['authorization', `Bearer ${token}`],
          ['authorization', `Bearer ${token}`],
        ],
        'conflicting',
      ],
      [
        'authorization twice, differing',
        [
          ['authorization', `Bearer ${token}`],
          ['authorization', `Bearer ${other}`],
        ],
        'conflicting',
      ],
      [
        'one carrier twice, differing',
        [
          ['x-token', token],
          ['x-token', other],
        ],
        'conflicting',
      ],
    ]
    const before = seen.length
    let names: string[] | undefined
    for (const path of [PING, SUBSCRIBE]) {
      for (const [name, headers, reason] of cases) {
        const response = await ask(headers, path)
        assert.equal(response.code, GrpcCode.permissionDenied, name)
        assert.ok(response.isTrailersOnly && response.body.length === 0, name)
        assert.ok(response.message.startsWith(`missing or invalid token; reason: ${reason}; fix: `), name)
        names ??= Object.keys(response.headers)
        assert.deepEqual(Object.keys(response.headers), names, `${name}: other headers than the first refusal`)
      }
    }
    assert.equal(seen.length, before, 'nothing of it reached the node')
  })

  it('neither reads a token from the path nor echoes it', async () => {
    const response = await ask([], `${PING}?api-key=${token}`)
    assert.equal(response.code, GrpcCode.unimplemented)
    assert.ok(!response.message.includes(token))
  })

  it('applies changes of the store to new calls, and ends open streams within 5 s', async () => {
    const changes: [string, (id: string) => Promise<unknown>, string][] = [
      ['rotated', (subscription) => rotateToken(on.gateway.on, { subscription, graceMs: 0 }), 'revoked'],
      ['revoked', (subscription) => revokeTokens(on.gateway.on, { subscription }), 'revoked'],
      ['suspended', (subscription) => suspendSubscription(on.gateway.on, { subscription }), 'suspended'],
      ['cancelled', (subscription) => cancelSubscription(on.gateway.on, { subscription }), 'cancelled'],
    ]
    for (const [name, change, reason] of changes) {
      const made = await on.gateway.subscribe({})
      const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(made.token))
      await stream.headers
      const atNode = seen.at(-1) as GrpcCall
      const startMs = performance.now()
      await change(made.id)
      const { code, details } = await stream.ended
      assert.ok(performance.now() - startMs < 5000, name)
      assert.equal(code, GrpcCode.permissionDenied, name)
      assert.ok(details.startsWith(`missing or invalid token; reason: ${reason}; fix: `), name)
      const refused = await ask([['x-token', made.token]])
      assert.deepEqual([refused.code, refused.message], [code, details], name)
      await new Promise<void>((resolve) => atNode.onClose(() => resolve()))
      assert.equal(on.gateway.access.permits.taken(made.id).grpcStreams, 0, name)
    }
    const sql = await on.gateway.subscribe({ products: ['indexer'] })
    assert.match((await ask([['x-token', sql.token]])).message, /not-in-plan/)
    const stream = openStream(on.client, SUBSCRIBE, tokenMetadata(token))
    await stream.headers
    await setCustomerState(on.gateway.on, { customer: 'acme', state: 'suspended' })
    assert.match((await stream.ended).details, /suspended/)
  })

  it('shows no token to the node or the log', () => {
    assert.ok(seen.length > 8)
    for (const text of [
      JSON.stringify(seen.map(({ path, metadata }) => ({ path, metadata }))),
      on.log(),
      on.gateway.log(),
    ]) {
      assert.doesNotMatch(text, /slc_[0-9A-Za-z]{38}/)
      assert.ok(!text.includes('api-key'))
    }
  })
})
