import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { promisify, stripVTControlCharacters } from 'node:util'
import { findInPath } from '../../scripts/needs.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { isFull } from '../support/process/property.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance"}'
const HUGE = '{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts"}'
const CONNECTIONS = isFull ? 1000 : 150
/** Longer than the deadlines of a head (5 s) and of a client that does not read (10 s); in full also longer than that of a body (15 s). */
const SECONDS = isFull ? 25 : 13
/** The system itself holds some megabytes for each of them. */
const SLOW_READERS = isFull ? 60 : 10
const HUGE_BYTES = 1024 * 1024 * 1024

/** T9: a client that writes or reads a byte at a time costs one connection, and for a limited time. */
test('T9: slow heads, slow bodies and slow readers do not affect others', {
  skip: findInPath('slowhttptest') === undefined && 'slowhttptest is missing',
}, async (t) => {
  await using node = await startEndlessNode()
  await using gateway = await startServedGateway([{ name: 'endless', rpc: node.url }])
  const { url, token } = gateway
  const port = Number(new URL(url).port)
  const quiet = await callFor(url, token, 1000)

  const before = rssBytes(gateway.running.child.pid)
  const readers = Array.from({ length: SLOW_READERS }, () => openSlowReader(port, token))
  const attacks = Promise.all([
    // By GET, which node:http handles from its first byte, and by POST, which the fast path handles.
    attack(`-H -i 1 -t GET -u ${url}/health`),
    attack(`-H -i 1 -t POST -u ${url}/`),
    attack(`-B -i 1 -s 8192 -f application/json -u ${url}/?api-key=${token}`),
    attack(`-X -w 1 -y 64 -n 5 -z 8 -k 10 -u ${url}/health`),
  ])
  const busy = await callFor(url, token, (SECONDS - 1) * 1000)
  const grownMb = (rssBytes(gateway.running.child.pid) - before) / 1e6
  t.diagnostic(`quiet ${JSON.stringify(quiet)}, under attack ${JSON.stringify(busy)}, ${grownMb.toFixed(0)} MB more`)
  const reports = await attacks
  for (const report of reports) assert.match(report, /service available: +YES(?![^]*available: +NO)/, report)
  // The tool stops early when all its connections are closed.
  for (const report of reports.slice(0, 2)) assert.match(report, /Exit status: No open connections left/, report)
  assert.equal(busy.failed, 0)
  assert(busy.p99Ms < (isFull ? Math.max(2 * quiet.p99Ms, 100) : 15_000), JSON.stringify({ quiet, busy }))
  assert(grownMb < 200, `${grownMb} MB more for ${SLOW_READERS} readers of ${HUGE_BYTES} bytes each`)
  await until('slow readers are cut off', () => readers.every(({ destroyed }) => destroyed), 30_000)
  await until('the connections to the node are released', () => node.open() === 0)
})

/** The summary of slowhttptest, without colours. */
async function attack(how: string): Promise<string> {
  const base = `-c ${CONNECTIONS} -r 500 -l ${SECONDS + 5} -p ${isFull ? 5 : 15} -v 1`
  const { stdout } = await promisify(execFile)('slowhttptest', `${how} ${base}`.split(' '))
  return stripVTControlCharacters(stdout)
}

function rssBytes(pid: number | undefined): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

/** Requests a large response and does not read it. */
function openSlowReader(port: number, token: string): Socket {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.pause()
  socket.write(
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nx-token: ${token}\r\nContent-Length: ${HUGE.length}\r\n\r\n${HUGE}`,
  )
  // Nothing is read, so a reset is noticed only by writing.
  const probe = setInterval(() => {
    if (!socket.destroyed) socket.write('x')
    else clearInterval(probe)
  }, 1000)
  return socket
}

/** Calls one after the other, alternating kept and new connections. */
async function callFor(url: string, token: string, ms: number) {
  const took: number[] = []
  let failed = 0
  for (const endMs = performance.now() + ms; performance.now() < endMs; ) {
    const beganMs = performance.now()
    const connection = took.length % 2 === 0 ? 'keep-alive' : 'close'
    const headers = { 'content-type': 'application/json', 'x-token': token, connection }
    const response = await fetch(url, { method: 'POST', body: CALL, headers })
    await response.text()
    if (response.status !== 200) failed += 1
    took.push(performance.now() - beganMs)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const sorted = took.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10
  return { calls: took.length, failed, p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** A node with an endless response, sent only as fast as it is read. */
async function startEndlessNode(): Promise<AsyncDisposable & { url: string; open(): number }> {
  const streams = new Set<object>()
  const piece = Buffer.alloc(64 * 1024, 'x')
  const server = createServer((request, response) => void serve(request, response))
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const result = body.includes('getSlot') ? '1000' : '"ok"'
    if (!body.includes('getProgramAccounts')) return void response.end(`{"jsonrpc":"2.0","result":${result},"id":1}`)
    streams.add(response)
    response.on('error', () => {})
    response.on('close', () => streams.delete(response))
    let left = HUGE_BYTES
    const write = () => {
      while (left > 0 && response.write(piece)) left -= piece.length
      if (left <= 0) response.end()
    }
    response.on('drain', write)
    response.write('{"jsonrpc":"2.0","result":"')
    write()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    open: () => streams.size,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
