import assert from 'node:assert/strict'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2'
import { after, before, describe, it } from 'node:test'
import { FREE_REFUSALS } from '../../src/access/free-refusals.ts'
import { UNARY_CALLS_MAX } from '../../src/gateway/geyser/admission.ts'
import type { GrpcCall } from '../../src/platform/grpc/call.ts'
import { frameMessage } from '../../src/platform/grpc/framing.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type GrpcGateway, PING, startGrpcGateway, tokenMetadata, unary } from '../support/gateway/grpc.ts'

const CALLS_PER_CONNECTION = 100

describe('unary calls of geyser.Geyser', () => {
  let node: FakeNode
  let on: GrpcGateway
  let calls: GrpcCall[] = []
  let sessions: ClientHttp2Session[] = []

  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => {
      calls.push(call)
      serveUnary(call, (message) => ({ ok: true, message }))
    }
    on = await startGrpcGateway([{ name: 'fake', grpc: node.grpc }], { refusalDelayMs: 1 })
  })
  after(async () => {
    for (const session of sessions) session.destroy()
    await on[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  function openSession(): ClientHttp2Session {
    const session = connect(`http://127.0.0.1:${on.port}`)
    session.on('error', () => {})
    sessions = [...sessions, session]
    return session
  }

  /** A call without its request. */
  function openCall(session: ClientHttp2Session, token: string) {
    const headers = { ':method': 'POST', ':path': PING, 'content-type': 'application/grpc', 'x-token': token }
    const stream: ClientHttp2Stream = session.request(headers)
    const ended = Promise.withResolvers<{ readonly code: number; readonly message: string; readonly body: Buffer }>()
    const chunks: Buffer[] = []
    let status: IncomingHttpHeaders = {}
    stream.on('error', () => {})
    stream.on('response', (fields) => (status = fields))
    stream.on('trailers', (fields) => (status = fields))
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      const message = decodeURIComponent(String(status['grpc-message'] ?? ''))
      ended.resolve({ code: Number(status['grpc-status']), message, body: Buffer.concat(chunks) })
    })
    return { stream, ended: ended.promise }
  }

  it('open no call at a node before their request is complete', async () => {
    const { token } = await on.gateway.subscribe({})
    calls = []
    const { stream, ended } = openCall(openSession(), token)
    await until('the call is open', () => on.server.openCalls === 1)
    const request = frameMessage(Buffer.from([8, 7]))
    stream.write(request)
    // Another call, which is made later, passes it.
    assert.equal((await unary(on.client, PING, Buffer.from([8, 1]), tokenMetadata(token))).error, null)
    assert.equal(calls.length, 1)
    stream.end()
    assert.deepEqual(await ended, { code: GrpcCode.ok, message: '', body: request })
    assert.equal(calls.length, 2)
    await until('nothing is open', () => on.server.openCalls === 0)
  })

  it('without a request end with INTERNAL, and no node sees them', async () => {
    const { token } = await on.gateway.subscribe({})
    calls = []
    const { stream, ended } = openCall(openSession(), token)
    stream.end()
    const { code, message } = await ended
    assert.deepEqual([code, message], [GrpcCode.internal, 'no request for a unary call'])
    assert.equal(calls.length, 0)
  })

  it('whose client leaves in between are not opened at a node', async () => {
    const { token } = await on.gateway.subscribe({})
    calls = []
    const session = openSession()
    const { stream } = openCall(session, token)
    stream.write(frameMessage(Buffer.alloc(0)))
    await until('the call is open', () => on.server.openCalls === 1)
    session.destroy()
    await until('nothing is open', () => on.server.openCalls === 0)
    assert.equal(calls.length, 0)
  })

  it('are free where their request is refused, up to a rate, and charged beyond it', async () => {
    const { token } = await on.gateway.subscribe({ overrides: { unitsPerSecond: null } })
    const refused = FREE_REFUSALS.burst * 2
    const unitsUsed = () => {
      const caller = on.gateway.access.authenticate({ token }, 'bundle', Date.now())
      assert.ok(caller.ok)
      return on.gateway.access.quota(caller).month.used
    }
    const startMs = performance.now()
    const tooLarge = Buffer.alloc(5000)
    for (let at = 0; at < refused; at++) {
      const { error } = await unary(on.client, PING, tooLarge, tokenMetadata(token))
      assert.match(String(error?.details), /grpcRequestBytes/)
    }
    const refilled = ((performance.now() - startMs) / 1000) * FREE_REFUSALS.perSecond
    const units = unitsUsed()
    assert.ok(units >= refused - FREE_REFUSALS.burst - refilled - 1, `${units} units`)
    assert.ok(units <= refused - FREE_REFUSALS.burst / 2, `${units} units`)
  })

  it('are limited in number for each subscription', async () => {
    const plenty = { overrides: { unitsPerSecond: null } }
    const [one, other] = [await on.gateway.subscribe(plenty), await on.gateway.subscribe(plenty)]
    const held: ReturnType<typeof openCall>[] = []
    while (held.length < UNARY_CALLS_MAX) {
      const session = openSession()
      for (let at = 0; at < CALLS_PER_CONNECTION && held.length < UNARY_CALLS_MAX; at++)
        held.push(openCall(session, one.token))
    }
    await until('all are open', () => on.server.openCalls === UNARY_CALLS_MAX)
    const refused = await openCall(openSession(), one.token).ended
    assert.equal(refused.code, GrpcCode.resourceExhausted)
    const limit = `limit reached: ${UNARY_CALLS_MAX} open unary gRPC calls; limit: grpcUnaryCalls`
    assert.equal(refused.message, `${limit}; cost: 1; try again in 1000 ms`)
    assert.equal((await unary(on.client, PING, Buffer.alloc(0), tokenMetadata(other.token))).error, null)
    held[0]?.stream.end(frameMessage(Buffer.alloc(0)))
    assert.equal((await held[0]?.ended)?.code, GrpcCode.ok)
    const { error } = await unary(on.client, PING, Buffer.alloc(0), tokenMetadata(one.token))
    assert.equal(error, null, 'an ended call makes room for another')
  })
})
