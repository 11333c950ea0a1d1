import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import { openControlClient } from '../../src/platform/process/control-client.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import type { ControlProtocol } from '../../src/processes/compose/process/control-protocol.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { rawPost } from '../support/gateway/raw-post.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'
import { openWsTestClient, type WsTestClient } from '../support/gateway/ws-client.ts'

/** Enough connections that the kernel gives each thread some: all on one of two threads happens once in 8 million runs. */
const CONNECTIONS = 24
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'
/** Fewer for a check that is repeated. */
const ROUND = 12
/** A change is seen by all threads within a second; a busy test machine gets more. */
const CHANGE_MS = 20_000

type Reply = { readonly status: number; readonly body: string; readonly requestId: string }

describe('a gateway with two threads', () => {
  const stack = new AsyncDisposableStack()
  let node: FakeNode
  let other: FakeNode
  let gateway: ServedGateway

  before(async () => {
    node = stack.use(await startFakeNode())
    other = stack.use(await startFakeNode())
    node.onGrpcCall = (call) => {
      call.onMessage(() => {})
      call.sendHeaders({})
    }
    const { rpc, ws, grpc } = node
    gateway = stack.use(await startServedGateway([{ name: 'a', rpc, ws, grpc }], { workers: 2 }))
  })
  after(() => stack.disposeAsync())

  async function run(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await gateway.sluice(...words)
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }

  /** A subscription of its own, so that each test counts only its calls. */
  async function subscribe(name: string, ...limits: string[]): Promise<string> {
    const words = ['--customer', 'acme', '--plan', 'free', '--print-token', ...limits]
    const token = tokenIn(await run('sub', 'create', name, ...words))
    await onAllThreads(token, (status) => status === 200)
    return token
  }

  /** Asks on new connections until a whole round of them has this status: then every thread gives it. The page costs no units. */
  async function onAllThreads(token: string, isReached: (status: number) => boolean): Promise<void> {
    const endMs = performance.now() + CHANGE_MS
    for (;;) {
      const round = Array.from({ length: ROUND }, () => send(gateway.url, token, 'GET', '/v1/whoami'))
      const statuses = (await Promise.all(round)).map(({ status }) => status)
      if (statuses.every(isReached)) return
      assert.ok(performance.now() < endMs, `the threads respond with ${statuses.join(' ')}`)
      // The page has a rate.
      await pause(200)
    }
  }

  /** One call each, on connections of their own. */
  const callMany = (token: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => rawPost(gateway.url, token, CALL).response))

  const openMany = (token: string, count = CONNECTIONS) =>
    Promise.all(Array.from({ length: count }, () => openWsTestClient(gateway.ws, { 'x-token': token })))

  const logLines = () =>
    gateway.running
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)

  const metrics = async () => (await fetch(`${gateway.metrics}/metrics`)).text()

  test('both serve, and their log lines, metrics, status and top show it', async () => {
    const token = await subscribe('both')
    const clients = await openMany(token)
    await until('both have logged a connection', () => {
      const connected = logLines().filter(({ msg }) => msg === 'connected')
      return ['gateway-1', 'gateway-2'].every((name) => connected.some(({ thread }) => thread === name))
    })
    const text = await metrics()
    for (const thread of ['main', 'gateway-1', 'gateway-2'])
      assert.match(text, new RegExp(`^sluice_thread_up\\{thread="${thread}"\\} 1$`, 'm'))
    await until('the gauge has those of both', async () =>
      new RegExp(`^sluice_bundle_connections\\{interface="ws"\\} ${CONNECTIONS}$`, 'm').test(await metrics()),
    )
    const status = JSON.parse(await run('status', '--json')) as { threads: { name: string; is_running: boolean }[] }
    assert.deepEqual(
      status.threads.filter((thread) => thread.is_running).map(({ name }) => name),
      ['gateway-1', 'gateway-2', 'sender'],
    )
    assert.ok((await callMany(token, CONNECTIONS)).every(({ status }) => status === 200))
    const top = await run('top', '--once')
    assert.match(top, new RegExp(`^ ws +\\d+ +${CONNECTIONS} open`, 'm'))
    assert.match(top, /^ both /m)
    closeAll(clients)
  })

  test('a month of units is one budget: exactly so many calls reach the node, and are charged', async () => {
    const budget = 300
    const token = await subscribe('budget', '--units-per-second', String(budget), '--units-per-month', String(budget))
    const forwarded = () => node.calls.filter(({ method }) => method === 'getBalance').length
    const before = forwarded()
    let responded = 0
    for (let round = 0; round < 6; round++) {
      const replies = await callMany(token, 100)
      responded += replies.filter(({ status }) => status === 200).length
      assert.deepEqual(
        replies.filter(({ status }) => status !== 200 && status !== 429),
        [],
      )
    }
    assert.equal(responded, budget)
    assert.equal(forwarded() - before, budget)
    await until('all units are in the ledger', async () => (await unitsOf('budget')) === budget)
  })

  async function unitsOf(name: string): Promise<number> {
    const rows = JSON.parse(await run('usage', '--sub', name, '--json')) as { units: number }[]
    return rows.reduce((sum, { units }) => sum + units, 0)
  }

  test('permits are one set: of many connections at once exactly as many open as the limit allows', async () => {
    const limit = 7
    const token = await subscribe('permits', '--ws-connections', String(limit), '--grpc-streams', String(limit))
    const tries = await Promise.all(Array.from({ length: CONNECTIONS }, () => tryWs(gateway.ws, token)))
    const open = tries.filter((socket) => socket instanceof WebSocket)
    assert.equal(open.length, limit)
    assert.deepEqual(new Set(tries.filter((result) => result === 'refused 429')).size, 1)
    for (const socket of open) socket.terminate()
    // What one thread freed, both can use.
    await until('all permits are free', async () => {
      const again = await Promise.all(Array.from({ length: limit }, () => tryWs(gateway.ws, token)))
      const opened = again.filter((socket) => socket instanceof WebSocket)
      for (const socket of opened) socket.terminate()
      return opened.length === limit
    })
    // A channel of its own for each, so that each is a connection.
    const streams = Array.from({ length: CONNECTIONS }, () => {
      const client = new Client(gateway.grpc, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 })
      return { client, stream: openStream(client, SUBSCRIBE, tokenMetadata(token)) }
    })
    let refused = 0
    for (const { stream } of streams) void stream.ended.then(({ code }) => (refused += Number(code === 8)))
    await until('the others are refused', () => refused === CONNECTIONS - limit)
    const { total } = JSON.parse((await send(gateway.url, token, 'GET', '/v1/connections')).body) as { total: number }
    assert.equal(total, limit)
    for (const { client, stream } of streams) {
      stream.call.cancel()
      client.close()
    }
  })

  test('a customer sees and closes the connections of both threads from either', async () => {
    const token = await subscribe('lists')
    const clients = await openMany(token)
    // One kept-alive connection, so one thread.
    using agent = keptAlive()
    const list = async () => {
      const { body } = await send(gateway.url, token, 'GET', '/v1/connections', agent.agent)
      return JSON.parse(body) as { total: number; connections: { id: string; since: string }[] }
    }
    const { total, connections } = await list()
    assert.equal(total, CONNECTIONS)
    const since = connections.map((each) => each.since)
    assert.deepEqual(since, since.toSorted())
    const whoami = await send(gateway.url, token, 'GET', '/v1/whoami', agent.agent)
    assert.equal((JSON.parse(whoami.body) as { connections: unknown[] }).connections.length, CONNECTIONS)

    const stranger = await subscribe('stranger')
    for (const { id } of connections.slice(0, 6)) {
      const path = `/v1/connections/${id}/close`
      assert.equal((await send(gateway.url, stranger, 'POST', path, agent.agent)).status, 404)
      assert.equal((await send(gateway.url, token, 'POST', path, agent.agent)).status, 200)
    }
    await until('they are closed', async () => (await list()).total === CONNECTIONS - 6)
    for (const { id } of connections.slice(6)) {
      const { body } = await send(gateway.url, token, 'POST', `/v1/connections/${id}/close`, agent.agent)
      assert.match(body, /"closed":true/)
    }
    assert.deepEqual(new Set(await Promise.all(clients.map(({ closed }) => closed))), new Set([1000]))
  })

  test('a ticket that one thread made is valid at both', async () => {
    const token = await subscribe('tickets')
    const { body } = await send(gateway.url, token, 'POST', '/v1/ws-ticket')
    const { ticket } = JSON.parse(body) as { ticket: string }
    const clients = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => openWsTestClient(`${gateway.ws}/?ticket=${ticket}`, {})),
    )
    closeAll(clients)
  })

  test('documents are served by both', async () => {
    const replies = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => send(gateway.url, undefined, 'GET', '/docs')),
    )
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]))
    assert.equal(new Set(replies.map(({ body }) => body)).size, 1)
  })

  test('the refusal of a request id is found whichever thread refused it', async () => {
    const token = await subscribe('asked', '--request-bytes', '1024')
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getBalance', params: ['x'.repeat(2000)] })
    const refused = await Promise.all(
      Array.from({ length: CONNECTIONS }, () => send(gateway.url, token, 'POST', '/', undefined, body)),
    )
    for (const { requestId, status } of refused.slice(0, 8)) {
      assert.notEqual(status, 200)
      assert.match(await run('logs', 'tail', '--request', requestId, '--json'), new RegExp(requestId))
    }
  })

  test('a rotated token and a suspended subscription are in effect in both', async () => {
    const first = await subscribe('changes')
    const clients = await openMany(first)
    const second = tokenIn(await run('token', 'rotate', 'changes', '--yes', '--print-token'))
    await onAllThreads(first, (status) => status === 401)
    await onAllThreads(second, (status) => status === 200)
    assert.deepEqual(new Set(await Promise.all(clients.map(({ closed }) => closed))), new Set([4401]))
    await run('sub', 'suspend', 'changes', '--yes')
    await onAllThreads(second, (status) => status === 401 || status === 403)
    await run('sub', 'resume', 'changes')
    await onAllThreads(second, (status) => status === 200)
  })

  test('plans and nodes of a reloaded configuration reach both; a drained node gets no call of either', async () => {
    const token = await subscribe('reloads')
    const limits = async () => {
      const replies = await callMany(token, CONNECTIONS)
      return new Set(replies.map(({ head }) => /^x-ratelimit-limit: *(\S+)/im.exec(head)?.[1]))
    }
    const text = readFileSync(gateway.configFile, 'utf8')
    const { rpc, ws, grpc } = other
    const second = `[[upstreams.nodes]]\nname = "b"\nrpc = "${rpc}"\nws = "${ws}"\ngrpc = "${grpc}"\n`
    writeFileSync(
      gateway.configFile,
      `${second}${text.replace('unitsPerSecond = "unlimited"', 'unitsPerSecond = 5000')}`,
    )
    await run('reload')
    await until('both threads have the plan', async () => {
      const seen = await limits()
      return seen.size === 1 && seen.has('50000')
    })
    await until('the new node is healthy in both', async () => {
      const nodes = JSON.parse(await run('upstream', 'list', '--json')) as { name: string; state: string }[]
      return nodes.length === 2 && nodes.every(({ state }) => state === 'healthy')
    })
    await run('upstream', 'drain', 'a')
    await until('no call reaches the drained node', async () => {
      const before = node.calls.length
      const replies = await callMany(token, CONNECTIONS)
      return node.calls.length === before && replies.every(({ status }) => status === 200)
    })
    await run('upstream', 'drain', 'b')
    await until('no thread has a node left', async () =>
      (await callMany(token, CONNECTIONS)).every(({ status }) => status === 503),
    )
    await run('upstream', 'undrain', 'a')
    await run('upstream', 'undrain', 'b')
    await until('both threads have them again', async () =>
      (await callMany(token, CONNECTIONS)).every(({ status }) => status === 200),
    )
  })

  test('the operator closes a connection of any thread', async () => {
    const token = await subscribe('closing')
    const clients = await openMany(token)
    using control = await openControlClient<ControlProtocol>(
      gateway.configFile.replace('sluice.toml', '.sluice/control.sock'),
    )
    const { total, connections } = await control.call('connections')
    assert.equal(total, CONNECTIONS)
    for (const { id } of connections)
      assert.deepEqual(await control.call('connection-close', { name: id }), { found: true })
    await Promise.all(clients.map(({ closed }) => closed))
    assert.deepEqual(await control.call('connection-close', { name: connections[0]?.id ?? '' }), { found: false })
  })
})

