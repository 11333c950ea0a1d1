import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { WebSocket } from 'ws'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { revokeTokens } from '../../src/access/provisioning/tokens.ts'
import { FIRST_ID } from '../../src/gateway/pubsub/subscriptions.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { startWsGateway, type WsGateway } from '../support/gateway/ws.ts'

type Response = { id: unknown; result: never; error: { code: number; message: string; data: Record<string, unknown> } }

const KEY = '11111111111111111111111111111111'

describe('the WebSocket server', () => {
  let node: FakeNode
  let ws: WsGateway

  before(async () => {
    node = await startFakeNode()
    ws = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
  })
  after(async () => {
    await ws[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  const atNode = (method: string) => [...node.subscriptions.values()].filter((entry) => entry.method === method)

  it('accepts a token in a header and a ticket, and nothing else', async () => {
    const { token } = await ws.gateway.subscribe({})
    const other = (await ws.gateway.subscribe({})).token
    const caller = ws.gateway.access.authenticate({ token }, 'bundle', Date.now())
    assert.ok(caller.ok)
    const { ticket } = ws.gateway.access.issueTicket(caller, Date.now())
    const late = ws.gateway.access.issueTicket(caller, Date.now() - 61_000).ticket
    const accepted: [string, Record<string, string>][] = [
      ['', { 'x-token': token }],
      ['', { 'X-Token': token, authorization: `bearer ${token}` }],
      ['', { authorization: `Bearer ${token}` }],
      [`?ticket=${ticket}`, {}],
      [`?gaps=1&ticket=${encodeURIComponent(ticket)}`, {}],
      [`?ticket=${ticket}`, { 'x-token': token }],
      [`any/path?api-key=${other}`, { 'x-token': token }],
    ]
    for (const [query, headers] of accepted) (await ws.connect(query, headers)).socket.terminate()

    const refused: [string, Record<string, string>, string][] = [
      ['', {}, 'missing'],
      [`?api-key=${token}`, {}, 'missing'],
      [`?api_key=${token}`, {}, 'missing'],
      ['', { 'x-api-key': token }, 'missing'],
      ['', { authorization: `Basic ${token}` }, 'missing'],
      ['', { 'x-token': '' }, 'malformed'],
      ['', { 'x-token': token.slice(0, -1) }, 'malformed'],
      ['', { 'x-token': 'x'.repeat(8192) }, 'malformed'],
      ['', { 'x-token': token, authorization: `Bearer ${other}` }, 'conflicting'],
      ['?ticket=', {}, 'malformed'],
      [`?ticket=${ticket.slice(0, -4)}AAAA`, {}, 'unknown'],
      [`?ticket=${late}`, {}, 'expired'],
      [`?ticket=${ticket}&ticket=${ticket}`, {}, 'conflicting'],
      [`?ticket=${ticket}`, { 'x-token': other }, 'conflicting'],
      ['', { 'x-token': (await ws.gateway.subscribe({ products: ['indexer'] })).token }, 'not-in-plan'],
    ]
    for (const [query, headers, reason] of refused) {
      const { status, body, headers: responded } = await ws.refusal(query, { ...headers, 'x-request-id': 'r-1' })
      const { error, id } = JSON.parse(body) as Response
      assert.deepEqual([status, error.code, id], [401, -32401, null], reason)
      assert.deepEqual([error.data['reason'], error.data['request_id']], [reason, 'r-1'])
      assert.deepEqual([responded['www-authenticate'], responded['content-type']], ['Bearer', 'application/json'])
      assert.ok(!body.includes(token.slice(8)) && !body.includes(ticket.slice(8)))
    }
    await until('all permits are released', () => ws.gateway.access.permits.total().wsConnections === 0)
  })

  it('accepts the token in the query where queryToken is set', async () => {
    await using own = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }], { queryToken: true })
    const { token } = await own.gateway.subscribe({})
    for (const query of [`?api-key=${token}`, `?api_key=${token}`]) (await own.connect(query, {})).socket.terminate()
    assert.equal((await own.refusal(`?api-key=${token}&api-key=${token}`, {})).status, 401)
  })

  it('takes a permit for each connection, and refuses by name without one', async () => {
    const { token, id } = await ws.gateway.subscribe({ overrides: { wsConnections: 2 } })
    const [first] = [await ws.open(token), await ws.open(token)]
    const { status, headers, body } = await ws.refusal('', { 'x-token': token })
    const { error } = JSON.parse(body) as Response
    assert.deepEqual([status, error.code, error.data['limit'], error.data['size']], [429, -32429, 'wsConnections', 2])
    assert.match(headers['retry-after'] ?? '', /^\d+$/)
    first.socket.close()
    await until('the permit is released', () => ws.gateway.access.permits.taken(id).wsConnections === 1)
    await ws.open(token)
  })

  it('releases the permit of an invalid handshake', async () => {
    const { token, id } = await ws.gateway.subscribe({})
    const reply = await fetch(ws.url.replace('ws:', 'http:'), { headers: { 'x-token': token } })
    assert.equal(reply.status, 426)
    const headers = {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'short',
      'x-token': token,
    }
    const asked = request(ws.url.replace('ws:', 'http:'), { headers }).end()
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    response.resume()
    assert.equal(response.statusCode, 400)
    assert.equal(ws.gateway.access.permits.taken(id).wsConnections, 0)
  })

  it('shares one upstream subscription between equal subscribes', async () => {
    const { token, id } = await ws.gateway.subscribe({})
    const other = await ws.gateway.subscribe({})
    const [a, b] = [await ws.open(token), await ws.open(other.token)]
    await a.call('slotSubscribe')
    const one = (await a.call('accountSubscribe', [KEY, { commitment: 'finalized', encoding: 'binary' }])) as Response
    const two = (await b.call('accountSubscribe', [KEY, { encoding: 'binary', commitment: 'finalized' }])) as Response
    assert.deepEqual([one.result, two.result], [FIRST_ID + 1, FIRST_ID])
    assert.equal(atNode('accountSubscribe').length, 1)
    assert.equal(node.texts.filter((text) => text.includes('accountSubscribe')).length, 1)
    const value = '{"context":{"slot":1001},"value":{"lamports": 18446744073709551615,"rentEpoch":1.0e2,"owner":"ü"}}'
    node.notify('accountSubscribe', value)
    const frame = (own: number) =>
      `{"jsonrpc":"2.0","method":"accountNotification","params":{"result":${value},"subscription":${own}}}`
    assert.deepEqual([await a.text(), await b.text()], [frame(FIRST_ID + 1), frame(FIRST_ID)])

    assert.equal(((await a.call('accountUnsubscribe', [FIRST_ID + 1])) as Response).result, true)
    assert.equal(ws.gateway.access.permits.taken(id).wsSubscriptions, 1)
    node.notify('accountSubscribe', value)
    assert.equal(await b.text(), frame(FIRST_ID))
    assert.deepEqual(a.texts, [])
    b.socket.close()
    await until('the node has none left', () => atNode('accountSubscribe').length === 0)
    assert.equal(ws.gateway.access.permits.taken(other.id).wsSubscriptions, 0)
    a.socket.close()
  })

  it('responds to a subscribe before its first notification, also in a batch', async () => {
    const { token } = await ws.gateway.subscribe({})
    const client = await ws.open(token)
    client.socket.send(
      '[{"jsonrpc":"2.0","id":1.50,"method":"rootSubscribe"},{"jsonrpc":"2.0","method":"ping"},' +
        '{"jsonrpc":"2.0","id":"g","method":"getHealth"},5]',
    )
    await until('the node has it', () => atNode('rootSubscribe').length === 1)
    node.notify('rootSubscribe', '7')
    assert.match(
      await client.text(),
      /^\[\{"jsonrpc":"2.0","result":1000000001,"id":1.50\},\{"jsonrpc":"2.0","result":.*"id":"g"\}\s*,\{"jsonrpc":"2.0","error":\{"code":-32600.*\]$/,
    )
    assert.equal(((await client.next()) as { params: { subscription: number } }).params.subscription, FIRST_ID)
    client.socket.close()
  })

  it('refuses an invalid message with the reason and keeps the connection', async () => {
    const { token } = await ws.gateway.subscribe({})
    const client = await ws.open(token)
    const table: [string, RegExp][] = [
      ['{', /"code":-32700.*"id":null/],
      ['[]', /"code":-32600.*"id":null/],
      ['{"jsonrpc":"2.0","id":7}', /"code":-32600.*"id":7/],
      [
        '{"jsonrpc":"2.0","id":8,"method":"accountUnsubscribe","params":[99]}',
        /-32602.*Invalid subscription id\..*"id":8/,
      ],
      ['{"jsonrpc":"2.0","id":9,"method":"slotUnsubscribe"}', /-32602.*Invalid subscription id\..*"id":9/],
    ]
    for (const [text, expected] of table) {
      client.socket.send(text)
      assert.match(await client.text(), expected, text)
    }
    client.socket.send('{"jsonrpc":"2.0","method":"ping"}')
    const limits = (await client.call('getRateLimits')) as { result: { budget: { limit: number }; open: object } }
    assert.ok(limits.result.budget.limit > 0)
    assert.deepEqual(limits.result.open, { wsConnections: 1, wsSubscriptions: 0, grpcStreams: 0 })
    const before = node.texts.length
    node.wsError = '{"code":-32602,"message":"Invalid Request: Invalid pubkey provided"}'
    client.socket.send('{"jsonrpc":"2.0","id":"ä","method":"accountSubscribe","params":["no"]}')
    assert.equal(await client.text(), `{"jsonrpc":"2.0","error":${node.wsError},"id":"ä"}`)
    node.wsError = undefined
    assert.equal(node.texts.length, before + 1)
    client.socket.close()
  })

  it('closes a client that sends binary data or a message over the limit', async () => {
    const { token } = await ws.gateway.subscribe({})
    const [latin, long] = [await ws.open(token), await ws.open(token)]
    latin.socket.send(Buffer.from([0xff, 0xfe]), { binary: true })
    assert.equal((await latin.closed()).code, 1003)
    long.socket.send('x'.repeat(4097))
    assert.equal((await long.closed()).code, 1009)
  })

  it('reads free messages beyond the burst more slowly, and keeps the connection', async () => {
    const { token } = await ws.gateway.subscribe({})
    const client = await ws.open(token)
    const pings = `[${Array.from({ length: 100 }, () => '{"jsonrpc":"2.0","method":"ping"}').join(',')}]`
    for (let sent = 0; sent < 14; sent++) client.socket.send(pings)
    const { result } = (await client.call('getRateLimits')) as Response
    assert.ok(result)
    const beyond = ws.registry.value('sluice_bundle_refused_total', { interface: 'ws', limit: 'freeMessages' })
    assert.ok(beyond !== undefined && beyond >= 1, String(beyond))
    client.socket.close()
  })

  it('closes a client over ten pings a second with 1008, and serves one at ten', async () => {
    const { token } = await ws.gateway.subscribe({})
    const [calm, wild] = [await ws.open(token), await ws.open(token)]
    let pongs = 0
    calm.socket.on('pong', () => (pongs += 1))
    for (let sent = 0; sent < 10; sent++) calm.socket.ping()
    await until('every ping has its pong', () => pongs === 10)
    for (let sent = 0; sent < 11; sent++) wild.socket.ping()
    assert.deepEqual(await wild.closed(), { code: 1008, reason: 'too many pings' })
    assert.equal(ws.registry.value('sluice_bundle_refused_total', { interface: 'ws', limit: 'controlPings' }), 1)
    const { result } = (await calm.call('getRateLimits')) as Response
    assert.ok(result)
  })

  it('refuses handshakes at connectionsMax, and closes slow clients with 1013', async () => {
    await using own = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }], {
      connectionsMax: 1,
      pendingBytesMax: 100_000,
    })
    const { token, id } = await own.gateway.subscribe({})
    const client = await own.open(token)
    assert.equal((await own.refusal('', { 'x-token': token })).status, 503)
    assert.equal(own.gateway.access.permits.taken(id).wsConnections, 1)
    await client.call('logsSubscribe', ['all'])
    client.socket.pause()
    const large = JSON.stringify('x'.repeat(1_000_000))
    await until('it is cut', () => {
      node.notify('logsSubscribe', large)
      return own.gateway.access.permits.taken(id).wsConnections === 0
    })
    client.socket.resume()
    assert.ok([1013, 1006].includes((await client.closed()).code))
    assert.equal(own.registry.value('sluice_bundle_slow_consumers_total', { interface: 'ws' }), 1)
  })

  it('charges each request, refuses with its id, and keeps the connection', async () => {
    const { token } = await ws.gateway.subscribe({ overrides: { methods: { getSlot: { perSecond: 1 } } } })
    const client = await ws.open(token)
    const responses: Response[] = []
    for (let asked = 0; asked < 30; asked++) responses.push((await client.call('getSlot', [], `a${asked}`)) as Response)
    const refused = responses.filter(({ error }) => error !== undefined)
    assert.ok(refused.length > 0 && refused.length < 30)
    for (const { id, error } of refused) {
      assert.match(String(id), /^a\d+$/)
      assert.deepEqual([error.code, error.data['limit']], [-32429, 'methodPerSecond'])
    }
    assert.equal(node.calls.filter(({ method }) => method === 'getSlot').length, 30 - refused.length)
    assert.equal(client.socket.readyState, WebSocket.OPEN)
    client.socket.close()
  })

  it('limits subscriptions by the plan', async () => {
    const { token, id } = await ws.gateway.subscribe({ overrides: { wsSubscriptions: 2 } })
    const [a, b] = [await ws.open(token), await ws.open(token)]
    await a.call('rootSubscribe')
    await b.call('rootSubscribe')
    const { error } = (await b.call('slotSubscribe', [], 'x')) as Response
    assert.deepEqual([error.code, error.data['limit'], error.data['size']], [-32429, 'wsSubscriptions', 2])
    assert.deepEqual([typeof error.data['cost'], error.data['retryAfterMs']], ['number', 5000])
    await b.call('rootUnsubscribe', [FIRST_ID])
    assert.equal(((await b.call('slotSubscribe')) as Response).result, FIRST_ID + 1)
    a.socket.close()
    b.socket.close()
    await until('all are free', () => ws.gateway.access.permits.taken(id).wsSubscriptions === 0)
  })

  it('limits one connection to a thousand subscriptions', async () => {
    const unlimited = { ...BUILT_IN_PLANS.professional, unitsPerSecond: null, sendsPerSecond: null }
    await using own = await startWsGateway(
      [{ name: 'one', rpc: node.rpc, ws: node.ws }],
      {},
      { professional: unlimited },
    )
    const client = await own.open((await own.gateway.subscribe({})).token)
    for (let sent = 0; sent < 1001; sent++) {
      client.socket.send(`{"jsonrpc":"2.0","id":${sent},"method":"rootSubscribe"}`)
    }
    const responses: Response[] = []
    for (let read = 0; read < 1001; read++) responses.push((await client.next()) as Response)
    const refused = responses.filter(({ error }) => error !== undefined)
    assert.deepEqual(
      refused.map(({ id, error }) => [id, error.code, error.data['size']]),
      [[1000, -32429, 1000]],
    )
    assert.equal(own.server.upstreamSubscriptions, 1)
  })

  it('ends a signature subscription with its last notification', async () => {
    const { token, id } = await ws.gateway.subscribe({})
    const client = await ws.open(token)
    await client.call('signatureSubscribe', ['sig', { enableReceivedNotification: true }])
    node.notify('signatureSubscribe', '{"context":{"slot":5},"value":"receivedSignature"}')
    await client.next()
    assert.equal(ws.gateway.access.permits.taken(id).wsSubscriptions, 1)
    node.notify('signatureSubscribe', '{"context":{"slot":5},"value":{"err":null}}')
    await client.next()
    assert.equal(ws.gateway.access.permits.taken(id).wsSubscriptions, 0)
    const { error } = (await client.call('signatureUnsubscribe', [FIRST_ID])) as Response
    assert.equal(error.code, -32602)
    client.socket.close()
  })

  it('closes with 4401 within five seconds of a revocation', async () => {
    const { token, id } = await ws.gateway.subscribe({})
    const stays = await ws.open((await ws.gateway.subscribe({})).token)
    const client = await ws.open(token)
    await client.call('rootSubscribe')
    const fromMs = performance.now()
    await revokeTokens(ws.gateway.on, { subscription: id })
    assert.deepEqual(await client.closed(), { code: 4401, reason: 'token revoked' })
    assert.ok(performance.now() - fromMs < 5000)
    assert.equal(((await stays.call('rootSubscribe')) as Response).result, FIRST_ID)
    assert.equal((await ws.refusal('', { 'x-token': token })).status, 401)
    stays.socket.close()
  })

  it('drains with 1012', async () => {
    await using own = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
    const client = await own.open((await own.gateway.subscribe({})).token)
    await client.call('rootSubscribe')
    own.server.beginLameDuck()
    await own.server.drain(2000)
    assert.equal((await client.closed()).code, 1012)
    assert.equal(own.server.upstreamSubscriptions, 0)
  })
})
