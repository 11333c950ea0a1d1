import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type PinnedProcess, startPinned } from './support/pinned-process.ts'
import { startReferenceProxy } from './support/reference-proxy.ts'

/**
 * Geyser streams of 1 KB messages through the gateway, compared with nginx and haproxy from Debian in the same run: the proxy alone on one core, node and
 * clients on the other. Two JSON lines with all figures and the ratios: maximum throughput, and 20,000 messages per second.
 *   node bench/grpc.ts [seconds per figure, 5] [streams, 4] [sluice,nginx,haproxy]
 */
const [seconds = 5, streams = 4] = process.argv.slice(2, 4).map(Number)
const NAMES = ['sluice', 'nginx', 'haproxy'] as const
const wanted = process.argv[4]?.split(',') ?? NAMES
const PROXY_CORE = 0
const LOAD_CORE = 1
const PACED_PER_SECOND = 20_000

type Proxy = PinnedProcess & { readonly port: number; readonly token: string }
type Figures = { messagesPerSecond: number; cpuMicrosPerMessage: number; corePercent: number }
type All = { sluice?: Figures; nginx?: Figures; haproxy?: Figures }

const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-grpc-'))
try {
  report('grpc', await compare(0), 'at least 0.8 of haproxy')
  report('grpc-paced', await compare(PACED_PER_SECOND), 'at most 35 % of a core at 20,000 messages a second')
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function compare(perSecond: number): Promise<All> {
  const figures: All = {}
  for (const name of NAMES.filter((one) => wanted.includes(one))) {
    await using running = new AsyncDisposableStack()
    const script = join(import.meta.dirname, 'support/grpc-node-process.ts')
    const node = running.use(startPinned(LOAD_CORE, process.execPath, [script, String(perSecond)]))
    const { port } = JSON.parse(await node.firstLine()) as { port: number }
    const proxy = running.use(
      name === 'sluice'
        ? await startSluice(port)
        : await startReferenceProxy(name, {
            config: name === 'nginx' ? 'nginx-grpc.conf' : 'haproxy-grpc.cfg',
            folder,
            core: PROXY_CORE,
            upstreamPort: port,
          }),
    )
    figures[name] = await measure(proxy)
  }
  return figures
}

async function startSluice(port: number): Promise<Proxy> {
  const script = join(import.meta.dirname, 'support/stream-gateway-process.ts')
  const node = JSON.stringify({ grpc: `http://127.0.0.1:${port}` })
  const started = startPinned(PROXY_CORE, process.execPath, [...process.execArgv, script, node])
  const { grpc, token } = JSON.parse(await started.firstLine()) as { grpc: number; token: string }
  return { ...started, port: grpc, token }
}

async function measure(proxy: Proxy): Promise<Figures> {
  const script = join(import.meta.dirname, 'support/grpc-clients-process.ts')
  const args = [proxy.port, proxy.token, streams, seconds * 1000].map(String)
  await using load = startPinned(LOAD_CORE, process.execPath, [script, ...args])
  let before = 0
  for await (const line of createInterface({ input: load.child.stdout as NodeJS.ReadableStream })) {
    const message = JSON.parse(line) as 'begin' | { messages: number; seconds: number }
    if (message === 'begin') {
      before = proxy.cpuMicros()
      continue
    }
    const cpuMicros = proxy.cpuMicros() - before
    return {
      messagesPerSecond: Math.round(message.messages / message.seconds),
      cpuMicrosPerMessage: Number((cpuMicros / message.messages).toFixed(2)),
      corePercent: Number((cpuMicros / message.seconds / 10_000).toFixed(1)),
    }
  }
  throw new Error('the clients ended without a result')
}

function report(bench: string, figures: All, goal: string): void {
  const { sluice, nginx, haproxy } = figures
  const line = {
    bench,
    streams,
    ...figures,
    ratioNginx: ratio(sluice?.messagesPerSecond, nginx?.messagesPerSecond),
    ratioHaproxy: ratio(sluice?.messagesPerSecond, haproxy?.messagesPerSecond),
    cpuRatioNginx: ratio(nginx?.cpuMicrosPerMessage, sluice?.cpuMicrosPerMessage),
    cpuRatioHaproxy: ratio(haproxy?.cpuMicrosPerMessage, sluice?.cpuMicrosPerMessage),
    goal,
    node: process.version,
    arch: process.arch,
  }
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function ratio(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Number((a / b).toFixed(2))
}
