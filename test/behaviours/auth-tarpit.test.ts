import assert from 'node:assert/strict'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:http2'
import { after, before, describe, it } from 'node:test'
import { WebSocket } from 'ws'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { serveUnary } from '../../src/platform/grpc/unary.ts'
import { FAILURES_MAX } from '../../src/platform/net/auth-tarpit.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { PING } from '../support/gateway/grpc.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'

type Outcome = { readonly status: number; readonly tookMs: number; readonly isClosed: boolean }
type Server = { readonly ask: (token: string) => Promise<Outcome>; readonly refusal: number; readonly good: number }

/** Time is imprecise on a busy machine: delayed responses take at least this long; the counter identifies them. */
const LATE_MS = 950

/** Each server with its own gateway, since all three count the same failures. */
describe('guessing tokens', () => {
  let node: FakeNode
  let gateway: Gateway

  before(async () => {
    node = await startFakeNode()
    node.onGrpcCall = (call) => serveUnary(call, (message) => ({ ok: true, message }))
  })
  after(async () => {
    await node[Symbol.asyncDispose]()
  })

  async function rpc(token: string): Promise<Outcome> {
    const startMs = performance.now()
    const agent = new Agent({ keepAlive: true })
    const headers = { 'x-token': token, 'content-type': 'application/json' }
    try {
      return await new Promise<Outcome>((resolve, reject) => {
        const asked = request(gateway.url, { method: 'POST', agent, headers }, (response: IncomingMessage) => {
          response.resume()
          response.on('end', () => {
            const isClosed = response.headers.connection === 'close'
            resolve({ status: response.statusCode ?? 0, tookMs: performance.now() - startMs, isClosed })
          })
        })
        asked.on('error', reject)
        asked.end('{"jsonrpc":"2.0","id":1,"method":"getSlot"}')
      })
    } finally {
      agent.destroy()
    }
  }

  function page(token: string): Promise<Outcome> {
    const startMs = performance.now()
    return fetch(`${gateway.url}/v1/whoami`, { headers: { 'x-token': token } }).then(async (response) => {
      await response.arrayBuffer()
      const isClosed = response.headers.get('connection') === 'close'
      return { status: response.status, tookMs: performance.now() - startMs, isClosed }
    })
  }

  function ws(token: string): Promise<Outcome> {
    const startMs = performance.now()
    const socket = new WebSocket(gateway.ws, { headers: { 'x-token': token } })
    return new Promise((resolve) => {
      socket.on('error', () => {})
      socket.on('unexpected-response', (_, response) => {
        response.resume()
        const isClosed = response.headers.connection === 'close'
        resolve({ status: response.statusCode ?? 0, tookMs: performance.now() - startMs, isClosed })
      })
      socket.on('open', () => {
        socket.terminate()
        resolve({ status: 101, tookMs: performance.now() - startMs, isClosed: false })
      })
    })
  }

  async function grpc(token: string): Promise<Outcome> {
    const startMs = performance.now()
    const session = connect(`http://${gateway.grpc}`)
    session.on('error', () => {})
    let isClosed = false
    session.on('goaway', () => (isClosed = true))
    try {
      const headers = { ':method': 'POST', ':path': PING, 'content-type': 'application/grpc', 'x-token': token }
      const status = await new Promise<number>((resolve) => {
        const stream = session.request(headers)
        stream.on('response', (response) => resolve(Number(response['grpc-status'] ?? 0)))
        stream.on('error', () => {})
        stream.resume()
        stream.end(Buffer.alloc(5))
      })
      const tookMs = performance.now() - startMs
      // The close of the connection may arrive right after the response.
      for (let turn = 0; turn < 100 && !isClosed && tookMs >= LATE_MS; turn++) {
        await new Promise((resolve) => setImmediate(resolve))
      }
      return { status, tookMs, isClosed }
    } finally {
      session.destroy()
    }
  }

  const servers: [string, Server][] = [
    ['rpc', { ask: rpc, refusal: 401, good: 200 }],
    ['a page of the customer', { ask: page, refusal: 401, good: 200 }],
    ['ws', { ask: ws, refusal: 401, good: 101 }],
    ['grpc', { ask: grpc, refusal: GrpcCode.permissionDenied, good: 0 }],
  ]
  for (const [name, { ask, refusal, good }] of servers) {
    it(`${name}: delays refusals and closes after ${FAILURES_MAX} failures, and serves a valid token at once`, async () => {
      await using opened = await startGateway(
        [{ name: 'fake', rpc: node.rpc, ws: node.ws, grpc: node.grpc }],
        BUILT_IN_PLANS,
        { bundle: { failuresMax: FAILURES_MAX } },
      )
      gateway = opened
      const { token } = await gateway.subscribe({})
      const lateCount = () =>
        ['rpc', 'ws', 'grpc'].reduce(
          (sum, server) =>
            sum + (gateway.registry.value('sluice_bundle_delayed_refusals_total', { interface: server }) ?? 0),
          0,
        )
      const guess = `slc_${'0'.repeat(40)}`
      for (let at = 0; at < FAILURES_MAX; at++) assert.equal((await ask(guess)).status, refusal)
      assert.equal(lateCount(), 0)
      const [late, fine] = await Promise.all([ask(guess), ask(token)])
      assert.deepEqual([late.status, late.isClosed], [refusal, true])
      assert.ok(late.tookMs >= LATE_MS, `${late.tookMs} ms`)
      assert.equal(lateCount(), 1)
      assert.equal(fine.status, good)
      assert.ok(fine.tookMs < late.tookMs)
    })
  }
})
