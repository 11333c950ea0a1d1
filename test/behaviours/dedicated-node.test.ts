import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { createSolanaRpc, isSolanaError, SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR } from '@solana/kit'
import { WebSocket } from 'ws'
import { addNode, assignNode } from '../../src/access/provisioning/nodes.ts'
import type { ProductKey } from '../../src/contract/products.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { followDedicatedNodes } from '../../src/processes/compose/access/dedicated-nodes.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { openStream, PING, SUBSCRIBE, tokenMetadata, unary } from '../support/gateway/grpc.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'

/** Cut or refused within 5 s; loose for a busy machine. */
const CUT_WITHIN_MS = 15_000
const RPC_CODE = -32503

type RpcError = { error: { code: number; data: { reason: string; fix: string } } }
type WhoAmI = { dedicated_nodes?: { name: string }[]; month: { used: number }; budget: Record<string, number> }

describe('a dedicated-node subscription', () => {
  let shared: FakeNode
  let own: FakeNode
  let gateway: Gateway
  let client: Client
  const stack = new AsyncDisposableStack()

  before(async () => {
    shared = stack.use(await startFakeNode())
    own = stack.use(await startFakeNode())
    for (const node of [shared, own]) {
      node.onGrpcCall = (call) => {
        if (call.path === SUBSCRIBE) {
          call.sendHeaders()
          call.onMessage((message) => void call.send(message))
        } else serveUnary(call, (message) => ({ ok: true, message }))
      }
    }
    gateway = stack.use(await startGateway([{ name: 'shared', rpc: shared.rpc, ws: shared.ws, grpc: shared.grpc }]))
    stack.use(await followDedicatedNodes(gateway.access, gateway.upstreams))
    client = new Client(gateway.grpc, credentials.createInsecure())
    stack.defer(() => client.close())
  })
  after(() => stack.disposeAsync())

  let made = 0
  async function subscribe(products: ProductKey[]) {
    const { token, id } = await gateway.subscribe({ products })
    const name = `ded-${++made}`
    await addNode(gateway.on, { name, rpc: own.rpc, ws: own.ws, grpc: own.grpc, credential: null })
    const assign = (subscription: string | null) => assignNode(gateway.on, { node: name, subscription })
    return { token, id, name, assign }
  }

  const post = (token: string, path: string, body: unknown) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-token': token },
      body: JSON.stringify(body),
    })
  const call = (id: number, method = 'getBalance') => ({ jsonrpc: '2.0', id, method, params: [] })
  const balance = (token: string) => post(token, '/', call(1))
  async function whoami(token: string): Promise<{ body: WhoAmI; text: string }> {
    const text = await (await fetch(`${gateway.url}/v1/whoami`, { headers: { 'x-token': token } })).text()
    return { body: JSON.parse(text) as WhoAmI, text }
  }
  const isServed = async (token: string) => (await balance(token)).status === 200
  const seenByShared = () => shared.calls.length + shared.texts.length + gateway.upstreams.status()[0]!.grpcStreams

  function openWs(token: string) {
    const socket = new WebSocket(gateway.ws, { headers: { 'x-token': token } })
    const opened = Promise.withResolvers<number>()
    const closed = Promise.withResolvers<{ code: number; reason: string }>()
    const texts: string[] = []
    socket.on('error', () => {})
    socket.on('open', () => opened.resolve(101))
    socket.on('unexpected-response', (_, response) => opened.resolve(response.statusCode ?? 0))
    socket.on('message', (data) => texts.push((data as Buffer).toString()))
    socket.on('close', (code, reason) => closed.resolve({ code, reason: String(reason) }))
    stack.defer(() => socket.terminate())
    return { socket, opened: opened.promise, closed: closed.promise, texts }
  }

  it('without a node is refused as not-assigned on every interface, not charged, and never served by the shared nodes', async () => {
    const { token } = await subscribe(['dedicated-node'])
    const before = seenByShared()

    const single = await balance(token)
    assert.equal(single.status, 503)
    assert.ok(Number(single.headers.get('retry-after')) > 0)
    const { error } = (await single.json()) as RpcError
    assert.deepEqual([error.code, error.data.reason], [RPC_CODE, 'not-assigned'])
    assert.match(error.data.fix, /operator/)

    const batch = await post(token, '/', [call(1), call(2, 'sendTransaction')])
    assert.equal(batch.status, 503)
    assert.ok(Number(batch.headers.get('retry-after')) > 0)
    for (const item of (await batch.json()) as RpcError[]) assert.equal(item.error.data.reason, 'not-assigned')

    const kit = createSolanaRpc(gateway.url, { headers: { 'x-token': token } } as never)
    await assert.rejects(
      kit.getSlot().send(),
      (reason) => isSolanaError(reason, SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR) && reason.context.statusCode === 503,
    )

    assert.equal(await openWs(token).opened, 503)

    const response = await unary(client, PING, Buffer.alloc(0), tokenMetadata(token))
    assert.equal(response.error?.code, GrpcCode.unavailable)
    assert.match(response.error?.details ?? '', /not-assigned/)
    const stream = openStream(client, SUBSCRIBE, tokenMetadata(token))
    assert.equal((await stream.ended).code, GrpcCode.unavailable)

    const check = await post(token, '/v1/geyser/check', { slots: { s: {} } })
    const verdict = (await check.json()) as { allowed: boolean; rule: string; message: string }
    assert.deepEqual([check.status, verdict.allowed, verdict.rule], [200, false, 'not-assigned'])

    const { body } = await whoami(token)
    assert.deepEqual(body.dedicated_nodes, [])
    assert.equal(body.month.used, 0)
    assert.equal(body.budget['remaining'], body.budget['limit'])
    assert.equal(seenByShared(), before)
    assert.ok((gateway.registry.value('sluice_access_not_assigned_total') ?? 0) >= 6)
  })

  it('is served by its node from the assignment to its end, when open connections are cut', async () => {
    const { token, id, name, assign } = await subscribe(['dedicated-node'])
    const before = seenByShared()
    await assign(id)
    await until('its node serves it', () => isServed(token))

    const { body, text } = await whoami(token)
    assert.deepEqual(body.dedicated_nodes, [{ name }])
    assert.ok(!text.includes(String(own.ports.rpc)) && !text.includes('127.0.0.1'))

    const ws = openWs(token)
    assert.equal(await ws.opened, 101)
    ws.socket.send(JSON.stringify(call(1, 'rootSubscribe')))
    await until('the subscription is live', () => ws.texts.length === 1)
    const stream = openStream(client, SUBSCRIBE, tokenMetadata(token))
    stream.send(Buffer.alloc(0))
    await until('the stream is live', () => stream.messages.length === 1)

    await assign(null)
    const cut = await Promise.race([ws.closed, timeout(CUT_WITHIN_MS)])
    assert.deepEqual([cut.code, cut.reason], [1013, 'no node is assigned'])
    const ended = await Promise.race([stream.ended, timeout(CUT_WITHIN_MS)])
    assert.equal(ended.code, GrpcCode.unavailable)
    assert.match(String((ended as { details?: string }).details), /not-assigned/)
    assert.equal((await balance(token)).status, 503)
    assert.equal(await openWs(token).opened, 503)
    assert.deepEqual((await whoami(token)).body.dedicated_nodes, [])
    assert.equal(seenByShared(), before)
  })

  it('that also has the bundle uses the shared nodes until it has its own, and after', async () => {
    const { token, id, assign } = await subscribe(['bundle', 'dedicated-node'])
    const callsOf = async (node: FakeNode) => {
      const before = node.calls.length
      assert.equal((await balance(token)).status, 200)
      return node.calls.length - before
    }
    assert.equal(await callsOf(shared), 1)
    await assign(id)
    await until('its own node is used', async () => (await callsOf(own)) === 1)
    await assign(null)
    await until('the shared nodes are used', async () => (await callsOf(shared)) === 1)
  })

  it('says nothing about dedicated nodes to a subscription without the product', async () => {
    const { token } = await gateway.subscribe({})
    assert.ok(!('dedicated_nodes' in (await whoami(token)).body))
  })
})

function timeout(ms: number): Promise<never> {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(`not cut within ${ms} ms`)), ms).unref())
}
