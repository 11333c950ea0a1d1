import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { setCustomerState } from '../../src/access/provisioning/customers.ts'
import { cancelSubscription, suspendSubscription } from '../../src/access/provisioning/subscriptions.ts'
import { revokeTokens, rotateToken } from '../../src/access/provisioning/tokens.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'

type Response = {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  reason: string | undefined
}

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance"}'

/** The specification's rules of authentication on RPC, one row each. */
describe('credentials on the RPC server', () => {
  let node: FakeNode
  let gateway: Gateway
  let token: string

  before(async () => {
    node = await startFakeNode()
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc }])
    token = (await gateway.subscribe({})).token
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  /** Raw, so that a header can occur twice. */
  function post(headers: [string, string][], path = '/', body = CALL): Promise<Response> {
    const flat = [
      ['content-type', 'application/json'] as [string, string],
      ['host', 'gateway'] as [string, string],
      ...headers,
    ].flat()
    return new Promise((resolve, reject) => {
      const call = request(
        `${gateway.url}${path}`,
        { method: 'POST', headers: [...flat, 'content-length', String(body.length)] as never },
        (response) => {
          let text = ''
          response.on('data', (chunk: Buffer) => (text += chunk.toString()))
          response.on('end', () => {
            const reason = /"reason":"([a-z-]+)"/.exec(text)?.[1]
            resolve({ status: response.statusCode ?? 0, headers: response.headers, text, reason })
          })
        },
      )
      call.on('error', reject)
      call.end(body)
    })
  }

  it('accepts the token from every credential source', async () => {
    const cases: [string, [string, string][], string?][] = [
      ['x-token', [['x-token', token]]],
      ['X-Token in other case', [['X-Token', token]]],
      ['Authorization: Bearer', [['authorization', `Bearer ${token}`]]],
      ['the scheme in other case', [['authorization', `bearer ${token}`]]],
      ['x-api-key', [['x-api-key', token]]],
      ['?api-key=', [], `/?api-key=${token}`],
      ['?api_key=', [], `/?api_key=${token}`],
      ['percent-encoding', [], `/?api-key=${token.replace('slc_', 'slc%5F')}`],
      ['beside other parameters', [], `/?a=1&api-key=${token}&b`],
      [
        'two carriers with the same value',
        [
          ['x-token', token],
          ['authorization', `Bearer ${token}`],
        ],
        `/?api_key=${token}`,
      ],
    ]
    for (const [name, headers, path] of cases) assert.equal((await post(headers, path)).status, 200, name)
  })

  it('refuses everything else with the same status and headers, and the reason only in data.reason', async () => {
    const other = (await gateway.subscribe({})).token
    const unknown = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'
    const cases: [string, [string, string][], string, string?][] = [
      ['nothing', [], 'missing'],
      ['an empty value', [['x-token', '']], 'malformed'],
      ['not a token', [['x-token', 'hello']], 'malformed'],
      ['a wrong checksum', [['x-token', `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`]], 'malformed'],
      ['an unknown token', [['x-token', unknown]], 'unknown'],
      ['8 KB', [['x-token', 'x'.repeat(8192)]], 'malformed'],
      ['another scheme', [['authorization', `Basic ${token}`]], 'missing'],
      ['an underscore in the name', [['x_token', token]], 'missing'],
      [
        'two carriers that differ',
        [
          ['x-token', token],
          ['x-api-key', other],
        ],
        'conflicting',
      ],
      ['header and query that differ', [['x-token', token]], 'conflicting', `/?api-key=${other}`],
      [
        'one header twice',
        [
          ['x-token', token],
          ['x-token', token],
        ],
        'conflicting',
      ],
      [
        'Authorization twice',
        [
          ['authorization', `Bearer ${token}`],
          ['authorization', `Bearer ${token}`],
        ],
        'conflicting',
      ],
      ['one query name twice', [], 'conflicting', `/?api-key=${token}&api-key=${token}`],
      ['both query names, differing', [], 'conflicting', `/?api-key=${token}&api_key=${other}`],
      ['in the path', [], 'missing', `/?token=${token}`],
    ]
    const before = node.calls.length
    let names: string[] | undefined
    for (const [name, headers, reason, path] of cases) {
      const response = await post(headers, path)
      assert.equal(response.status, 401, name)
      assert.equal(response.reason, reason, name)
      assert.equal(response.headers['www-authenticate'], 'Bearer')
      assert.match(response.text, /"code":-32401/)
      names ??= Object.keys(response.headers)
      assert.deepEqual(Object.keys(response.headers), names, `${name}: other headers than the first refusal`)
    }
    assert.equal(node.calls.length, before, 'nothing of it reached the node')
  })

  it('applies changes of the store: rotated, revoked, suspended, cancelled, not in the plan', async () => {
    const { on } = gateway
    const states: [string, (id: string) => Promise<unknown>, string][] = [
      ['rotated', (subscription) => rotateToken(on, { subscription, graceMs: 0 }), 'revoked'],
      ['revoked', (subscription) => revokeTokens(on, { subscription }), 'revoked'],
      ['suspended', (subscription) => suspendSubscription(on, { subscription }), 'suspended'],
      ['cancelled', (subscription) => cancelSubscription(on, { subscription }), 'cancelled'],
    ]
    for (const [name, change, reason] of states) {
      const made = await gateway.subscribe({})
      // Several on one connection: the header cache must not keep a revoked token valid.
      for (let call = 0; call < 3; call++) assert.equal((await post([['x-token', made.token]])).status, 200, name)
      const { promise, resolve } = Promise.withResolvers<void>()
      using _watching = gateway.access.onChange(resolve)
      await change(made.id)
      await promise
      assert.deepEqual(
        await post([['x-token', made.token]]).then(({ status, reason: why }) => ({ status, why })),
        { status: 401, why: reason },
        name,
      )
    }
    const sql = await gateway.subscribe({ products: ['indexer'] })
    assert.equal((await post([['x-token', sql.token]])).reason, 'not-in-plan')
    const { promise, resolve } = Promise.withResolvers<void>()
    using _watching = gateway.access.onChange(resolve)
    await setCustomerState(on, { customer: 'acme', state: 'suspended' })
    await promise
    assert.equal((await post([['x-token', token]])).reason, 'suspended')
  })

  it('shows no token and no query to the node, the log or the metrics', async () => {
    const metrics = await gateway.registry.text()
    const seen = node.requests.map(({ url, headers, body }) => `${url} ${JSON.stringify(headers)} ${body}`).join('\n')
    assert.ok(node.requests.length > 10)
    for (const [position, text] of [
      ['upstream', seen],
      ['log', gateway.log()],
      ['metrics', metrics],
    ] as const) {
      assert.ok(!text.includes(token) && !text.includes('api-key') && !text.includes('api_key'), position)
      assert.doesNotMatch(text, /slc_[0-9A-Za-z]{38}/, position)
    }
  })
})
