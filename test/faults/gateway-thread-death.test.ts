import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { until } from '../../src/platform/process/test-wait.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { startFakeNode } from './fake-node.ts'

const CALLERS = 16
const SOCKETS = 24
const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'
/** It is started again after 200 ms; a busy machine needs more to load its code. */
const BACK_MS = 30_000
const ADMITTED = /^sluice_access_admitted_total\{interface="rpc"\} (\d+)$/m

type Caller = { responded: number; refused: number; lost: number }

test('a gateway thread that dies under load takes only its connections; its charges and permits stay exact, and it is back on its port', async (t) => {
  await using node = await startFakeNode()
  const preload = new URL('../support/process/end-thread-on-signal.ts', import.meta.url).href
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc, ws: node.ws, grpc: node.grpc }], {
    workers: 2,
    env: { NODE_OPTIONS: `--import=${preload}` },
  })
  const { running, token } = gateway
  const metrics = async () => (await fetch(`${gateway.metrics}/metrics`)).text()
  const admitted = async () => Number(ADMITTED.exec(await metrics())?.[1])
  const restartsOf = async (thread: string) =>
    Number(new RegExp(`^sluice_thread_restarts_total\\{thread="${thread}"\\} (\\d+)$`, 'm').exec(await metrics())?.[1])
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await gateway.sluice(...words)
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }
  await run('sub', 'limit', 'acme-prod', '--ws-connections', String(SOCKETS))
  await until('the limit is known', async () => {
    const response = await fetch(`${gateway.url}/v1/whoami`, { headers: { 'x-token': token } })
    return (await response.text()).includes(`"wsConnections":${SOCKETS}`)
  })

  const connect = (count: number) => Promise.all(Array.from({ length: count }, () => open(gateway.ws, token)))
  const sockets = await connect(SOCKETS)
  assert.deepEqual(
    sockets.filter((socket) => socket === undefined),
    [],
  )
  await using load = startCallers(gateway.url, token)
  await until('the load runs', () => load.callers.every(({ responded }) => responded > 2))
  assert.equal(await restartsOf('gateway-2'), 0)

  const fromMs = performance.now()
  running.child.kill('SIGUSR2')
  let highest = 0
  await until(
    'it is back',
    async () => {
      const now = await admitted()
      assert.ok(now >= highest, `the counter went back from ${highest} to ${now}`)
      highest = now
      const text = await metrics()
      return (
        /thread_restarts_total\{thread="gateway-2"\} 1$/m.test(text) && /thread_up\{thread="gateway-2"\} 1$/m.test(text)
      )
    },
    BACK_MS,
  )
  t.diagnostic(`back after ${((performance.now() - fromMs) / 1000).toFixed(1)} s`)
  const ended = JSON.parse(await running.line(/"msg":"thread ended, its connections are lost"/)) as { thread: string }
  assert.equal(ended.thread, 'gateway-2')
  assert.equal(await restartsOf('gateway-1'), 0)

  // Its connections have ended and those of the other have not.
  await until('some have ended', () => sockets.some((socket) => socket?.readyState === WebSocket.CLOSED))
  const left = sockets.filter((socket) => socket?.readyState === WebSocket.OPEN)
  t.diagnostic(`${SOCKETS - left.length} of ${SOCKETS} WebSockets were lost`)
  assert.ok(left.length > 0)
  assert.deepEqual(
    await Promise.all(left.map((socket) => pong(socket as WebSocket))),
    left.map(() => true),
  )
  // Exactly their permits are free.
  const again = await connect(SOCKETS)
  assert.equal(again.filter((socket) => socket !== undefined).length, SOCKETS - left.length)
  for (const socket of [...left, ...again]) socket?.terminate()

  // The new instance serves on the same port.
  const before = running.stdout().length
  await until('both threads have connections', async () => {
    for (const socket of await connect(SOCKETS)) socket?.terminate()
    const since = running.stdout().slice(before)
    return ['gateway-1', 'gateway-2'].every((name) => new RegExp(`"thread":"${name}".*"msg":"connected"`).test(since))
  })
  const untouched = load.callers.filter(({ lost }) => lost === 0)
  await load.stop()
  assert.ok(untouched.length > 0 && untouched.length < CALLERS, `${untouched.length} of ${CALLERS} were not touched`)
  assert.deepEqual(
    load.callers.filter(({ refused }) => refused > 0),
    [],
    'no call was responded to with an error',
  )

  const status = JSON.parse(await run('status', '--json')) as { threads: { name: string; restarts: number }[] }
  assert.equal(status.threads.find(({ name }) => name === 'gateway-2')?.restarts, 1)
  assert.equal(await running.stop(), 0)
  const rows = JSON.parse(await run('usage', '--sub', 'acme-prod', '--json')) as { units: number }[]
  const charged = rows.reduce((sum, { units }) => sum + units, 0)
  const forwarded = node.calls.filter(({ method }) => method === 'getBalance').length
  const lost = load.callers.reduce((sum, caller) => sum + caller.lost, 0)
  t.diagnostic(`charged ${charged}, forwarded ${forwarded}, ${lost} calls lost`)
  assert.ok(charged >= forwarded, `charged ${charged} of ${forwarded}`)
  assert.ok(charged - forwarded <= lost, `charged ${charged}, forwarded ${forwarded}, ${lost} lost`)
})

/** Each calls again and again on one kept-alive connection, and on a new one when that is lost. */
function startCallers(url: string, token: string) {
  const callers: Caller[] = Array.from({ length: CALLERS }, () => ({ responded: 0, refused: 0, lost: 0 }))
  let isOver = false
  const loops = callers.map(async (caller) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (!isOver) {
      const status = await post(url, token, agent)
      if (status === 200) caller.responded += 1
      else if (status === undefined) caller.lost += 1
      else caller.refused += 1
      await pause(5)
    }
    agent.destroy()
  })
  const stop = async () => {
    isOver = true
    await Promise.all(loops)
  }
  return { callers, stop, [Symbol.asyncDispose]: stop }
}

/** The status of one call; undefined where the connection was lost. */
function post(url: string, token: string, agent: Agent): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const headers = { 'content-type': 'application/json', 'x-token': token }
  const sent = request(url, { method: 'POST', headers, agent }, (response) => {
    response.on('end', () => resolve(response.statusCode))
    response.on('error', () => resolve(undefined))
    response.resume()
  })
  sent.on('error', () => resolve(undefined))
  sent.end(CALL)
  return promise
}

function open(url: string, token: string): Promise<WebSocket | undefined> {
  const { promise, resolve } = Promise.withResolvers<WebSocket | undefined>()
  const socket = new WebSocket(url, { headers: { 'x-token': token } })
  socket.on('open', () => resolve(socket))
  socket.on('error', () => resolve(undefined))
  return promise
}

function pong(socket: WebSocket): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('pong', () => resolve(true))
  socket.once('close', () => resolve(false))
  socket.ping()
  return promise
}
