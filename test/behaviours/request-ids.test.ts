import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { startPubSubNode } from '../support/pubsub-node.ts'
import { startWsGateway, type WsGateway } from '../support/ws-gateway.ts'

/** Ids that a parser changes when it writes them again, or that a node does not take. */
const IDS = [
  '12345678901234567890',
  '1.0',
  '1e2',
  '-0',
  '0.10',
  '"\\u0041"',
  '"\\/"',
  '"ä日😀"',
  '"\\ud83d\\ude00"',
  'null',
]

const call = (id: string, method: string, params = '[]') =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`

describe('the id of a request comes back as the bytes it was written in', () => {
  let node: FakeNode
  let ws: WsGateway
  let token: string

  before(async () => {
    node = await startFakeNode()
    ws = await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }])
    token = (await ws.gateway.subscribe({})).token
  })
  after(async () => {
    await ws[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  const post = async (body: string) => {
    const headers = { 'x-token': token, 'content-type': 'application/json' }
    return (await fetch(ws.gateway.url, { method: 'POST', headers, body })).text()
  }
  const endsWithId = (text: string, id: string) => assert.ok(text.trimEnd().endsWith(`"id":${id}}`), `${id}: ${text}`)
  const holdsIds = (text: string) => {
    for (const id of IDS) assert.ok(text.includes(`"id":${id}}`), `${id}: ${text}`)
  }

  it('over HTTP, alone and in a batch, in responses and refusals', async () => {
    for (const id of IDS) {
      endsWithId(await post(call(id, 'getHealth')), id)
      endsWithId(await post(`{"jsonrpc":"1.0","id":${id},"method":"getHealth"}`), id)
    }
    holdsIds(await post(`[${IDS.map((id) => call(id, 'getHealth')).join(',')}]`))
  })

  it('over WebSocket, in responses, subscriptions and refusals', async () => {
    const limited = await ws.gateway.subscribe({ overrides: { wsSubscriptions: IDS.length } })
    const client = await ws.open(limited.token)
    const ask = async (text: string) => {
      client.socket.send(text)
      return client.text()
    }
    for (const id of IDS) {
      for (const text of [
        call(id, 'getHealth'),
        call(id, 'getRateLimits'),
        call(id, 'slotUnsubscribe', '[99]'),
        `{"jsonrpc":"1.0","id":${id},"method":"getHealth"}`,
      ]) {
        endsWithId(await ask(text), id)
      }
      node.wsError = '{"code":-32602,"message":"Invalid Request: ä"}'
      const refused = await ask(call(id, 'accountSubscribe', '["no"]'))
      assert.equal(refused, `{"jsonrpc":"2.0","error":${node.wsError},"id":${id}}`)
      node.wsError = undefined
    }
    holdsIds(await ask(`[${IDS.map((id) => call(id, 'getHealth')).join(',')}]`))
    for (const id of IDS) assert.match(await ask(call(id, 'rootSubscribe')), /"result":/)
    for (const id of IDS) {
      const text = await ask(call(id, 'rootSubscribe'))
      assert.match(text, /-32429/)
      endsWithId(text, id)
    }
  })

  it('of localnet, for ids that a node takes', async () => {
    await using local = await startPubSubNode()
    const client = await local.open()
    for (const id of IDS.filter((one) => /^["n]|^\d+$/.test(one))) {
      for (const method of ['getVersion', 'rootSubscribe', 'noSuchMethod']) {
        endsWithId(await client.raw(call(id, method)), id)
      }
    }
  })
})
