import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { FIRST_ID } from '../../src/gateway/pubsub/subscriptions.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { startGateway } from '../support/gateway/start.ts'
import { startWsGateway } from '../support/gateway/ws.ts'

type Response = { id: unknown; result: never; error: { code: number; message: string; data: Record<string, unknown> } }

const KEY = '11111111111111111111111111111111'
const CACHE = { bytesMax: 1024 * 1024, entriesMax: 100, responseBytesMax: 512 * 1024 }
const accountOf = (subscribe: string) => `{"context":{"slot":1001},"value":"${subscribe}"}`

/** Reads JSON as a node does that keeps the first of duplicate members, numbers as their text. */
function parseFirstWins(text: string): unknown {
  let at = 0
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g) ?? []
  function value(): unknown {
    const token = tokens[at++] as string
    if (token === '[') {
      const items: unknown[] = []
      while (tokens[at] !== ']') {
        if (tokens[at] === ',') at += 1
        items.push(value())
      }
      at += 1
      return items
    }
    if (token !== '{') return JSON.parse(token)
    const members = new Map<string, unknown>()
    while (tokens[at] !== '}') {
      if (tokens[at] === ',') at += 1
      const name = JSON.parse(tokens[at++] as string) as string
      at += 1
      const member = value()
      if (!members.has(name)) members.set(name, member)
    }
    at += 1
    return Object.fromEntries(members)
  }
  return value()
}

const NODES: [string, FakeNode['parse']][] = [
  ['the first', parseFirstWins],
  ['the last', (text) => JSON.parse(text) as unknown],
]

/** Notifies each subscription of the params that the node read for it. */
function notifyEach(node: FakeNode): void {
  for (const [id, { method, params, client }] of node.subscriptions) {
    if (method !== 'accountSubscribe') continue
    const [, config] = JSON.parse(params) as [string, { commitment?: string }?]
    const result = accountOf(config?.commitment ?? 'default')
    client.send(`{"jsonrpc":"2.0","method":"accountNotification","params":{"result":${result},"subscription":${id}}}`)
  }
}

async function post(url: string, token: string, body: string | Buffer): Promise<{ status: number; text: string }> {
  const headers = { 'x-token': token, 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body })
  return { status: response.status, text: await response.text() }
}

for (const [which, parse] of NODES) {
  describe(`work shared between customers, with a node that takes ${which} of duplicate members`, () => {
    test('never shares a subscription whose params have duplicate members', async () => {
      await using node = await startFakeNode()
      node.parse = parse
      await using ws = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
      const attacker = await ws.open((await ws.gateway.subscribe({})).token)
      const victim = await ws.open((await ws.gateway.subscribe({})).token)
      const odd = [
        '{"commitment":"finalized","commitment":"processed"}',
        '{"commitment":"processed","commitment":"finalized"}',
        '{"commitment":"finalized","\\u0063ommitment":"processed"}',
        '{"commitment":"processed","__proto__":{"commitment":"finalized"}}',
        '{"commitment":"processed","dataSlice":{"offset":0,"offset":1,"length":1}}',
        '{"commitment":"processed","dataSlice":{"offset":-0,"length":1}}',
      ]
      for (const config of odd) {
        attacker.socket.send(`{"jsonrpc":"2.0","id":1,"method":"accountSubscribe","params":["${KEY}",${config}]}`)
        assert.ok(((await attacker.next()) as Response).result)
      }
      const { result } = (await victim.call('accountSubscribe', [KEY, { commitment: 'processed' }])) as Response
      assert.equal(result, FIRST_ID)
      notifyEach(node)
      const reported = (await victim.next()) as { params: { result: { value: string } } }
      assert.equal(reported.params.result.value, 'processed')
      assert.equal(victim.texts.length, 0)
    })

    test('uses a cached response only for calls that every node reads alike', async () => {
      await using node = await startFakeNode()
      node.parse = parse
      node.respond = (method, params) => {
        if (method !== 'getBlock') return undefined
        const [slot, config] = params as [number, { transactionDetails?: string }]
        return { result: JSON.stringify({ slot, details: config.transactionDetails }) }
      }
      const nodes = [{ name: 'fake', rpc: node.rpc, ws: node.ws }]
      await using gateway = await startGateway(nodes, BUILT_IN_PLANS, { bundle: { cache: CACHE } })
      const [attacker, victim] = [await gateway.subscribe({}), await gateway.subscribe({})]
      const call = (config: string) => `{"jsonrpc":"2.0","id":7,"method":"getBlock","params":[5,${config}]}`
      for (const config of [
        '{"commitment":"finalized","transactionDetails":"none","transactionDetails":"full"}',
        '{"commitment":"finalized","transactionDetails":"full","transactionDetails":"none"}',
        '{"commitment":"finalized","transactionDetails":"none","\\u0074ransactionDetails":"full"}',
      ]) {
        await post(gateway.url, attacker.token, call(config))
      }
      const { text } = await post(
        gateway.url,
        victim.token,
        call('{"commitment":"finalized","transactionDetails":"full"}'),
      )
      assert.equal((JSON.parse(text) as { result: { details: string } }).result.details, 'full')
      assert.equal(node.calls.length, 4)
    })
  })
}

