import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent as NodeAgent, request as nodeRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { createHttpPool } from '../src/platform/http/client/pool.ts'
import { createPinnedAddress, parseRemoteAddress } from '../src/platform/net/pinned-address.ts'
import { systemClock } from '../src/platform/process/clock.ts'
import { freePort } from '../test/support/machine/free-ports.ts'
import { pinSelf, startPinned } from './support/pinned-process.ts'

/**
 * The gateway's HTTP client beside undici and node:http, by turns in one process: POST calls over 64 kept connections to nginx, which responds
 * with a constant body of 400 or 50,000 bytes. The client has one core, nginx the other. Calls per second and CPU time per call, medians.
 *   node bench/http-client.ts [seconds per turn, 3] [rounds, 5]
 */
const [seconds = 3, rounds = 5] = process.argv.slice(2).map(Number)
const CLIENT_CORE = 0
const SERVER_CORE = 1
const CONNECTIONS = 64
const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'getAccountInfo',
  params: ['4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA'],
})
const HEADERS = { 'content-type': 'application/json' }

type Client = { readonly call: () => Promise<number>; readonly close: () => unknown }
type Figures = { readonly perSecond: number; readonly cpuMicros: number }

pinSelf(CLIENT_CORE)
const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-http-client-'))
try {
  for (const bytes of [400, 50_000]) await compare(bytes)
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function compare(responseBytes: number): Promise<void> {
  const port = await freePort()
  await using _server = startPinned(SERVER_CORE, 'nginx', ['-c', await writeConfig(port, responseBytes)])
  await untilUp(port)
  const clients: Readonly<Record<string, Client>> = {
    sluice: openSluice(port),
    undici: openUndici(port),
    nodeHttp: openNodeHttp(port),
  }
  const turns: Record<string, Figures[]> = { sluice: [], undici: [], nodeHttp: [] }
  for (let round = 0; round <= rounds; round++) {
    for (const [name, client] of Object.entries(clients)) {
      const figures = await measure(client, responseBytes)
      // The first round warms the code up.
      if (round > 0) turns[name]?.push(figures)
    }
  }
  for (const client of Object.values(clients)) client.close()
  const medians = Object.fromEntries(Object.entries(turns).map(([name, figures]) => [name, medianOf(figures)]))
  const { sluice, undici } = medians as { sluice: Figures; undici: Figures }
  process.stdout.write(
    `${JSON.stringify({
      bench: 'http-client',
      responseBytes,
      ...medians,
      ratioUndici: Number((sluice.perSecond / undici.perSecond).toFixed(2)),
      cpuRatioUndici: Number((undici.cpuMicros / sluice.cpuMicros).toFixed(2)),
      node: process.version,
      arch: process.arch,
    })}\n`,
  )
}

function openSluice(port: number): Client {
  const remote = parseRemoteAddress(`http://127.0.0.1:${port}/`, ['http:'])
  if (remote === undefined) throw new TypeError('the address was written here')
  const address = createPinnedAddress(remote, { allowPrivate: true }, {})
  const pool = createHttpPool(
    { connectionsMax: CONNECTIONS, bufferedBytesMax: 1 << 20 },
    { clock: systemClock, address },
  )
  const bodyBytes = Buffer.byteLength(BODY)
  return {
    call: () =>
      new Promise((resolve, reject) => {
        pool.call({ body: BODY, bodyBytes, deadlineMs: 10_000 }, (outcome) => {
          if (outcome.kind === 'reply') resolve(outcome.body.length)
          else reject(new Error(outcome.cause))
        })
      }),
    close: () => pool[Symbol.dispose](),
  }
}

function openUndici(port: number): Client {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS, pipelining: 1 })
  return {
    async call() {
      const { body } = await pool.request({ path: '/', method: 'POST', headers: HEADERS, body: BODY })
      return (await body.bytes()).length
    },
    close: () => pool.close(),
  }
}

function openNodeHttp(port: number): Client {
  const agent = new NodeAgent({ keepAlive: true, maxSockets: CONNECTIONS })
  return {
    call: () =>
      new Promise((resolve, reject) => {
        const request = nodeRequest(
          { port, host: '127.0.0.1', method: 'POST', agent, headers: HEADERS },
          (response) => {
            const chunks: Buffer[] = []
            response.on('data', (chunk: Buffer) => chunks.push(chunk))
            response.on('end', () => resolve(Buffer.concat(chunks).length))
          },
        )
        request.on('error', reject).end(BODY)
      }),
    close: () => agent.destroy(),
  }
}

async function measure(client: Client, responseBytes: number): Promise<Figures> {
  let calls = 0
  const before = process.cpuUsage()
  const startMs = performance.now()
  const endMs = startMs + seconds * 1000
  const repeat = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const got = await client.call()
      if (got !== responseBytes) throw new Error(`${got} bytes instead of ${responseBytes}`)
      calls += 1
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, repeat))
  const { user, system } = process.cpuUsage(before)
  return {
    perSecond: Math.round(calls / ((performance.now() - startMs) / 1000)),
    cpuMicros: Number(((user + system) / calls).toFixed(1)),
  }
}

function medianOf(runs: readonly Figures[]): Figures {
  const middle = (of: (run: Figures) => number) => runs.map(of).toSorted((a, b) => a - b)[runs.length >> 1] ?? 0
  return { perSecond: middle((run) => run.perSecond), cpuMicros: middle((run) => run.cpuMicros) }
}

async function writeConfig(port: number, responseBytes: number): Promise<string> {
  const file = join(folder, `nginx-${responseBytes}.conf`)
  const body = join(folder, `body-${responseBytes}`)
  await writeFile(body, 'x'.repeat(responseBytes))
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  )
  await writeFile(
    file,
    `daemon off; worker_processes 1; user root; pid ${folder}/nginx.pid; error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 100000000; default_type application/json; open_file_cache max=4;
  ${paths.join(' ')}
  server { listen 127.0.0.1:${port}; location / { error_page 405 =200 /body-${responseBytes}; root ${folder}; try_files /body-${responseBytes} =404; } }
}
`,
  )
  return file
}

async function untilUp(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const isUp = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
    if (isUp) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`no response on port ${port}`)
}
