import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { after, before, describe, it } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { makeTestCert, type TestCert } from '../../src/platform/net/test-cert.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeRequestSchema, SubscribeUpdateSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { openStream, PING, SUBSCRIBE, tokenMetadata, unary } from '../support/gateway/grpc.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'

const LISTENERS = ['rpc', 'ws', 'grpc'] as const
type Server = (typeof LISTENERS)[number]

/** All three servers, with certificates that the clients verify: name and authority. */
describe('TLS on the three servers', () => {
  let node: FakeNode
  let files: TestCert
  let gateway: Gateway
  let token: string

  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => {
      if (call.path === PING) return serveUnary(call, (message) => ({ ok: true, message }))
      call.sendHeaders()
      call.onMessage(() => {
        call.send(encodeMessage(SubscribeUpdateSchema, { updateOneof: { case: 'slot', value: { slot: 7n } } }))
      })
    }
    files = makeTestCert('first')
    const listen = { host: '127.0.0.1', port: 0, tls: { cert: files.cert, key: files.key } }
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc, ws: node.ws, grpc: node.grpc }], BUILT_IN_PLANS, {
      bundle: { rpc: listen, ws: { ...listen, queryToken: false }, grpc: { ...listen, healthPerSecond: 50 } },
    })
    token = (await gateway.subscribe({})).token
    await until('a node has a WebSocket', () => gateway.upstreams.status().some((one) => one.wsConnections > 0))
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    files[Symbol.dispose]()
    await node[Symbol.asyncDispose]()
  })

  const ca = () => readFileSync(files.cert)
  const portOf = (server: Server) => gateway.bundle[server].port

  function post(agent?: Agent): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const call = request(
        `https://127.0.0.1:${portOf('rpc')}`,
        {
          method: 'POST',
          ca: ca(),
          ...(agent === undefined ? {} : { agent }),
          headers: { 'x-token': token, 'content-type': 'application/json' },
        },
        (response) => {
          let text = ''
          response.on('data', (chunk: Buffer) => (text += chunk.toString()))
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
        },
      )
      call.on('error', reject)
      call.end('{"jsonrpc":"2.0","id":"über","method":"getSlot"}')
    })
  }

  async function openWs(): Promise<WebSocket> {
    const socket = new WebSocket(`wss://127.0.0.1:${portOf('ws')}`, { ca: ca(), headers: { 'x-token': token } })
    await once(socket, 'open')
    return socket
  }

  const grpcClient = () => new Client(`localhost:${portOf('grpc')}`, credentials.createSsl(ca()))

  /** Only a handshake: returns the certificate of the server and the negotiated protocol. */
  async function shake(server: Server, options: object = {}): Promise<{ name: string; alpn: string | false | null }> {
    const socket: TLSSocket = connect({
      host: '127.0.0.1',
      port: portOf(server),
      rejectUnauthorized: false,
      ...options,
    })
    await once(socket, 'secureConnect')
    const { subject } = socket.getPeerCertificate()
    const { alpnProtocol } = socket
    socket.destroy()
    return { name: String(subject.CN), alpn: alpnProtocol }
  }

  it('calls, subscriptions and streams work, with one token', async () => {
    const { status, text } = await post()
    assert.deepEqual([status, text], [200, '{"jsonrpc":"2.0","result":1000,"id":"über"}\n'])

    const socket = await openWs()
    socket.send('{"jsonrpc":"2.0","id":1,"method":"rootSubscribe"}')
    const [response] = (await once(socket, 'message')) as [Buffer]
    assert.equal(response.toString(), '{"jsonrpc":"2.0","result":1000000001,"id":1}')
    node.notify('rootSubscribe', '42')
    const [reported] = (await once(socket, 'message')) as [Buffer]
    assert.match(reported.toString(), /"result":42,"subscription":1000000001/)
    socket.terminate()

    const client = grpcClient()
    assert.equal((await unary(client, PING, Buffer.from([8, 7]), tokenMetadata(token))).error, null)
    const stream = openStream(client, SUBSCRIBE, tokenMetadata(token))
    stream.send(encodeMessage(SubscribeRequestSchema, { slots: { s: {} } }))
    await until('an update came', () => stream.messages.length === 1)
    stream.call.cancel()
    client.close()
  })

  it('gRPC negotiates h2 and refuses clients without it; all servers refuse TLS below 1.2', async () => {
    assert.equal((await shake('grpc', { ALPNProtocols: ['http/1.1', 'h2'] })).alpn, 'h2')
    await assert.rejects(shake('grpc', { ALPNProtocols: ['http/1.1'] }), /alert no application protocol/)
    for (const server of LISTENERS) {
      await assert.rejects(shake(server, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }), server)
      assert.equal((await shake(server, { maxVersion: 'TLSv1.2' })).name, 'first', server)
    }
    const session = connectHttp2(`https://127.0.0.1:${portOf('grpc')}`, { ca: ca() })
    await once(session, 'connect')
    assert.equal(session.alpnProtocol, 'h2')
    session.destroy()
  })

  it('refuses a client without TLS', async () => {
    const refused = await fetch(`http://127.0.0.1:${portOf('rpc')}/health`)
    assert.equal(refused.status, 400)
    assert.match(await refused.text(), /tls-required/)
    const socket = new WebSocket(`ws://127.0.0.1:${portOf('ws')}`, { headers: { 'x-token': token } })
    await once(socket, 'error')
  })

  it('presents a renewed certificate to new clients, keeps open connections, and ignores a damaged file', async () => {
    const agent = new Agent({ keepAlive: true, ca: ca() })
    const first = await post(agent)
    const socket = await openWs()
    const client = grpcClient()
    const stream = openStream(client, SUBSCRIBE, tokenMetadata(token))
    stream.send(encodeMessage(SubscribeRequestSchema, { slots: { s: {} } }))
    await until('an update came', () => stream.messages.length === 1)

    files.renew('second')
    for (const server of LISTENERS) {
      await until(`${server} shows the new one`, async () => (await shake(server)).name === 'second')
    }
    assert.deepEqual(await post(agent), first)
    socket.send('{"jsonrpc":"2.0","id":7,"method":"getRateLimits"}')
    const [response] = (await once(socket, 'message')) as [Buffer]
    assert.match(response.toString(), /"id":7/)
    stream.send(encodeMessage(SubscribeRequestSchema, { slots: { t: {} } }))
    await until('the stream continues', () => stream.messages.length === 2)
    assert.equal((await post()).status, 200, 'a new client that trusts the new certificate')
    socket.terminate()
    stream.call.cancel()
    client.close()
    agent.destroy()

    const before = gateway.log().split('certificate').length
    writeFileSync(files.cert, 'half writ')
    await until('the log has it', () => gateway.log().split('certificate').length > before)
    for (const endpoint of LISTENERS) assert.equal((await shake(endpoint)).name, 'second', endpoint)
  })
})
