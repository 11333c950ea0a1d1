import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { freePort } from '../test/support/machine/free-ports.ts'
import { holdConnections } from './support/held-connections.ts'
import { addedLatency } from './support/paced-load.ts'
import { type PinnedProcess, pinSelf, startPinned } from './support/pinned-process.ts'
import { BENCH_TOKEN } from './support/reference-proxy.ts'
import { runWrk } from './support/wrk.ts'

/**
 * JSON-RPC through the gateway, compared with nginx and haproxy from Debian and a node:http proxy, one after the other in one run: the proxy alone
 * on one core, load and node on the other. Each checks a token and a bucket. One JSON line per response size with all figures and ratios;
 * one for the added latency at half load, one for the memory at 1,000 connections.
 *   node bench/rpc.ts [seconds per figure, 5] [rounds, 3] [--bytes size of a response, repeatable] [--beside another checkout, repeatable]
 * With other checkouts, their gateways take turns with this one and nginx; the other proxies and the memory are left out.
 */
const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    bytes: { type: 'string', multiple: true, default: ['400', '50000'] },
    beside: { type: 'string', multiple: true, default: [] },
  },
})
const [seconds = 5, rounds = 3] = positionals.map(Number)
const PROXY_CORE = 0
const LOAD_CORE = 1
const CONNECTIONS = 64
/** Long enough for the JIT compiler, which shares the core. */
const WARM_UP_SECONDS = 3
/** Pairs of intervals over which the added latency is measured. */
const LATENCY_PAIRS_MIN = 12
const FILLER_BYTES = 1000
const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'getAccountInfo',
  params: ['4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA', { encoding: 'base64' }],
})

type Proxy = PinnedProcess & { readonly port: number; readonly token: string }
type Figures = { perSecond: number; cpuMicros: number }

type Settings = { folder: string; upstreamPort: number; response: string; filler: string }
type ProxyName = keyof typeof PROXIES
type Named = { readonly name: string; readonly figures: Figures; readonly runs: readonly Figures[] }

const PROXIES = {
  sluice: (settings: Settings) => startGateway(settings, join(import.meta.dirname, '..')),
  nginx: (settings: Settings) => startDebian('nginx', settings),
  haproxy: (settings: Settings) => startDebian('haproxy', settings),
  nodeHttp: startNodeHttp,
} satisfies Record<string, (settings: Settings) => Promise<Proxy>>