describe('work shared between customers', () => {
  test('forwards shared subscriptions in canonical form, one for all spellings', async () => {
    await using node = await startFakeNode()
    await using ws = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
    const [a, b] = [
      await ws.open((await ws.gateway.subscribe({})).token),
      await ws.open((await ws.gateway.subscribe({})).token),
    ]
    a.socket.send(
      `{"jsonrpc":"2.0","id":1,"method":"account\\u0053ubscribe","params":[ "${KEY}", {"encoding":"base64","commitment":"\\u0063onfirmed"} ]}`,
    )
    assert.ok(((await a.next()) as Response).result)
    assert.ok(
      ((await b.call('accountSubscribe', [KEY, { commitment: 'confirmed', encoding: 'base64' }])) as Response).result,
    )
    assert.deepEqual(node.texts, [
      `{"jsonrpc":"2.0","id":1,"method":"accountSubscribe","params":["${KEY}",{"commitment":"confirmed","encoding":"base64"}]}`,
    ])
  })

  test('sends a refusal of the node only to the customer whose call it was', async () => {
    await using node = await startFakeNode()
    await using ws = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
    const [first, second, third] = [
      await ws.open((await ws.gateway.subscribe({})).token),
      await ws.open((await ws.gateway.subscribe({})).token),
      await ws.open((await ws.gateway.subscribe({})).token),
    ]
    const hold = Promise.withResolvers<void>()
    node.wsHold = hold.promise
    let asked = 0
    node.wsError = () => (++asked === 1 ? '{"code":-32603,"message":"too many subscriptions"}' : undefined)
    const refused = first.call('rootSubscribe', [])
    await until('the node has the call', () => node.texts.length === 1)
    for (const client of [second, third]) {
      client.socket.send('{"jsonrpc":"2.0","id":1,"method":"rootSubscribe","params":[]}')
      // Its immediate response shows that the subscribe before it is waiting.
      assert.equal(((await client.call('getRateLimits', undefined, 2)) as Response).id, 2)
    }
    hold.resolve()
    assert.equal(((await refused) as Response).error.message, 'too many subscriptions')
    for (const client of [second, third]) assert.equal(((await client.next()) as Response).result, FIRST_ID)
    assert.equal(asked, 2)
    node.notify('rootSubscribe', '7')
    for (const client of [second, third]) assert.match(await client.text(), /rootNotification/)
  })

  test('refuses a request with duplicate members on both interfaces, and neither forwards nor charges it', async () => {
    await using node = await startFakeNode()
    await using ws = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
    const { token } = await ws.gateway.subscribe({})
    const client = await ws.open(token)
    const bodies = [
      '{"jsonrpc":"2.0","id":1,"method":"getSlot","method":"getProgramAccounts"}',
      '{"jsonrpc":"2.0","id":1,"method":"getSlot","\\u006dethod":"getProgramAccounts"}',
      '{"jsonrpc":"2.0","id":1,"\\u006dethod":"getSlot","method":"getProgramAccounts"}',
      '{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[],"params":[1]}',
      '{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[],"p\\u0061rams":[1]}',
      '{"jsonrpc":"2.0","id":1,"id":2,"method":"getSlot"}',
      '{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"getSlot"}',
      '{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"getSlot"}',
    ]
    for (const body of bodies) {
      for (const sent of [body, `[${body}]`]) {
        const { text } = await post(ws.gateway.url, token, sent)
        assert.match(text, /"code":-32600/, sent)
        client.socket.send(sent)
        assert.match(await client.text(), /"code":-32600/, sent)
      }
    }
    const broken = [
      '\ufeff{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
      '{"jsonrpc":"2.0","id":1,"method":"getSlot"}{}',
    ]
    broken.push('{"jsonrpc":"2.0","id":1,"method":"getSlot"/**/}', '{"jsonrpc":"2.0","id":1,"method":"\\ud800"}')
    for (const body of broken) {
      assert.match((await post(ws.gateway.url, token, body)).text, /"code":-32700/, body)
      client.socket.send(body)
      assert.match(await client.text(), /"code":-32700/, body)
    }
    assert.equal(node.calls.length, 0)
    const caller = ws.gateway.access.authenticate({ token }, 'bundle', Date.now())
    assert.ok(caller.ok)
    assert.equal(ws.gateway.access.quota(caller).month.used, 0)
  })

  test('charges the method that is forwarded', async () => {
    await using node = await startFakeNode()
    await using ws = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
    const { token } = await ws.gateway.subscribe({})
    const body = '{"jsonrpc":"2.0","id":5,"method":"\\u0067etBalance","params":["a"]}'
    await post(ws.gateway.url, token, body)
    const client = await ws.open(token)
    client.socket.send(body)
    await client.text()
    const forwarded = '{"jsonrpc":"2.0","id":5,"method":"getBalance","params":["a"]}'
    assert.deepEqual(
      node.calls.map((call) => call.body),
      [forwarded, forwarded],
    )
  })
})
