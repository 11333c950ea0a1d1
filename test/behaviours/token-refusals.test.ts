import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import {
  cancelSubscription,
  createSubscription,
  suspendSubscription,
} from '../../src/access/provisioning/subscriptions.ts'
import { revokeTokens } from '../../src/access/provisioning/tokens.ts'
import { REFUSAL_FIXES, type RefusalCause } from '../../src/access/refusal-fixes.ts'
import type { TokenRefusal } from '../../src/contract/errors.ts'
import { startIndexerServer } from '../../src/indexer/http.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { startTestExecution, type TestExecution } from '../support/execution/start.ts'
import { PING, rawCall } from '../support/gateway/grpc.ts'
import { AMPLE_HELD_BYTES } from '../support/gateway/held-bytes.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { type IndexerAccount, subscribeIndexer } from '../support/indexer/start.ts'

const INTERFACES = ['rpc', 'ws', 'wsWithQuery', 'grpc', 'execution', 'executionWs', 'indexer'] as const
type Interface = (typeof INTERFACES)[number]
type Fields = readonly (readonly [string, string])[]
type Sent = { readonly fields: Fields; readonly query?: string }
type Refused = {
  readonly status: number
  /** Without those that differ between any two responses. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly reason: string | undefined
  readonly found: readonly string[] | undefined
  readonly fix: string
}

const PER_RESPONSE = ['date', 'x-request-id', 'x-clickhouse-query-id', 'content-length', 'grpc-message']
/** A test vector of the token format, never issued. */
const NEVER_ISSUED = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'

/** `data.reason` of the causes that are finer than the reasons. */
const REASONS: Partial<Record<RefusalCause, TokenRefusal>> = {
  'query-key': 'missing',
  'api-key-header': 'missing',
  'not-bearer': 'missing',
  'bearer-header': 'missing',
  'ticket-not-read': 'missing',
  empty: 'malformed',
  repeated: 'conflicting',
  'two-logins': 'conflicting',
  'ticket-and-token': 'conflicting',
  'ticket-malformed': 'malformed',
  'ticket-unknown': 'unknown',
  'ticket-expired': 'expired',
}

/** Every cause on every interface: same status and headers, the cause in `data.reason`, the way out of that cause on that interface in `data.fix`. */
describe('a refused token', () => {
  const opened = new AsyncDisposableStack()
  let gateway: Gateway
  let withQuery: Gateway
  let execution: TestExecution
  let indexerPort: number
  let login: IndexerAccount
  let tokens: Record<
    'valid' | 'other' | 'suspended' | 'cancelled' | 'revoked' | 'expired' | 'noBundle' | 'noIndexer',
    string
  >
  let tickets: Record<'valid' | 'expired' | 'unknown', string>
  const secrets = () => [...Object.values(tokens), ...Object.values(tickets), login.password]

  before(async () => {
    gateway = opened.use(await startGateway([]))
    login = await subscribeIndexer(gateway, 'reader')
    const subscribe = async (products: ('bundle' | 'indexer')[] = ['bundle', 'indexer']) =>
      gateway.subscribe({ products })
    const [valid, other, suspended, cancelled, revoked, noBundle, noIndexer] = [
      await subscribe(),
      await subscribe(),
      await subscribe(),
      await subscribe(),
      await subscribe(),
      await subscribe(['indexer']),
      await subscribe(['bundle']),
    ]
    const { on, access } = gateway
    const hourAgo = { ...on, nowMs: Date.now() - 3_600_000 }
    const expired = await createSubscription(hourAgo, {
      customer: 'acme',
      name: 'ended',
      plan: 'professional',
      products: ['bundle', 'indexer'],
      overrides: {},
      validUntil: Date.now() - 1_800_000,
    })
    await suspendSubscription(on, { subscription: suspended.id })
    await revokeTokens(on, { subscription: revoked.id })
    await cancelSubscription(on, { subscription: cancelled.id })
    tokens = {
      valid: valid.token,
      other: other.token,
      suspended: suspended.token,
      cancelled: cancelled.token,
      revoked: revoked.token,
      expired: expired.token?.secret ?? '',
      noBundle: noBundle.token,
      noIndexer: noIndexer.token,
    }
    const reasonOf = (token: string) => {
      const caller = access.authenticate({ token }, 'bundle', Date.now())
      return caller.ok ? undefined : caller.reason
    }
    await until('the changes have reached the process', () => reasonOf(tokens.cancelled) === 'cancelled')
    const { folder } = gateway
    const ws = { host: '127.0.0.1', port: 0, queryToken: true }
    withQuery = opened.use(await startGateway([], BUILT_IN_PLANS, { folder, bundle: { ws } }))
    execution = opened.use(
      await startTestExecution({ clock: systemClock, settings: { auth: 'token' }, deps: { access } }),
    )
    const registry = opened.use(createMetricsRegistry())
    const indexer = opened.use(
      await startIndexerServer(
        { listen: { host: '127.0.0.1', port: 0 }, limits: {} as never, readSecondsMax: 60, displayName: 'test' },
        {
          access,
          engine: { executor: {} as never },
          coverageSlot: () => 0,
          heldBytes: AMPLE_HELD_BYTES,
          metrics: indexerMetrics(registry),
          log: silentLogger,
          clock: systemClock,
          random: secureRandom,
          onRefused() {},
          onNotAfter() {},
        },
      ),
    )
    indexerPort = indexer.address.port
    const caller = access.authenticate({ token: tokens.valid }, 'bundle', Date.now())
    assert(caller.ok)
    const { ticket } = access.issueTicket(caller, Date.now())
    tickets = {
      valid: ticket,
      expired: access.issueTicket(caller, Date.now() - 61_000).ticket,
      unknown: `${ticket.slice(0, -6)}AAAAAA`,
    }
  })
  after(() => opened.disposeAsync())

  /** A request with this cause on this interface. */
  function sentFor(cause: RefusalCause, at: Interface): Sent {
    const xToken = (token: string): Sent => ({ fields: [['x-token', token]] })
    const ticket = (text: string, fields: Fields = []): Sent => ({ fields, query: `ticket=${text}` })
    switch (cause) {
      case 'missing':
        return { fields: [] }
      case 'query-key':
        return { fields: [], query: `api-key=${tokens.valid}` }
      case 'api-key-header':
        return { fields: [['x-api-key', tokens.valid]] }
      case 'not-bearer':
        return { fields: [['authorization', tokens.valid]] }
      case 'bearer-header':
        return { fields: [['authorization', `Bearer ${tokens.valid}`]] }
      case 'empty':
        return xToken('')
      case 'malformed':
        return xToken(tokens.valid.slice(0, -1))
      case 'unknown':
        return xToken(NEVER_ISSUED)
      case 'conflicting':
        return {
          fields: [
            ['x-token', tokens.valid],
            ['authorization', `Bearer ${tokens.other}`],
          ],
        }
      case 'repeated':
        return {
          fields: [
            ['x-token', tokens.valid],
            ['x-token', tokens.valid],
          ],
        }
      case 'two-logins':
        return {
          fields: [
            ['x-token', login.token],
            ['x-clickhouse-user', login.username],
            ['x-clickhouse-key', login.password],
          ],
        }
      case 'not-in-plan':
        return xToken(at === 'indexer' ? tokens.noIndexer : tokens.noBundle)
      case 'revoked':
      case 'expired':
      case 'suspended':
      case 'cancelled':
        return xToken(tokens[cause])
      case 'ticket-malformed':
        return ticket(tickets.valid.slice(0, -1))
      case 'ticket-unknown':
        return ticket(tickets.unknown)
      case 'ticket-expired':
        return ticket(tickets.expired)
      case 'ticket-and-token':
        return ticket(tickets.valid, [['x-token', tokens.other]])
      case 'ticket-not-read':
        return ticket(tickets.valid)
    }
  }

  async function ask(at: Interface, sent: Sent): Promise<Refused> {
    if (at === 'grpc') {
      const fields = sent.fields.map(([name, value]): [string, string] => [name, value])
      const response = await rawCall(Number(gateway.grpc.split(':')[1]), PING, fields, frameMessage(Buffer.alloc(0)))
      const [, reason, fix = ''] =
        /^missing or invalid token; reason: ([a-z-]+); fix: (.+)$/.exec(response.message) ?? []
      const headers = stable(response.headers as Record<string, string>)
      return { status: response.code, headers, text: response.message, reason, found: undefined, fix }
    }
    const query = sent.query === undefined ? '' : `?${sent.query}`
    const responded = await send(at, query, sent.fields)
    if (at === 'indexer') {
      const fix =
        /DB::Exception: Authentication failed\. (.+) \(AUTHENTICATION_FAILED\)$/m.exec(responded.text)?.[1] ?? ''
      return { ...responded, reason: undefined, found: undefined, fix }
    }
    const { error } = JSON.parse(responded.text) as {
      error: { code: number; data: { reason: string; found: string[]; fix: string } }
    }
    assert.equal(error.code, -32401)
    return { ...responded, ...error.data }
  }

  function send(at: Interface, query: string, fields: Fields) {
    switch (at) {
      case 'rpc':
        return exchange(`${gateway.url}/${query}`, 'POST', [['content-type', 'application/json'], ...fields])
      case 'ws':
        return exchange(`${gateway.ws.replace('ws:', 'http:')}/${query}`, 'GET', [...HANDSHAKE, ...fields])
      case 'wsWithQuery':
        return exchange(`${withQuery.ws.replace('ws:', 'http:')}/${query}`, 'GET', [...HANDSHAKE, ...fields])
      case 'execution':
        return exchange(`${execution.http}/v1/tps${query}`, 'GET', fields)
      case 'executionWs':
        return exchange(`${execution.http}/v1/ws${query}`, 'GET', [...HANDSHAKE, ...fields])
      default: {
        const { authorization = '' } = login.headers
        const isOwn = fields.some(([name]) => name === 'authorization')
        const own: Fields = isOwn ? fields : [['authorization', authorization], ...fields]
        return exchange(`http://127.0.0.1:${indexerPort}/${query}`, 'POST', own)
      }
    }
  }

  for (const at of INTERFACES) {
    it(`on ${at} gets the way out of its cause`, async () => {
      const seen = new Set<string>()
      for (const cause of Object.keys(REFUSAL_FIXES) as RefusalCause[]) {
        const text = REFUSAL_FIXES[cause][at]
        if (text === null) continue
        const refused = await ask(at, sentFor(cause, at))
        const sources = cause === 'repeated' ? 'x-token' : 'x-token and authorization'
        assert.equal(refused.fix, text.replace('{sources}', sources), cause)
        if (at !== 'indexer') assert.equal(refused.reason, REASONS[cause] ?? cause, cause)
        for (const secret of secrets()) assert.ok(!refused.text.includes(secret), `${cause} shows a secret`)
        seen.add(JSON.stringify([refused.status, refused.headers]))
      }
      assert.equal(seen.size, 1, `status and headers are the same for every cause: ${[...seen].join('\n')}`)
      assert.equal((JSON.parse([...seen][0] ?? '') as [number])[0], at === 'grpc' ? 7 : 401)
    })
  }

  it('in the query of a WebSocket, where web3.js puts it, is refused with ticket, header and queryToken as the ways out', async () => {
    const { fix, found, reason } = await ask('ws', sentFor('query-key', 'ws'))
    assert.deepEqual([reason, found], ['missing', ['query api-key']])
    for (const named of [/POST \/v1\/ws-ticket/, /\?ticket=/, /x-token/, /queryToken/, /web3\.js/])
      assert.match(fix, named)
    const accepted = await exchange(
      `${withQuery.ws.replace('ws:', 'http:')}/?api-key=${tokens.valid}`,
      'GET',
      HANDSHAKE,
    )
    assert.equal(accepted.status, 101)
  })

  it('names the two credential sources that differ, and which one is repeated', async () => {
    const fields: Fields = [
      ['x-token', tokens.valid],
      ['authorization', `Bearer ${tokens.valid}`],
    ]
    const { found, fix } = await ask('rpc', { fields, query: `api_key=${tokens.other}` })
    assert.deepEqual(found, ['x-token', 'authorization', 'query api_key'])
    assert.match(fix, /^x-token and query api_key have different tokens/)
    const twice = await ask('rpc', { fields: [], query: `api-key=${tokens.valid}&api-key=${tokens.valid}` })
    assert.match(twice.fix, /^query api-key occurs more than once/)
    const tooMany = await ask('ws', { fields: [], query: Array.from({ length: 500 }, () => 'ticket=a').join('&') })
    assert.match(tooMany.fix, /^ticket occurs more than once/)
    assert.ok(tooMany.text.length < 1000)
  })

  it('of a suspended or ended subscription is not asked for again: the operator is the way out', async () => {
    for (const cause of ['suspended', 'expired', 'cancelled', 'not-in-plan'] as const) {
      for (const at of INTERFACES) {
        if (REFUSAL_FIXES[cause][at] === null) continue
        const { fix } = await ask(at, sentFor(cause, at))
        assert.match(fix, /operator/, `${cause} on ${at}`)
        assert.doesNotMatch(fix, /send the token/i, `${cause} on ${at}`)
      }
    }
  })

  it('that is a ticket of more than 60 s gets a refusal that states it', async () => {
    for (const at of ['ws', 'wsWithQuery', 'executionWs'] as const) {
      const { fix, reason } = await ask(at, sentFor('ticket-expired', at))
      assert.equal(reason, 'expired')
      assert.match(fix, /ticket has expired; it is valid for 60 s.*POST \/v1\/ws-ticket/)
    }
  })

  it('on the indexer does not show which half of the credentials is wrong, and Bearer is not offered there', async () => {
    const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    const good = basic(login.username, login.password)
    const texts = new Set<string>()
    for (const fields of [
      [['authorization', good]],
      [
        ['x-token', login.token],
        ['authorization', basic(login.username, 'wrong')],
      ],
      [
        ['x-token', login.token],
        ['authorization', basic('u_nobody', login.password)],
      ],
      [
        ['x-token', NEVER_ISSUED],
        ['authorization', good],
      ],
      [
        ['x-token', 'hello'],
        ['authorization', good],
      ],
      [
        ['x-token', tokens.other],
        ['authorization', good],
      ],
    ] satisfies Fields[]) {
      const { text, headers } = await ask('indexer', { fields })
      texts.add(text)
      assert.equal(headers['www-authenticate'], 'Basic realm="sluice"')
    }
    assert.equal(texts.size, 1, [...texts].join(''))
    const response = await fetch(`http://127.0.0.1:${indexerPort}/?query=SELECT%201`)
    assert.deepEqual([response.status, await response.text()], [401, [...texts][0]])
  })
})

const HANDSHAKE: Fields = [
  ['connection', 'Upgrade'],
  ['upgrade', 'websocket'],
  ['sec-websocket-version', '13'],
  ['sec-websocket-key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
]

/** Raw, so that a field can occur twice. */
function exchange(url: string, method: string, fields: Fields) {
  return new Promise<{ status: number; headers: Record<string, string>; text: string }>((resolve, reject) => {
    const { host } = new URL(url)
    const call = request(url, { method, headers: [['host', host], ...fields].flat() as never }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: stable(response.headers as Record<string, string>),
          text,
        }),
      )
    })
    call.on('upgrade', (response, socket) => {
      socket.destroy()
      resolve({ status: response.statusCode ?? 0, headers: {}, text: '' })
    })
    call.on('error', reject)
    call.end()
  })
}

function stable(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !PER_RESPONSE.includes(name)))
}
