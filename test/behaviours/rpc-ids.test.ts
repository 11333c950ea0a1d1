import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { startGateway } from '../support/gateway/start.ts'
import { startWsGateway } from '../support/gateway/ws.ts'
import { startPubSubNode } from '../support/solana/pubsub-node.ts'

/** Ids whose bytes a node that parses and serializes JSON changes, ids that a node does not accept, and usual ones. */
const IDS = [
  '12345678901234567890',
  '9007199254740993',
  '1.0',
  '0.10',
  '1e2',
  '-0',
  '0',
  '7',
  'null',
  '"\\u0041"',
  '"\\/"',
  '"a\\/b"',
  '"a/b<&>"',
  '"é€😀"',
  '"ä日😀"',
  '"\\ud83d\\ude00"',
  '""',
  '"3f2a-77"',
]
const LARGE = 'x'.repeat(200_000)

const call = (id: string, method: string, params = '[]') =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`
const malformed = (id: string) => `{"jsonrpc":"1.0","id":${id},"method":"getHealth"}`
const ends = (text: string, id: string) => assert.ok(text.trimEnd().endsWith(`"id":${id}}`), `${id}: ${text}`)

describe('the id of a call is returned byte for byte', () => {
  /** Posts bodies to a gateway over a node that writes ids as `JSON.stringify` does. */
  async function withGateway(use: (post: (body: string) => Promise<string>) => Promise<void>, plan = 'wide') {
    await using node = await startFakeNode()
    node.respond = (method) =>
      method === 'getProgramAccounts'
        ? { result: `"${LARGE}"` }
        : method === 'getBlock'
          ? { error: '{"code":-32009,"message":"no such block"}' }
          : { result: '"ok"' }
    const wide = { ...BUILT_IN_PLANS.professional, unitsPerSecond: null, methods: {} }
    const none = { ...BUILT_IN_PLANS.starter, unitsPerSecond: 1, sendsPerSecond: 1, batchItems: 10 }
    await using gateway = await startGateway([{ name: 'a', rpc: node.rpc }], { wide, none })
    const { token } = await gateway.subscribe({ plan })
    await use(async (body) => {
      const headers = { 'content-type': 'application/json', 'x-token': token }
      return (await fetch(gateway.url, { method: 'POST', headers, body })).text()
    })
  }

  it('in results, errors of the node and large results', () =>
    withGateway(async (post) => {
      for (const id of IDS) {
        assert.equal((await post(call(id, 'getHealth'))).trimEnd(), `{"jsonrpc":"2.0","result":"ok","id":${id}}`)
        ends(await post(call(id, 'getBlock')), id)
        const large = await post(call(id, 'getProgramAccounts'))
        assert.equal(large.trimEnd(), `{"jsonrpc":"2.0","result":"${LARGE}","id":${id}}`)
      }
    }))

  it('in batches, small and large', () =>
    withGateway(async (post) => {
      for (const [method, result] of [
        ['getHealth', 'ok'],
        ['getProgramAccounts', LARGE],
      ] as const) {
        const text = await post(`[${IDS.map((id) => call(id, method)).join(',')}]`)
        assert.equal(text, `[${IDS.map((id) => `{"jsonrpc":"2.0","result":"${result}","id":${id}}`).join(',')}]`)
      }
    }))

  it('in refusals of a malformed call, single and in a batch', () =>
    withGateway(async (post) => {
      for (const id of IDS) {
        const single = await post(malformed(id))
        assert.match(single, /^\{"jsonrpc":"2.0","error":\{"code":-32600,/)
        ends(single, id)
        const batch = await post(`[${malformed(id)}]`)
        assert.match(batch, /^\[\{"jsonrpc":"2.0","error":\{"code":-32600,/)
        assert.ok(batch.endsWith(`"id":${id}}]`), batch)
      }
    }))

  it('in refusals by a limit, single and in a batch', () =>
    withGateway(async (post) => {
      await post(call('1', 'getHealth'))
      await post(call('1', 'getHealth'))
      for (const id of IDS) {
        const text = await post(call(id, 'getProgramAccounts'))
        assert.match(text, /"code":-32429/)
        ends(text, id)
        const batch = await post(`[${call(id, 'getProgramAccounts')}]`)
        assert.match(batch, /"code":-32429/)
        ends(batch.replace(/\]$/, ''), id)
      }
    }, 'none'))

  it('in refusals without an available node', async () => {
    await using gateway = await startGateway([{ name: 'gone', rpc: 'http://127.0.0.1:1' }])
    const { token } = await gateway.subscribe({})
    const headers = { 'content-type': 'application/json', 'x-token': token }
    for (const id of IDS.slice(0, 10)) {
      const body = call(id, 'getHealth')
      for (const [sent, end] of [
        [body, ''],
        [`[${body}]`, ']'],
      ] as const) {
        const text = await (await fetch(gateway.url, { method: 'POST', headers, body: sent })).text()
        assert.match(text, /"code":-32503/)
        assert(text.endsWith(`,"id":${id}}${end}`), text)
      }
    }
  })

  it('over WebSocket, in responses, subscriptions and refusals', async () => {
    await using node = await startFakeNode()
    await using ws = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
    const limited = await ws.gateway.subscribe({ overrides: { wsSubscriptions: IDS.length } })
    const client = await ws.open(limited.token)
    const send = async (text: string) => {
      client.socket.send(text)
      return client.text()
    }
    for (const id of IDS) {
      for (const text of [
        call(id, 'getHealth'),
        call(id, 'getRateLimits'),
        call(id, 'slotUnsubscribe', '[99]'),
        malformed(id),
      ]) {
        ends(await send(text), id)
      }
      node.wsError = '{"code":-32602,"message":"Invalid Request: ä"}'
      const refused = await send(call(id, 'accountSubscribe', '["no"]'))
      assert.equal(refused, `{"jsonrpc":"2.0","error":${node.wsError},"id":${id}}`)
      node.wsError = undefined
    }
    const batch = await send(`[${IDS.map((id) => call(id, 'getHealth')).join(',')}]`)
    for (const id of IDS) assert.ok(batch.includes(`"id":${id}}`), `${id}: ${batch}`)
    for (const id of IDS) assert.match(await send(call(id, 'rootSubscribe')), /"result":/)
    for (const id of IDS) {
      const text = await send(call(id, 'rootSubscribe'))
      assert.match(text, /-32429/)
      ends(text, id)
    }
  })

  it('of localnet, for ids that a node accepts', async () => {
    await using local = await startPubSubNode()
    const client = await local.open()
    for (const id of IDS.filter((one) => /^["n]|^\d+$/.test(one))) {
      for (const method of ['getVersion', 'rootSubscribe', 'noSuchMethod']) {
        ends(await client.raw(call(id, method)), id)
      }
    }
  })
})
