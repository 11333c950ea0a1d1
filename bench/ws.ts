import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type PinnedProcess, startPinned } from './support/pinned-process.ts'
import { startReferenceProxy } from './support/reference-proxy.ts'

/**
 * One stream of messages to many WebSocket clients through the gateway, beside nginx and haproxy from Debian in the same run: the proxy alone on
 * one core, node and clients on the other. The others have one connection to the node for each client, so there the node does the fan-out; the
 * gateway has one subscription for all. One JSON line with all figures and the ratios.
 *   node bench/ws.ts [seconds per figure, 5] [clients, 2000] [messages a second, 200] [sluice,nginx,haproxy]
 */
const [seconds = 5, clients = 2000, perSecond = 200] = process.argv.slice(2, 5).map(Number)
const NAMES = ['sluice', 'nginx', 'haproxy'] as const
const wanted = process.argv[5]?.split(',') ?? NAMES
const PROXY_CORE = 0
const LOAD_CORE = 1
const FRAME_BYTES = 600

type Proxy = PinnedProcess & { readonly port: number; readonly token: string }
type Counted = { messages: number; seconds: number; ageP50Ms: number; ageP99Ms: number }
type Figures = { deliveriesPerSecond: number; cpuMicrosPerDelivery: number; ageP50Ms: number; ageP99Ms: number }

const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-ws-'))
try {
  await run()
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function run(): Promise<void> {
  const figures: { sluice?: Figures; nginx?: Figures; haproxy?: Figures } = {}
  for (const name of NAMES.filter((one) => wanted.includes(one))) {
    await using running = new AsyncDisposableStack()
    const script = join(import.meta.dirname, 'support/ws-node-process.ts')
    const node = running.use(startPinned(LOAD_CORE, process.execPath, [script, String(perSecond), String(FRAME_BYTES)]))
    const { port } = JSON.parse(await node.firstLine()) as { port: number }
    const proxy = running.use(
      name === 'sluice'
        ? await startSluice(port)
        : await startReferenceProxy(name, {
            config: name === 'nginx' ? 'nginx-ws.conf' : 'haproxy-ws.cfg',
            folder,
            core: PROXY_CORE,
            upstreamPort: port,
          }),
    )
    figures[name] = await measure(proxy, port)
  }
  const { sluice, nginx, haproxy } = figures
  const line = {
    bench: 'ws',
    clients,
    perSecond,
    wantedPerSecond: clients * perSecond,
    frameBytes: FRAME_BYTES,
    ...figures,
    ratioNginx: ratio(sluice?.deliveriesPerSecond, nginx?.deliveriesPerSecond),
    ratioHaproxy: ratio(sluice?.deliveriesPerSecond, haproxy?.deliveriesPerSecond),
    cpuRatioNginx: ratio(nginx?.cpuMicrosPerDelivery, sluice?.cpuMicrosPerDelivery),
    cpuRatioHaproxy: ratio(haproxy?.cpuMicrosPerDelivery, sluice?.cpuMicrosPerDelivery),
    goal: 'at least 400,000 deliveries a second to 2,000 clients, p99 of the age at most 50 ms',
    node: process.version,
    arch: process.arch,
  }
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

async function startSluice(port: number): Promise<Proxy> {
  const script = join(import.meta.dirname, 'support/stream-gateway-process.ts')
  const node = JSON.stringify({ rpc: `http://127.0.0.1:${port}`, ws: `ws://127.0.0.1:${port}` })
  const started = startPinned(PROXY_CORE, process.execPath, [...process.execArgv, script, node])
  const { ws, token } = JSON.parse(await started.firstLine()) as { ws: number; token: string }
  return { ...started, port: ws, token }
}

async function measure(proxy: Proxy, nodePort: number): Promise<Figures> {
  const script = join(import.meta.dirname, 'support/ws-clients-process.ts')
  const args = [proxy.port, proxy.token, clients, seconds * 1000, nodePort].map(String)
  await using load = startPinned(LOAD_CORE, process.execPath, [script, ...args])
  let before = 0
  for await (const line of createInterface({ input: load.child.stdout as NodeJS.ReadableStream })) {
    const said = JSON.parse(line) as 'begin' | Counted
    if (said === 'begin') {
      before = proxy.cpuMicros()
      continue
    }
    return {
      deliveriesPerSecond: Math.round(said.messages / said.seconds),
      cpuMicrosPerDelivery: Number(((proxy.cpuMicros() - before) / said.messages).toFixed(2)),
      ageP50Ms: said.ageP50Ms,
      ageP99Ms: said.ageP99Ms,
    }
  }
  throw new Error('the clients ended without a figure')
}

function ratio(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Number((a / b).toFixed(2))
}
