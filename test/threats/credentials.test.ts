import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { createSubscription } from '../../src/access/provisioning/subscriptions.ts'
import { revokeTokens, rotateToken } from '../../src/access/provisioning/tokens.ts'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { PING, rawCall } from '../support/gateway/grpc.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'

const CARRIERS = ['x-token', 'authorization', 'x-api-key', '?api-key', '?api_key'] as const
type Carrier = (typeof CARRIERS)[number]
const LISTENERS = ['rpc', 'ws', 'grpc'] as const
type Server = (typeof LISTENERS)[number]
type Carried = readonly [Carrier, string]

/** The specification: two headers on every interface, the other three sources on RPC only. */
const READ_ON: Record<Server, readonly Carrier[]> = {
  rpc: CARRIERS,
  ws: ['x-token', 'authorization'],
  grpc: ['x-token', 'authorization'],
}
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance"}'

type Outcome = { readonly isAccepted: boolean; readonly reason: string | undefined; readonly text: string }

/** Every credential source on every interface, in every state, single, in pairs and doubled, against a restatement of the rule. */
describe('T4: credentials on the whole gateway', () => {
  let node: FakeNode
  let gateway: Gateway
  let good: { token: string; id: string }
  let other: { token: string; id: string }
  /** Why each value is refused; values that are not listed are valid. */
  const faults = new Map<string, string>()
  /** All responses of all servers. */
  let responded = ''
  let grpcCalls = 0

  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => {
      grpcCalls += 1
      node.requests.push({ url: call.path, headers: call.metadata as never, body: '', method: 'grpc' })
      serveUnary(call, (message) => ({ ok: true, message }))
    }
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc, ws: node.ws, grpc: node.grpc }])
    good = await gateway.subscribe({ overrides: { unitsPerSecond: null } })
    other = await gateway.subscribe({})
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  function split(carried: readonly Carried[]): { headers: [string, string][]; query: string } {
    const headers: [string, string][] = []
    const query: string[] = []
    for (const [carrier, value] of carried) {
      if (carrier.startsWith('?')) query.push(`${carrier.slice(1)}=${value}`)
      else headers.push([carrier, carrier === 'authorization' ? `Bearer ${value}` : value])
    }
    return { headers, query: query.length === 0 ? '' : `?${query.join('&')}` }
  }

  function overHttp(url: string, headers: readonly (readonly [string, string])[], body: string | undefined) {
    return new Promise<{ status: number; text: string; head: IncomingMessage['headers'] }>((resolve, reject) => {
      const asked = request(url, {
        method: body === undefined ? 'GET' : 'POST',
        headers: ['host', 'gateway', ...headers.flat()] as never,
      })
      asked.on('error', reject)
      asked.on('upgrade', (response, socket) => {
        socket.destroy()
        resolve({ status: 101, text: '', head: response.headers })
      })
      asked.on('response', (response) => {
        let text = ''
        response.on('data', (chunk: Buffer) => (text += chunk.toString()))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text, head: response.headers }))
      })
      asked.end(body)
    })
  }

  async function present(server: Server, carried: readonly Carried[]): Promise<Outcome> {
    const { headers, query } = split(carried)
    if (server === 'grpc') {
      const { code, message } = await rawCall(
        Number(gateway.grpc.split(':')[1]),
        PING,
        headers,
        frameMessage(Buffer.alloc(0)),
      )
      assert.ok(code === 0 || code === 7, `gRPC status ${code}: ${message}`)
      responded += message
      return { isAccepted: code === 0, reason: /reason: ([a-z-]+);/.exec(message)?.[1], text: message }
    }
    const handshake = [
      ['connection', 'Upgrade'],
      ['upgrade', 'websocket'],
      ['sec-websocket-version', '13'],
      ['sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ=='],
    ] as const
    const { status, text, head } =
      server === 'ws'
        ? await overHttp(`${gateway.ws.replace('ws:', 'http:')}/${query}`, [...handshake, ...headers], undefined)
        : await overHttp(
            `${gateway.url}/${query}`,
            [['content-type', 'application/json'], ['content-length', String(CALL.length)], ...headers],
            CALL,
          )
    responded += text + JSON.stringify(head)
    const isAccepted = status === (server === 'ws' ? 101 : 200)
    if (!isAccepted) {
      assert.equal(status, 401, text)
      assert.equal(head['www-authenticate'], 'Bearer')
      assert.match(text, /"code":-32401/)
    }
    return { isAccepted, reason: /"reason":"([a-z-]+)"/.exec(text)?.[1], text }
  }

  /** The rule of robustness.md section 2. */
  function expected(server: Server, carried: readonly Carried[]): string | undefined {
    const read = carried.filter(([carrier]) => READ_ON[server].includes(carrier))
    if (read.length === 0) return 'missing'
    const carriers = read.map(([carrier]) => carrier)
    const values = new Set(read.map(([, value]) => decodeURIComponent(value)))
    if (new Set(carriers).size < carriers.length || values.size > 1) return 'conflicting'
    return faults.get([...values][0] ?? '')
  }

  /** Sends each combination to each server, and counts what the rule admits. */
  async function check(combinations: readonly (readonly Carried[])[]): Promise<number> {
    let accepted = 0
    for (const server of LISTENERS) {
      for (const carried of combinations) {
        // A path with a query is another method in gRPC; a query there has a separate test.
        if (server === 'grpc' && carried.some(([carrier]) => carrier.startsWith('?'))) continue
        // HTTP/2 drops a field that ends with a space (RFC 9113 section 8.2.1).
        if (server === 'grpc' && carried.some(([carrier, value]) => carrier === 'authorization' && value === ''))
          continue
        const name = `${server}: ${carried.map(([carrier, value]) => `${carrier}=${value.slice(0, 12)}`).join(' ')}`
        const reason = expected(server, carried)
        const outcome = await present(server, carried)
        assert.deepEqual([outcome.isAccepted, outcome.reason], [reason === undefined, reason], name)
        if (outcome.isAccepted && server !== 'ws') accepted += 1
      }
    }
    return accepted
  }

  async function checkAll(combinations: readonly (readonly Carried[])[]): Promise<void> {
    const forwardedBefore = node.calls.length + grpcCalls
    const accepted = await check(combinations)
    assert.equal(node.calls.length + grpcCalls - forwardedBefore, accepted, 'what was refused was not forwarded')
  }

  test('T4: each credential source with each kind of value', async () => {
    const { on } = gateway
    const [rotated, revoked, expired, sql] = [
      await gateway.subscribe({}),
      await gateway.subscribe({}),
      await subscribeUntil(gateway, Date.now() - 120_000),
      await gateway.subscribe({ products: ['indexer'] }),
    ]
    await rotateToken(on, { subscription: rotated.id, graceMs: 0 })
    await revokeTokens(on, { subscription: revoked.id })
    const reasonOf = (token: string) => {
      const caller = gateway.access.authenticate({ token }, 'bundle', Date.now())
      return caller.ok ? undefined : caller.reason
    }
    await until('the store is followed', () =>
      [rotated, revoked, expired].every(({ token }) => !['unknown', undefined].includes(reasonOf(token))),
    )
    faults.set(rotated.token, 'revoked')
    faults.set(revoked.token, 'revoked')
    faults.set(expired.token, 'expired')
    faults.set(sql.token, 'not-in-plan')
    faults.set('slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2', 'unknown')
    for (const malformed of [
      '',
      'hello',
      `${good.token.slice(0, -1)}${good.token.endsWith('0') ? '1' : '0'}`,
      `${good.token}0`,
      good.token.toLowerCase(),
      `"${good.token}"`,
      'x'.repeat(8192),
      `${good.token},${good.token}`,
    ]) {
      faults.set(malformed, 'malformed')
    }
    const values = [good.token, ...faults.keys()]
    await checkAll(
      CARRIERS.flatMap((carrier) =>
        values.map((value) => [[carrier, carrier.startsWith('?') ? encodeURIComponent(value) : value]] as const),
      ),
    )
  })

  test('T4: forms of a valid value: surrounding spaces, percent-encoding, other schemes', async () => {
    const { token } = good
    const encoded = Array.from(Buffer.from(token), (byte) => `%${byte.toString(16)}`).join('')
    const forms: [Server, [string, string][], string, string | undefined][] = [
      ['rpc', [['x-token', `  ${token}\t `]], '', undefined],
      ['rpc', [['Authorization', `BEARER    ${token}`]], '', undefined],
      ['rpc', [['Authorization', `Basic ${token}`]], '', 'missing'],
      ['rpc', [['Authorization', token]], '', 'missing'],
      ['rpc', [['Authorization', 'Bearer']], '', 'malformed'],
      ['rpc', [], `?api-key=${encoded}`, undefined],
      ['rpc', [], `?api_key=${encoded}`, undefined],
      ['rpc', [], `?api%2Dkey=${token}`, undefined],
      ['rpc', [], `?api-key=%zz`, 'malformed'],
      ['rpc', [], `?api-key=${token}%20`, 'malformed'],
      ['rpc', [], `?API-KEY=${token}`, 'missing'],
      ['rpc', [], `?api-key=${token}&api_key=${encoded}`, undefined],
      ['rpc', [['x-token', token]], `?api-key=`, 'conflicting'],
      ['ws', [['x-token', `  ${token} `]], '', undefined],
      ['ws', [['authorization', `bearer ${token}`]], '', undefined],
      ['ws', [], `?api-key=${encoded}`, 'missing'],
      ['ws', [], `?x-token=${token}`, 'missing'],
    ]
    for (const [server, headers, query, reason] of forms) {
      const handshake = ['connection', 'Upgrade', 'upgrade', 'websocket', 'sec-websocket-version', '13']
      const key = ['sec-websocket-key', 'dGhlIHNhbXBsZSBub25jZQ==']
      const url = server === 'ws' ? `${gateway.ws.replace('ws:', 'http:')}/${query}` : `${gateway.url}/${query}`
      const asked = request(url, {
        method: server === 'ws' ? 'GET' : 'POST',
        headers: [
          'host',
          'gateway',
          ...(server === 'ws'
            ? [...handshake, ...key]
            : ['content-type', 'application/json', 'content-length', String(CALL.length)]),
          ...headers.flat(),
        ] as never,
      })
      asked.end(server === 'ws' ? undefined : CALL)
      const [response] = (await Promise.race([once(asked, 'response'), once(asked, 'upgrade')])) as [IncomingMessage]
      let text = ''
      if (response.statusCode === 101) response.socket.destroy()
      else for await (const chunk of response) text += String(chunk)
      const name = `${server} ${JSON.stringify(headers)} ${query}`.replaceAll(token, 'TOKEN')
      assert.equal(/"reason":"([a-z-]+)"/.exec(text)?.[1], reason, name)
      assert.equal(response.statusCode, reason !== undefined ? 401 : server === 'ws' ? 101 : 200, name)
      responded += text
    }
  })

  test('T4: forty combinations of two and more, equal and not, one source twice', async () => {
    const twice = CARRIERS.flatMap((carrier) => [
      [
        [carrier, good.token],
        [carrier, good.token],
      ] as const,
      [
        [carrier, good.token],
        [carrier, other.token],
      ] as const,
      [
        [carrier, 'hello'],
        [carrier, good.token],
      ] as const,
    ])
    const pairs = CARRIERS.flatMap((first, at) =>
      CARRIERS.slice(at + 1).flatMap((second) => [
        [
          [first, good.token],
          [second, good.token],
        ] as const,
        [
          [first, good.token],
          [second, other.token],
        ] as const,
        [
          [first, 'hello'],
          [second, good.token],
        ] as const,
      ]),
    )
    const all = CARRIERS.map((carrier) => [carrier, good.token] as const)
    const combinations: (readonly Carried[])[] = [...twice, ...pairs, all, [...all, ['x-token', other.token]]]
    assert.ok(combinations.length >= 40, `${combinations.length}`)
    await checkAll(combinations)
  })

  test('T4: charges nothing that was refused, and no token or query is in a log, a metric, a response or at the node', async () => {
    await gateway.access.usage.flush()
    const rows = [good, other].map(async ({ id }) => gateway.on.store.usage({ subscriptionId: id }))
    const units = (await Promise.all(rows)).flat().reduce((sum, row) => sum + row.units, 0)
    // The probes and the subscriptions to slots are the gateway's own.
    const forwarded = node.calls.filter(({ method }) => method === 'getBalance').length + grpcCalls
    assert.equal(units, forwarded)
    const atNode = node.requests.map(({ url, headers, body }) => `${url} ${JSON.stringify(headers)} ${body}`).join('\n')
    for (const [position, text] of [
      ['node', atNode + JSON.stringify(node.handshakes) + node.texts.join('\n')],
      ['log', gateway.log()],
      ['metrics', await gateway.registry.text()],
      ['responses', responded],
    ] as const) {
      if (position !== 'log') assert.ok(text.length > 100, position)
      for (const secret of [good.token, other.token, ...faults.keys()].filter((value) => value.startsWith('slc_'))) {
        assert.ok(!text.includes(secret) && !text.includes(secret.slice(4, 36)), `a token in the ${position}`)
      }
      assert.doesNotMatch(text, /api[-_]key=/, position)
    }
  })
})

/** A subscription made an hour ago; past its end there is a minute in which clocks may differ. */
async function subscribeUntil(gateway: Gateway, validUntil: number): Promise<{ token: string; id: string }> {
  const { subscription, token } = await createSubscription(
    { ...gateway.on, nowMs: Date.now() - 3_600_000 },
    { customer: 'acme', name: 'ended', plan: 'starter', products: ['bundle'], overrides: {}, validUntil },
  )
  return { token: token?.secret ?? '', id: subscription.id }
}
