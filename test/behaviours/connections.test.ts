import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import type { ConnectionReport } from '../../src/gateway/account/connections.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeRequestSchema, SubscribeUpdateSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'

const KEY = '11111111111111111111111111111111'

describe('own connections', () => {
  let node: FakeNode
  let gateway: Gateway
  let client: Client

  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => {
      call.sendHeaders()
      call.onMessage(() => {
        call.send(encodeMessage(SubscribeUpdateSchema, { updateOneof: { case: 'slot', value: { slot: 7n } } }))
      })
    }
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc, ws: node.ws, grpc: node.grpc }])
    client = new Client(gateway.grpc, credentials.createInsecure())
  })
  after(async () => {
    client.close()
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  const get = async (path: string, token: string) => {
    const response = await fetch(gateway.url + path, { headers: { 'x-token': token } })
    return { status: response.status, body: (await response.json()) as never }
  }
  const list = async (token: string) => {
    const { body } = await get('/v1/connections', token)
    return body as { total: number; connections: ConnectionReport[] }
  }
  const close = async (id: string, token: string) => {
    const init = { method: 'POST', headers: { 'x-token': token } }
    const response = await fetch(`${gateway.url}/v1/connections/${id}/close`, init)
    return { status: response.status, text: await response.text() }
  }

  async function openBoth(token: string) {
    const socket = new WebSocket(gateway.ws, { headers: { 'x-token': token } })
    await once(socket, 'open')
    await until('a node has a WebSocket', () => gateway.upstreams.status().some((one) => one.wsConnections > 0))
    socket.send(`{"jsonrpc":"2.0","id":1,"method":"accountSubscribe","params":["${KEY}"]}`)
    await once(socket, 'message')
    const stream = openStream(client, SUBSCRIBE, tokenMetadata(token))
    const filters = { slots: { s: {} }, accounts: { a: { account: [KEY] }, b: { owner: [KEY] } } }
    stream.send(encodeMessage(SubscribeRequestSchema, filters))
    await until('the stream is live', () => stream.messages.length === 1)
    return { socket, stream }
  }

  it('are listed with subscriptions and bytes sent, also in whoami', async () => {
    const { token } = await gateway.subscribe({})
    assert.deepEqual(await list(token), { total: 0, connections: [] })
    const { socket, stream } = await openBoth(token)
    const { total, connections } = await list(token)
    const [ws, grpc] = connections.toSorted((a, b) => (a.interface > b.interface ? -1 : 1))
    assert.equal(total, 2)
    assert.deepEqual([ws?.interface, ws?.subscriptions, ws?.remote_address], ['ws', 1, '127.0.0.1'])
    assert.deepEqual([grpc?.interface, grpc?.subscriptions, grpc?.remote_address], ['grpc', 3, '127.0.0.1'])
    assert.ok((ws?.bytes_out ?? 0) > 10 && (grpc?.bytes_out ?? 0) >= 9)
    assert.ok(Math.abs(Date.parse(ws?.since ?? '') - Date.now()) < 60_000)
    const me = (await get('/v1/whoami', token)).body as { connections: ConnectionReport[]; open: object }
    assert.deepEqual(me.connections.map(({ id }) => id).toSorted(), connections.map(({ id }) => id).toSorted())
    assert.deepEqual(me.open, { wsConnections: 1, wsSubscriptions: 1, grpcStreams: 1 })
    socket.terminate()
    stream.call.cancel()
    await until('both are gone', async () => (await list(token)).total === 0)
  })

  it('can be closed by their owner, which releases the permit; the close code is not that of a fault', async () => {
    const { token, id } = await gateway.subscribe({ overrides: { wsConnections: 1, grpcStreams: 1 } })
    const { socket, stream } = await openBoth(token)
    const closed = once(socket, 'close') as Promise<[number, Buffer]>
    for (const connection of (await list(token)).connections) {
      assert.deepEqual(await close(connection.id, token), {
        status: 200,
        text: JSON.stringify({ id: connection.id, closed: true }),
      })
    }
    const [code, reason] = await closed
    assert.deepEqual([code, reason.toString()], [1000, 'closed by the owner of the subscription'])
    const ended = await stream.ended
    assert.deepEqual([ended.code, ended.details], [GrpcCode.cancelled, 'closed by the owner of the subscription'])
    await until('no permit is taken', () => {
      const { wsConnections, grpcStreams } = gateway.access.permits.taken(id)
      return wsConnections === 0 && grpcStreams === 0
    })
    await openBoth(token)
  })

  it('of another subscription get the same response as unknown ones', async () => {
    const mine = await gateway.subscribe({})
    const other = await gateway.subscribe({})
    const { socket } = await openBoth(other.token)
    const theirs = (await list(other.token)).connections
    assert.equal(theirs.length, 2)
    assert.deepEqual(await list(mine.token), { total: 0, connections: [] })
    const unknown = await close('con_000000000000000000000000', mine.token)
    assert.equal(unknown.status, 404)
    for (const { id } of theirs) {
      const response = await close(id, mine.token)
      assert.equal(response.status, 404)
      assert.deepEqual(withoutRequestId(response.text), withoutRequestId(unknown.text))
    }
    assert.equal((await list(other.token)).total, 2)
    assert.equal(socket.readyState, WebSocket.OPEN)
    assert.equal((await close(theirs[0]?.id ?? '', 'no token')).status, 401)
    assert.equal((await get(`/v1/connections/${theirs[0]?.id}/close`, other.token)).status, 405)
  })

  it('count in the open permits', async () => {
    const { registry } = gateway
    const value = (name: string, labels: Record<string, string>) => registry.value(name, labels) ?? 0
    const before = value('sluice_bundle_connections', { interface: 'ws' })
    const { token } = await gateway.subscribe({ overrides: { grpcStreams: 1 } })
    const { socket } = await openBoth(token)
    assert.equal(value('sluice_bundle_connections', { interface: 'ws' }), before + 1)
    assert.ok(value('sluice_bundle_messages_out_total', { interface: 'grpc' }) > 0)
    assert.ok(value('sluice_bundle_bytes_out_total', { interface: 'ws' }) > 0)
    assert.ok(value('sluice_bundle_requests_total', { interface: 'ws', method: 'accountSubscribe' }) > 0)
    const refused = value('sluice_bundle_refused_total', { interface: 'grpc', limit: 'grpcStreams' })
    await openStream(client, SUBSCRIBE, tokenMetadata(token)).ended
    assert.equal(value('sluice_bundle_refused_total', { interface: 'grpc', limit: 'grpcStreams' }), refused + 1)
    socket.terminate()
    await until('it is gone', () => value('sluice_bundle_connections', { interface: 'ws' }) === before)
  })
})

const withoutRequestId = (text: string) => text.replace(/"request_id":"[^"]*"/, '')
