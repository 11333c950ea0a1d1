import assert from 'node:assert/strict'
import { connect } from 'node:http2'
import { after, before, describe, it } from 'node:test'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type GrpcGateway, openStream, SUBSCRIBE, startGrpcGateway, tokenMetadata } from '../support/gateway/grpc.ts'

/** Hostile and slow clients. */
describe('the gRPC server with hostile clients', () => {
  let node: FakeNode
  let on: GrpcGateway
  let calls: GrpcCall[] = []

  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => {
      calls.push(call)
      call.sendHeaders()
    }
    on = await startGrpcGateway([{ name: 'fake', grpc: node.grpc }])
  })
  after(async () => {
    await on[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  it("a client that does not read pauses its node's stream, not the gateway", async () => {
    const { token } = await on.gateway.subscribe({})
    calls = []
    const session = connect(`http://127.0.0.1:${on.port}`)
    const stream = session.request({
      ':method': 'POST',
      ':path': SUBSCRIBE,
      'content-type': 'application/grpc',
      'x-token': token,
    })
    stream.on('error', () => {})
    await until('it is there', () => calls.length === 1)
    const piece = frameMessage(Buffer.alloc(64 * 1024 - 5))
    let written = 0
    let isFree = true
    const pump = () => {
      isFree = true
      while (isFree && written < 64 * 1024 * 1024) {
        isFree = calls[0]?.writeFramed(piece) ?? false
        written += piece.length
      }
    }
    calls[0]?.onWritable(pump)
    pump()
    let before = -1
    let looks = 0
    await until('the stream of the node is paused', () => {
      looks = written === before ? looks + 1 : 0
      before = written
      return !isFree && looks > 50
    })
    assert.ok(written < 16 * 1024 * 1024, `${written} bytes were taken`)
    let read = 0
    stream.on('data', (chunk: Buffer) => (read += chunk.length))
    await until('all of it arrives', () => read === 64 * 1024 * 1024)
    session.destroy()
  })

  it('ten thousand streams opened and reset leak nothing and do not disturb others', async () => {
    const { token } = await on.gateway.subscribe({ overrides: { unitsPerSecond: null, grpcStreams: null } })
    const customer = await on.gateway.subscribe({})
    calls = []
    const other = openStream(on.client, SUBSCRIBE, tokenMetadata(customer.token))
    await other.headers
    const session = connect(`http://127.0.0.1:${on.port}`)
    let isGone = false
    session.on('error', () => {})
    session.on('close', () => (isGone = true))
    for (let at = 0; at < 10_000 && !isGone; at++) {
      const stream = session.request({
        ':method': 'POST',
        ':path': SUBSCRIBE,
        'content-type': 'application/grpc',
        'x-token': token,
      })
      stream.on('error', () => {})
      stream.close(8)
      if (at % 50 === 0) await new Promise(setImmediate)
    }
    session.destroy()
    await until('the connection was ended', () => isGone)
    await until('only the other stream is open', () => on.server.openCalls === 1)
    // The limit allows a hundred, plus those opened before the first was counted; without the limit it would be all.
    assert.ok(calls.length <= 500, `${calls.length} calls reached the node`)
    calls[0]?.send(Buffer.from('update'))
    await until('it flows', () => other.messages.length === 1)
    other.call.cancel()
    const refused = await openStream(on.client, SUBSCRIBE, tokenMetadata(token)).ended
    assert.equal(refused.code, GrpcCode.resourceExhausted)
    assert.match(refused.details, /100 calls cancelled/)
  })
})

it('a client that leaves while its node is being connected to gives its stream back', async (t) => {
  await using node = await startFakeNode()
  await using on = await startGrpcGateway([{ name: 'late', grpc: node.grpc }])
  const { grpc } = on.upstreams.shared
  const connected = Promise.withResolvers<void>()
  const { open } = grpc
  const opened: ReturnType<typeof open>[] = []
  t.mock.method(grpc, 'open', async (...args: Parameters<typeof open>) => {
    await connected.promise
    opened.push(open(...args))
    return opened[0]
  })
  const { token, id } = await on.gateway.subscribe({})
  const permits = () => on.gateway.access.permits.taken(id).grpcStreams
  const session = connect(`http://127.0.0.1:${on.port}`)
  const headers = { 'content-type': 'application/grpc', 'x-token': token }
  const stream = session.request({ ':method': 'POST', ':path': SUBSCRIBE, ...headers })
  stream.on('error', () => {})
  await until('it waits for its node', () => permits() === 1)
  session.destroy()
  await until('its stream is given back', () => permits() === 0)
  connected.resolve()
  await until('the node is connected to', () => opened.length === 1)
  assert.equal((await opened[0])?.ok, true)
  assert.deepEqual([permits(), on.server.openCalls], [0, 0])
})
