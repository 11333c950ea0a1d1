import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { compileC } from './support/compile-c.ts'
import { type PinnedProcess, startPinned } from './support/pinned-process.ts'
import { startReferenceProxy } from './support/reference-proxy.ts'
import { startWsReaders } from './support/ws-readers.ts'

/**
 * One stream of messages to many WebSocket clients through the gateway, compared with nginx and haproxy from Debian in the same run: the proxy alone
 * on one core, node and clients on the other. The other proxies have one connection to the node per client, so the node does the fan-out; the
 * gateway has one subscription for all. The clients are a small C program, which adds little to the measured age. One JSON line with all
 * figures and the ratios.
 *   node bench/ws.ts [seconds per figure, 5] [clients, 2000] [messages a second, 200] [sluice,nginx,haproxy]
 */
const [seconds = 5, clients = 2000, perSecond = 200] = process.argv.slice(2, 5).map(Number)
const NAMES = ['sluice', 'nginx', 'haproxy'] as const
const wanted = process.argv[5]?.split(',') ?? NAMES
const PROXY_CORE = 0
const LOAD_CORE = 1
const FRAME_BYTES = 600
const WARM_MS = 1000
const SUBSCRIBE = '{"jsonrpc":"2.0","id":1,"method":"logsSubscribe","params":["all"]}'

type Proxy = PinnedProcess & { readonly port: number; readonly token: string }
type Figures = {
  deliveriesPerSecond: number
  cpuMicrosPerDelivery: number
  ageP50Ms: number
  ageP99Ms: number
  /** CPU use of the clients. */
  readerCorePercent: number
}

const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-ws-'))
try {
  await run(compileC(folder, 'ws-readers'))
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function run(readers: string): Promise<void> {
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
    figures[name] = await measure(proxy, { readers, nodePort: port })
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

async function measure(proxy: Proxy, { readers, nodePort }: { readers: string; nodePort: number }): Promise<Figures> {
  await using load = await startWsReaders({
    program: readers,
    core: LOAD_CORE,
    port: proxy.port,
    path: '/',
    token: proxy.token,
    subscribe: SUBSCRIBE,
    clients,
    measureMs: seconds * 1000,
  })
  await fetch(`http://127.0.0.1:${nodePort}/start`).then((response) => response.text())
  await pause(WARM_MS)
  const before = proxy.cpuMicros()
  const counted = await load.measure()
  return {
    deliveriesPerSecond: Math.round(counted.messages / counted.seconds),
    cpuMicrosPerDelivery: Number(((proxy.cpuMicros() - before) / counted.messages).toFixed(2)),
    ageP50Ms: counted.ageP50Ms,
    ageP99Ms: counted.ageP99Ms,
    readerCorePercent: Math.round(counted.cpuMs / counted.seconds / 10),
  }
}

function ratio(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Number((a / b).toFixed(2))
}
