import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/platform/process/test-wait.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'
import { isFull } from '../support/process/property.ts'

const CONNECTIONS = isFull ? 40 : 20
const BATCH_ITEMS = 10
const RESULT_BYTES = isFull ? 6_000_000 : 1_000_000
const CEILING_BYTES = (isFull ? 1536 : 448) * 2 ** 20
/** Held completely, the responses would be 200 MB, in the full run 2.4 GB; the process holds an eighth of its memory limit. */
const GROWTH_BYTES_MAX = CEILING_BYTES / 4
/** How long the attackers stay connected: until the last of them is closed, in full longer. */
const ATTACK_MS = isFull ? 20_000 : 3000

/** A client that requests large batches and does not read them holds a bounded number of bytes, and the process recovers. */
test('T30: large batches that are not read hold a bounded number of bytes, and memory returns afterwards', async (t) => {
  await using node = await startLargeNode()
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.url }], {
    env: { SLUICE_MEMORY__RESIDENT_BYTES_MAX: String(CEILING_BYTES) },
  })
  for (let calls = 0; calls < 5; calls++) assert.equal(await callStatus(gateway), 200)
  const rest = { resident: residentBytes(gateway), live: await liveBytes(gateway) }

  let isOver = false
  let peak = 0
  const statuses: (number | string)[] = []
  const watching = (async () => {
    while (!isOver) {
      peak = Math.max(peak, residentBytes(gateway))
      statuses.push(await callStatus(gateway))
      await pause(100)
    }
  })()
  const attackers = Array.from({ length: CONNECTIONS }, () => openUnreadBatch(gateway))
  // Not for all: those over the subscription's share are refused before they are forwarded.
  await until('the node is asked', () => node.batches() > 0, 30_000)
  await pause(ATTACK_MS)
  isOver = true
  await watching
  for (const socket of attackers) socket.destroy()
  const mb = (bytes: number) => Math.round(bytes / 1e6)
  t.diagnostic(
    `resident ${mb(rest.resident)} MB at rest, ${mb(peak)} MB at most; ${statuses.length} new connections meanwhile; ${node.batches()} of ${CONNECTIONS} batches forwarded`,
  )
  assert.deepEqual(new Set(statuses), new Set([200]), 'new connections are served all the while')
  assert(peak - rest.resident < GROWTH_BYTES_MAX, `${mb(peak - rest.resident)} MB more`)

  await until('new connections are served', async () => (await callStatus(gateway)) === 200, 5000)
  let live = 0
  const endedMs = performance.now()
  await until(
    'live bytes are back',
    async () => {
      // At a long interval: each check is load, and a busy process collects garbage later.
      await pause(1000)
      live = await liveBytes(gateway)
      return live < rest.live * 1.2
    },
    60_000,
  )
  t.diagnostic(
    `live ${mb(rest.live)} MB at rest, ${mb(live)} MB after ${Math.round((performance.now() - endedMs) / 1000)} s; resident ${mb(residentBytes(gateway))} MB`,
  )
  assert.equal(await metric(gateway, 'sluice_process_held_bytes'), 0)
})

/** A node with large batch responses; the results share one buffer, so that the node itself needs no memory for them. */
async function startLargeNode() {
  const result = Buffer.alloc(RESULT_BYTES, 'x')
  let batches = 0
  const server = createServer((request, response) => void serve(request, response))
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const body = JSON.parse(text) as { id: number; method: string } | { id: number }[]
    response.on('error', () => {})
    if (!Array.isArray(body)) {
      return void response.end(
        `{"jsonrpc":"2.0","result":${body.method === 'getSlot' ? 1000 : '"ok"'},"id":${body.id}}`,
      )
    }
    batches += 1
    for (const [at, { id }] of body.entries()) {
      response.write(`${at === 0 ? '[' : ','}{"jsonrpc":"2.0","result":"`)
      response.write(result)
      response.write(`","id":${id}}`)
    }
    response.end(']')
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    batches: () => batches,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A large batch on its own connection; its response is not read. */
function openUnreadBatch({ url, token }: ServedGateway): Socket {
  const calls = Array.from({ length: BATCH_ITEMS }, (_, id) => ({ jsonrpc: '2.0', id, method: 'getProgramAccounts' }))
  const body = JSON.stringify(calls)
  const { port, hostname } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.pause()
  socket.write(
    `POST / HTTP/1.1\r\nhost: a\r\nx-token: ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  return socket
}

/** The status of a small call on a new connection, or why there is none. */
async function callStatus({ url, token }: ServedGateway): Promise<number | string> {
  const headers = { 'content-type': 'application/json', 'x-token': token, connection: 'close' }
  const body = '{"jsonrpc":"2.0","id":1,"method":"getBalance"}'
  try {
    const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(5000) })
    await response.text()
    return response.status
  } catch (error) {
    return String(error)
  }
}

function residentBytes({ running }: ServedGateway): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${running.child.pid}/status`, 'utf8'))?.[1]) * 1024
}

const liveBytes = (gateway: ServedGateway) => metric(gateway, 'sluice_process_live_bytes')

async function metric({ metrics }: ServedGateway, name: string): Promise<number> {
  const text = await (await fetch(`${metrics}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
}