pinSelf(LOAD_CORE)
const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-rpc-'))
try {
  for (const bytes of given.bytes) await (given.beside.length > 0 ? compareCheckouts : compare)(Number(bytes))
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function compare(responseBytes: number): Promise<void> {
  await using running = new AsyncDisposableStack()
  const settings = await startNode(responseBytes, running)
  const proxies = new Map<string, Proxy>()
  for (const [name, start] of Object.entries(PROXIES)) proxies.set(name, running.use(await start(settings)))
  const figures = Object.fromEntries(
    (await measureByTurns(proxies)).map(({ name, figures }) => [name, figures]),
  ) as Record<ProxyName, Figures>
  const { sluice, nginx, haproxy, nodeHttp } = figures
  report({
    bench: 'rpc',
    responseBytes,
    ...figures,
    ratioNginx: ratio(sluice.perSecond, nginx.perSecond),
    ratioHaproxy: ratio(sluice.perSecond, haproxy.perSecond),
    ratioNodeHttp: ratio(sluice.perSecond, nodeHttp.perSecond),
    cpuRatioNginx: ratio(nginx.cpuMicros, sluice.cpuMicros),
    cpuRatioNodeHttp: ratio(nodeHttp.cpuMicros, sluice.cpuMicros),
    goal: 'at least 0.40 of nginx and 3 of node:http with 400 B responses',
  })
  if (responseBytes > 1000) return
  const gateway = proxies.get('sluice') as Proxy
  const latency = await latencyAtHalfLoad(gateway, settings, sluice)
  report({ bench: 'rpc-latency', ...latency, goal: 'p50 at most 0.3 ms, p99 at most 2 ms' })
  await using held = await holdConnections({ port: gateway.port, token: gateway.token, body: CALL, connections: 1000 })
  report({
    bench: 'rpc-memory',
    connections: held.open,
    rssMb: Math.round(gateway.rssBytes() / 1e6),
    goal: 'at most 150 MB at 1,000 connections',
  })
}

/** This gateway, those of the other checkouts and nginx, by turns in one run. */
async function compareCheckouts(responseBytes: number): Promise<void> {
  await using running = new AsyncDisposableStack()
  const settings = await startNode(responseBytes, running)
  const gateways = new Map<string, Proxy>([['sluice', running.use(await PROXIES.sluice(settings))]])
  for (const checkout of given.beside) gateways.set(checkout, running.use(await startGateway(settings, checkout)))
  const nginx = running.use(await PROXIES.nginx(settings))
  const all = await measureByTurns(new Map([...gateways, ['nginx', nginx]]))
  const nginxMicros = (all.at(-1) as Named).figures.cpuMicros
  for (const { name, figures, runs } of all) {
    const cpuRatioNginx = ratio(nginxMicros, figures.cpuMicros)
    report({
      bench: 'rpc-beside',
      name,
      responseBytes,
      ...figures,
      cpuRatioNginx,
      cpuRuns: runs.map((run) => run.cpuMicros),
    })
  }
  const [sluice] = all as [Named]
  for (const [name, gateway] of gateways) {
    const latency = await latencyAtHalfLoad(gateway, settings, sluice.figures)
    report({ bench: 'rpc-latency', name, responseBytes, ...latency })
  }
}

/** The node behind the proxies, with the settings to start them. */
async function startNode(responseBytes: number, running: AsyncDisposableStack): Promise<Settings> {
  const upstreamPort = await freePort()
  const settings = { folder, upstreamPort, response: responseOf(responseBytes), filler: 'x'.repeat(FILLER_BYTES) }
  running.use(startPinned(LOAD_CORE, 'nginx', ['-c', await configure('nginx-upstream.conf', settings)]))
  await responses(upstreamPort)
  return settings
}

/** The order is reversed in every second round: who comes first has another machine than who comes last. */
async function measureByTurns(proxies: ReadonlyMap<string, Proxy>): Promise<Named[]> {
  const all = new Map<string, Figures[]>([...proxies.keys()].map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? [...proxies] : [...proxies].reverse()
    for (const [name, proxy] of order) all.get(name)?.push(await measure(proxy))
  }
  return [...all].map(([name, runs]) => ({ name, figures: medianOf(runs), runs }))
}

async function latencyAtHalfLoad(gateway: Proxy, { upstreamPort }: Settings, full: Figures) {
  const perSecond = Math.round(full.perSecond / 2)
  const paced = { token: gateway.token, body: CALL, connections: CONNECTIONS }
  const pairs = Math.max(LATENCY_PAIRS_MIN, Math.round(seconds))
  const latency = await addedLatency(
    { ...paced, port: upstreamPort },
    { ...paced, port: gateway.port },
    { perSecond, pairs },
  )
  return { perSecond, ...latency }
}

async function startGateway({ upstreamPort }: Settings, checkout: string): Promise<Proxy> {
  const script = join(checkout, 'bench/support/rpc-gateway-process.ts')
  const started = startPinned(PROXY_CORE, process.execPath, [script, `http://127.0.0.1:${upstreamPort}`])
  const { port, token } = JSON.parse(await started.firstLine()) as { port: number; token: string }
  return { ...started, port, token }
}

async function startDebian(program: 'nginx' | 'haproxy', settings: Settings): Promise<Proxy> {
  const port = await freePort()
  await writeFile(join(folder, 'tokens.map'), `${BENCH_TOKEN} 1\n`)
  const file = await configure(program === 'nginx' ? 'nginx-rpc.conf' : 'haproxy-rpc.cfg', {
    ...settings,
    port,
    token: BENCH_TOKEN,
  })
  const started = startPinned(PROXY_CORE, program, program === 'nginx' ? ['-c', file] : ['-db', '-f', file])
  await responses(port)
  return { ...started, port, token: BENCH_TOKEN }
}

async function startNodeHttp({ upstreamPort }: Settings): Promise<Proxy> {
  const port = await freePort()
  const script = join(import.meta.dirname, 'reference/node-http-proxy.ts')
  const started = startPinned(PROXY_CORE, process.execPath, [script, String(port), String(upstreamPort), BENCH_TOKEN])
  await responses(port)
  return { ...started, port, token: BENCH_TOKEN }
}

async function measure(proxy: Proxy): Promise<Figures> {
  const { port, token } = proxy
  const load = { core: LOAD_CORE, port, token, body: CALL, connections: CONNECTIONS }
  await runWrk({ ...load, seconds: WARM_UP_SECONDS })
  const before = proxy.cpuMicros()
  const { perSecond, requests, failed } = await runWrk({ ...load, seconds })
  if (failed > 0) throw new Error(`${failed} of ${requests} calls failed`)
  return { perSecond: Math.round(perSecond), cpuMicros: Number(((proxy.cpuMicros() - before) / requests).toFixed(1)) }
}

/** A node's response of this many bytes as nginx configuration, which limits a string to 4096 bytes, so the filler is split. */
function responseOf(bytes: number): string {
  const frame = '{"jsonrpc":"2.0","result":{"context":{"slot":1000},"value":"@"},"id":1}'
  const fillerBytes = bytes - frame.length + 1
  return frame.replace('@', '${filler}'.repeat(fillerBytes / FILLER_BYTES) + 'x'.repeat(fillerBytes % FILLER_BYTES))
}

async function configure(name: string, values: Readonly<Record<string, string | number>>): Promise<string> {
  const text = await readFile(join(import.meta.dirname, 'reference', name), 'utf8')
  const file = join(folder, name)
  await writeFile(
    file,
    text.replaceAll(/\{\{(\w+)\}\}/g, (_all, key: string) => String(values[key])),
  )
  return file
}

async function responses(port: number): Promise<void> {
  const endMs = performance.now() + 10_000
  while (performance.now() < endMs) {
    const isUp = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' }).then(
      () => true,
      () => false,
    )
    if (isUp) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`no response on port ${port}`)
}

function medianOf(runs: readonly Figures[]): Figures {
  const middle = (of: (run: Figures) => number) => runs.map(of).toSorted((a, b) => a - b)[runs.length >> 1] as number
  return { perSecond: middle((run) => run.perSecond), cpuMicros: middle((run) => run.cpuMicros) }
}

function ratio(a: number, b: number): number {
  return Number((a / b).toFixed(2))
}

function report(line: object): void {
  process.stdout.write(`${JSON.stringify({ ...line, node: process.version, arch: process.arch })}\n`)
}