const tokenIn = (text: string) => /slc_[0-9A-Za-z]{38}/.exec(text)?.[0] ?? ''

function closeAll(clients: readonly WsTestClient[]): void {
  for (const { socket } of clients) socket.terminate()
}

function keptAlive(): Disposable & { readonly agent: Agent } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return { agent, [Symbol.dispose]: () => agent.destroy() }
}

/** A request on a connection of its own, or on that of the agent. */
function send(
  url: string,
  token: string | undefined,
  method: 'GET' | 'POST',
  path: string,
  agent?: Agent,
  body?: string,
): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>()
  const headers = { 'content-type': 'application/json', ...(token === undefined ? {} : { 'x-token': token }) }
  const sent = request(new URL(path, url), { method, headers, agent: agent ?? false }, (response) => {
    let text = ''
    response.on('data', (chunk: Buffer) => (text += chunk.toString()))
    response.on('end', () => {
      const requestId = String(response.headers['x-request-id'] ?? '')
      resolve({ status: response.statusCode ?? 0, body: text, requestId })
    })
  })
  sent.on('error', reject)
  sent.end(body)
  return promise
}

function tryWs(url: string, token: string): Promise<WebSocket | string> {
  const socket = new WebSocket(url, { headers: { 'x-token': token } })
  const { promise, resolve } = Promise.withResolvers<WebSocket | string>()
  socket.on('open', () => resolve(socket))
  socket.on('unexpected-response', (_request, { statusCode }) => resolve(`refused ${statusCode}`))
  socket.on('error', (error) => resolve(String(error)))
  return promise
}
