import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { WebSocket } from 'ws'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'

/** What a new customer gets wrong in the first hour: each refusal states what to do instead. */

describe('a mistake of a customer', () => {
  let node: FakeNode
  let gateway: Gateway
  let token: string

  before(async () => {
    node = await startFakeNode()
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc }], undefined, {
      docsUrl: (code) => `https://rpc.example.net/docs/errors/${code}`,
      wsUrl: () => 'wss://rpc.example.net:8900',
    })
    token = (await gateway.subscribe({})).token
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  it('a WebSocket at the RPC address: the response has the address of the WebSocket', async () => {
    const socket = new WebSocket(gateway.url.replace('http', 'ws'), { headers: { 'x-token': token } })
    socket.on('error', () => {})
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
    const body = JSON.parse(await text(response)) as Record<string, string>
    assert.equal(response.statusCode, 405)
    assert.equal(body['error'], 'method-not-allowed')
    assert.match(
      body['message'] ?? '',
      /serves HTTP only; WebSockets have an address of their own: wss:\/\/rpc\.example\.net:8900/,
    )
  })

  it('a body without its content type: the response has the page of the error', async () => {
    const response = await fetch(gateway.url, {
      method: 'POST',
      headers: { 'x-token': token, 'content-type': 'text/plain' },
      body: '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
    })
    assert.equal(response.status, 415)
    const { error } = (await response.json()) as { error: { data: Record<string, string> } }
    assert.equal(error.data['docs_url'], 'https://rpc.example.net/docs/errors/unsupported-media-type')
  })

  it('an unknown connection: the response states where the ids are', async () => {
    const url = `${gateway.url}/v1/connections/con_0/close`
    const response = await fetch(url, { method: 'POST', headers: { 'x-token': token } })
    assert.equal(response.status, 404)
    const body = (await response.json()) as Record<string, string>
    assert.match(body['message'] ?? '', /GET \/v1\/connections lists/)
  })
})
