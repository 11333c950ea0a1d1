import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { WebSocket } from 'ws'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'

/** One call, and the next one after 100 seconds. */
const ONE = 0.01

type RateLimit = { name: string; method?: string; limit: number; remaining: number }
type Refused = { error: { code: number; data: Record<string, unknown> } }

let node: FakeNode
let gateway: Gateway

before(async () => {
  node = await startFakeNode()
  node.respond = () => ({ result: '"ok"' })
  gateway = await startGateway([{ name: 'fake', rpc: node.rpc }])
})
after(async () => {
  await gateway[Symbol.asyncDispose]()
  await node[Symbol.asyncDispose]()
})

async function limitsShown(token: string): Promise<Record<string, [limit: number, remaining: number]>> {
  const response = await fetch(`${gateway.url}/v1/whoami`, { headers: { 'x-token': token } })
  const { rate_limits } = (await response.json()) as { rate_limits: RateLimit[] }
  return Object.fromEntries(rate_limits.map((row) => [row.method ?? row.name, [row.limit, row.remaining]]))
}

it('limits of sends and of single methods are shown before they run out, and then refuse with size, cost and time', async () => {
  const { token } = await gateway.subscribe({
    overrides: { sendsPerSecond: ONE, methods: { getSlot: { perSecond: ONE } } },
  })
  const post = (method: string) =>
    fetch(gateway.url, {
      method: 'POST',
      body: `{"jsonrpc":"2.0","id":1,"method":"${method}","params":[]}`,
      headers: { 'content-type': 'application/json', 'x-token': token },
    })
  for (const [method, name] of [
    ['sendTransaction', 'sendsPerSecond'],
    ['getSlot', 'methodPerSecond'],
  ] as const) {
    const row = method === 'getSlot' ? method : name
    assert.deepEqual((await limitsShown(token))[row], [1, 1])
    assert.equal((await post(method)).status, 200)
    assert.deepEqual((await limitsShown(token))[row], [1, 0])

    const refused = await post(method)
    assert.equal(refused.status, 429)
    assert.match(refused.headers.get('x-ratelimit-reset') ?? '', /^\d+$/)
    const { code, data } = ((await refused.json()) as Refused).error
    const { limit, size, cost, retryAfterMs, resetsAt } = data
    assert.deepEqual([code, limit, size, typeof cost], [-32429, name, ONE, 'number'])
    assert.ok(Number(retryAfterMs) > 90_000 && Number(retryAfterMs) <= 100_000, String(retryAfterMs))
    assert.ok(Math.abs(Date.parse(String(resetsAt)) - Date.now() - Number(retryAfterMs)) < 10_000, String(resetsAt))
  }
})

it('getRateLimits lists them over WebSocket', async () => {
  const { token } = await gateway.subscribe({ overrides: { sendsPerSecond: ONE } })
  const socket = new WebSocket(gateway.ws, { headers: { 'x-token': token } })
  await new Promise((resolve) => socket.once('open', resolve))
  const call = (method: string) =>
    new Promise<{ result: { rate_limits: RateLimit[] } }>((resolve) => {
      socket.once('message', (data) => resolve(JSON.parse((data as Buffer).toString())))
      socket.send(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":[]}`)
    })
  await call('sendTransaction')
  const { result } = await call('getRateLimits')
  const sends = result.rate_limits.find(({ name }) => name === 'sendsPerSecond')
  assert.deepEqual([sends?.limit, sends?.remaining], [1, 0])
  socket.terminate()
})
