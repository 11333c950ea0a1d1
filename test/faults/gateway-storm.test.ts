import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { createSeededRandom } from '../../src/core/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { isFull, seedOf } from '../support/process/property.ts'
import { startFakeNode } from './fake-node.ts'

const LAUNCHER = join(import.meta.dirname, '../../sluice')
/** Threads of the gateway; each has a subscription of its own at the node. */
const WORKERS = 2
const CLIENTS = isFull ? 10_000 : 300
const STEADY_MS = 30_000
/** The memory limit of one process. */
const RSS_BYTES_MAX = 512 * 1024 * 1024

test(`F21: ${CLIENTS} clients reconnect at once after a restart: all are served within 30 s, in bounded memory`, async (t) => {
  const random = createSeededRandom(seedOf(t))
  await using node = await startFakeNode()
  const start = () =>
    startServedGateway([{ name: 'a', rpc: node.rpc, ws: node.ws }], { workers: WORKERS, program: LAUNCHER })
  // The very first start from a checkout also strips types in every thread, which takes some 30 MiB; a restart and a package do not.
  {
    await using first = await start()
    assert.equal(await first.running.stop(), 0)
  }
  await using gateway = await start()
  const pid = gateway.running.child.pid
  const rssBytes = () => Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  const sockets: WebSocket[] = []
  let tries = 0

  /** Reconnects like a well-behaved client after a loss or a refusal: with growing backoff and jitter. */
  async function connect(): Promise<void> {
    for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 5000)) {
      tries += 1
      const socket = new WebSocket(gateway.ws, { headers: { 'x-token': gateway.token } })
      sockets.push(socket)
      const isLive = await new Promise<boolean>((resolve) => {
        socket.on('error', () => resolve(false))
        socket.on('close', () => resolve(false))
        socket.on('open', () => socket.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}'))
        socket.on('message', () => resolve(true))
      })
      if (isLive) return
      await pause(waitMs * (0.5 + random.float()))
    }
  }
  /** Includes the subscriptions of other services in the process. */
  const subscriptionsAtNode = async (): Promise<number> => {
    const metrics = await (await fetch(`${gateway.metrics}/metrics`)).text()
    return Number(/^sluice_upstreams_ws_subscriptions\{upstream="a"\} (\d+)$/m.exec(metrics)?.[1])
  }
  try {
    const before = await subscriptionsAtNode()
    const fromMs = performance.now()
    await Promise.all(Array.from({ length: CLIENTS }, connect))
    const steadyMs = performance.now() - fromMs
    const peak = rssBytes()
    t.diagnostic(
      `${CLIENTS} steady after ${(steadyMs / 1000).toFixed(1)} s and ${tries} tries (figure: 30 s), peak of the gateway ${Math.round(peak / 2 ** 20)} MiB`,
    )
    assert.ok(steadyMs <= STEADY_MS, `${steadyMs} ms`)
    assert.ok(peak <= RSS_BYTES_MAX, `${peak} bytes`)
    assert.equal([...node.subscriptions.values()].filter(({ method }) => method === 'slotSubscribe').length <= 8, true)
    const atNode: number[] = []
    await until('all clients of a thread share one at the node', async () => {
      atNode.push(await subscriptionsAtNode())
      return atNode.at(-1) === before + WORKERS
    })
    t.diagnostic(`subscriptions at the node: ${before} before, then ${[...new Set(atNode)].join(', ')}`)

    // Steady: notifications reach every one of them. This node announces no slots by itself, so that its connection is replaced as a stalled one from time
    // to time; a slot that it announces meanwhile is missed.
    const reported = new Set<WebSocket>()
    for (const socket of sockets) socket.on('message', () => reported.add(socket))
    const live = sockets.filter((socket) => socket.readyState === WebSocket.OPEN).length
    assert.equal(live, CLIENTS)
    for (let waited = 0; reported.size < CLIENTS && waited < 200; waited++) {
      if (waited % 40 === 0) node.tick()
      await pause(50)
    }
    assert.equal(reported.size, CLIENTS, 'clients got a notification')
  } finally {
    for (const socket of sockets) socket.terminate()
  }
})
