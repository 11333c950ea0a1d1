import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { startTestExecution } from '../support/execution/start.ts'
import { OPCODE, openRawWs, rawFrame } from '../support/gateway/raw-ws.ts'
import { startWsGateway, type WsGateway } from '../support/gateway/ws.ts'
import { startPubSubNode } from '../support/solana/pubsub-node.ts'

type Endpoint = { readonly url: string; readonly headers: Record<string, string>; readonly request: string }

/** The rules of the handshake and of closing, on every endpoint that speaks WebSocket. */
describe('a WebSocket', () => {
  let node: FakeNode
  let ws: WsGateway
  let subscription: { token: string; id: string }
  let endpoints: Record<string, Endpoint>
  const opened = new AsyncDisposableStack()

  before(async () => {
    node = opened.use(await startFakeNode())
    ws = opened.use(await startWsGateway([{ name: 'one', rpc: node.rpc, ws: node.ws }]))
    subscription = await ws.gateway.subscribe({})
    const local = opened.use(await startPubSubNode())
    const execution = opened.use(await startTestExecution())
    endpoints = {
      gateway: {
        url: ws.url,
        headers: { 'x-token': subscription.token },
        request: '{"jsonrpc":"2.0","id":77,"method":"getHealth"}',
      },
      localnet: {
        url: `ws://127.0.0.1:${local.server.address.port}/`,
        headers: {},
        request: '{"jsonrpc":"2.0","id":77,"method":"getVersion"}',
      },
      execution: { url: `${execution.ws}/v1/ws`, headers: {}, request: '{"subscribe":77}' },
    }
  })
  after(() => opened.disposeAsync())

  for (const name of ['gateway', 'localnet', 'execution']) {
    const endpoint = () => endpoints[name] as Endpoint

    it(`of ${name} is version 13 over HTTP/1.1, without a sub-protocol`, async () => {
      const { url, headers } = endpoint()
      const old = await openRawWs(url, { ...headers, 'sec-websocket-version': '8' })
      assert.match(old.head, /^HTTP\/1\.1 426 [^]*\r\nsec-websocket-version: 13\r\n/i)
      assert.match((await openRawWs(url, headers, '1.0')).head, /^HTTP\/1\.1 426 /)
      const offered = await openRawWs(url, { ...headers, 'sec-websocket-protocol': 'solana' })
      assert.match(offered.head, /^HTTP\/1\.1 101 /)
      assert.doesNotMatch(offered.head, /sec-websocket-protocol/i)
      offered.socket.destroy()
      await until('no permit is held', () => ws.gateway.access.permits.taken(subscription.id).wsConnections === 0)
    })

    it(`of ${name} closes binary bytes that are not UTF-8 with 1003, text with 1007`, async () => {
      const { url, headers } = endpoint()
      for (const [opcode, code] of [
        [OPCODE.binary, 1003],
        [OPCODE.text, 1007],
      ] as const) {
        const client = await openRawWs(url, headers)
        client.socket.write(rawFrame(Uint8Array.of(0x7b, 0xff), opcode))
        await until('it is closed', () => client.frames.at(-1)?.opcode === OPCODE.close)
        assert.equal(client.frames.at(-1)?.payload.readUInt16BE(0), code)
        client.socket.destroy()
      }
    })

    it(`of ${name} responds to a request that is followed by a close frame`, async () => {
      const { url, headers, request } = endpoint()
      const client = await openRawWs(url, headers)
      client.socket.write(Buffer.concat([rawFrame(request), rawFrame(Uint8Array.of(3, 232), OPCODE.close)]))
      await until('it is closed', () => client.isClosed)
      const texts = client.frames.filter(({ opcode }) => opcode === OPCODE.text).map(({ payload }) => String(payload))
      assert.match(texts.at(-1) ?? '', name === 'execution' ? /subscribe/ : /"id":77/)
      assert.equal(client.frames.at(-1)?.opcode, OPCODE.close)
    })
  }

  it('of the gateway responds to calls in flight before it completes the close', async () => {
    const { url, headers, request } = endpoints['gateway'] as Endpoint
    const hold = Promise.withResolvers<void>()
    node.hold = hold.promise
    const client = await openRawWs(url, headers)
    const before = node.calls.length
    client.socket.write(Buffer.concat([rawFrame(request), rawFrame(Uint8Array.of(3, 232), OPCODE.close)]))
    await until('the node has the call', () => node.calls.length === before + 1)
    assert.equal(client.frames.length, 0)
    hold.resolve()
    await until('it is closed', () => client.isClosed)
    assert.match(String(client.frames[0]?.payload), /"id":77/)
    assert.equal(client.frames[1]?.opcode, OPCODE.close)
    node.hold = undefined
  })

  it('of execution beyond connectionsMax is 503 with the request id under which it is recorded', async () => {
    const noted: string[] = []
    const deps = { refusals: { record: ({ requestId }: { requestId: string }) => void noted.push(requestId) } }
    await using execution = await startTestExecution({ settings: { connectionsMax: 1 }, deps })
    const first = await openRawWs(`${execution.ws}/v1/ws`)
    const { head } = await openRawWs(`${execution.ws}/v1/ws`, { 'x-request-id': 'mine' })
    assert.match(head, /^HTTP\/1\.1 503 [^]*\r\nx-request-id: mine\r\n[^]*limit reached: 1 connections/)
    assert.deepEqual(noted, ['mine'])
    first.socket.destroy()
  })
})
