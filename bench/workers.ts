import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../test/support/machine/free-ports.ts'
import { compileC } from './support/compile-c.ts'
import { type PinnedProcess, startPinned } from './support/pinned-process.ts'
import { startReferenceProxy } from './support/reference-proxy.ts'
import { startSluiceProcess } from './support/sluice-process.ts'
import { runWrk } from './support/wrk.ts'
import { startWsReaders } from './support/ws-readers.ts'

/**
 * The gateway with one and two threads beside nginx with one and two workers, by turns in one run. Proxy, node and load share the cores of the machine, so
 * the figure to compare is the CPU time per call, delivery or message; the rate is reported. One JSON line per interface with the medians and ratios,
 * and one with the memory of further threads at rest.
 * The load is measured in three ways. One load for all: two threads share what one serves, so each reads half as much at a time. The same load for each
 * (`each`): two threads get twice the load of one, which shows what a call costs beside another thread and nothing else. Streams also as fast as they
 * are read (`full`), where both have more to read than they read at once.
 *   node bench/workers.ts [seconds per figure, 5] [rounds, 3] [rpc,ws,grpc,rpc-each,ws-each,grpc-each,ws-full,grpc-full,memory]
 */
const [seconds = 5, rounds = 3] = process.argv.slice(2, 4).map(Number)
const wanted = process.argv[4]?.split(',') ?? [
  'rpc',
  'ws',
  'grpc',
  'rpc-each',
  'ws-each',
  'grpc-each',
  'ws-full',
  'grpc-full',
  'memory',
]
const ALL_CORES = '0-1'
/** Two threads compile twice, which counts as CPU time of the process. */
const WARM_UP_SECONDS = 10
const RPC_CONNECTIONS = 64
const WS_CLIENTS = 1000
const WS_PER_SECOND = 100
const GRPC_STREAMS = 8
const GRPC_PER_SECOND = 20_000
const SUBSCRIBE = '{"jsonrpc":"2.0","id":1,"method":"logsSubscribe","params":["all"]}'
const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'getAccountInfo',
  params: ['4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA', { encoding: 'base64' }],
})
const REST_MS = 15_000
const MEMORY_WORKERS = [1, 2, 4]

type Proxy = PinnedProcess & { readonly port: number; readonly token: string }
type Figures = { readonly perSecond: number; readonly cpuMicros: number }
type Interface = 'rpc' | 'ws' | 'grpc'
/** `all`: the whole load for any number of threads. `each`: half of it for each thread. `full`: streams without a limit of their rate. */
type LoadMode = 'all' | 'each' | 'full'
/** The proxies that are compared: which program, with how many threads or processes. */
const PROXIES = [
  { name: 'sluice1', program: 'sluice', workers: 1 },
  { name: 'sluice2', program: 'sluice', workers: 2 },
  { name: 'nginx1', program: 'nginx', workers: 1 },
  { name: 'nginx2', program: 'nginx', workers: 2 },
] as const
type ProxyName = (typeof PROXIES)[number]['name']

async function compare(kind: Interface, mode: LoadMode): Promise<void> {
  const runs = new Map<ProxyName, Figures[]>(PROXIES.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const { name, program, workers } of PROXIES) {
      await using running = new AsyncDisposableStack()
      const share = mode === 'each' ? workers / 2 : 1
      const node = running.use(await startNode(kind, mode === 'full' ? 0 : GRPC_PER_SECOND * share))
      const proxy = running.use(
        program === 'sluice'
          ? await startSluice(kind, node.port, workers)
          : await startReferenceProxy('nginx', {
              config: `nginx-${kind}.conf`,
              folder,
              core: ALL_CORES,
              upstreamPort: node.port,
              workers,
            }),
      )
      runs.get(name)?.push(await MEASURES[kind](proxy, node.port, share))
    }
  }
  const figures = Object.fromEntries([...runs].map(([name, all]) => [name, medianOf(all)])) as Record<
    ProxyName,
    Figures
  >
  const { sluice1, sluice2, nginx1, nginx2 } = figures
  report({
    bench: `workers-${kind}${mode === 'all' ? '' : `-${mode}`}`,
    ...figures,
    cpuTwoToOne: ratio(sluice2.cpuMicros, sluice1.cpuMicros),
    cpuToNginxOne: ratio(sluice1.cpuMicros, nginx1.cpuMicros),
    cpuToNginxTwo: ratio(sluice2.cpuMicros, nginx2.cpuMicros),
    goal: 'CPU per call with two threads at most 1.10 of one, and at most 2.3 of nginx with two workers',
  })
}

/** The node behind the proxy: nginx with a fixed response, or a process that sends a stream. */
async function startNode(
  kind: Interface,
  grpcPerSecond = GRPC_PER_SECOND,
): Promise<PinnedProcess & { readonly port: number }> {
  if (kind === 'rpc') {
    const port = await freePort()
    const filler = 'x'.repeat(320)
    const response = '{"jsonrpc":"2.0","result":{"context":{"slot":1000},"value":"${filler}"},"id":1}'
    return startReferenceProxy('nginx', {
      config: 'nginx-upstream.conf',
      folder,
      core: ALL_CORES,
      port,
      upstreamPort: port,
      values: { filler, response },
    })
  }
  const script = join(import.meta.dirname, `support/${kind}-node-process.ts`)
  const args = kind === 'ws' ? [grpcPerSecond === 0 ? 0 : WS_PER_SECOND, 600] : [grpcPerSecond]
  const node = startPinned(ALL_CORES, process.execPath, [script, ...args.map(String)])
  const { port } = JSON.parse(await node.firstLine()) as { port: number }
  return { ...node, port }
}

async function startSluice(kind: Interface, nodePort: number, workers: number): Promise<Proxy> {
  const process = await startSluiceProcess({
    command: 'gateway',
    folder: join(folder, `sluice-${++started}`),
    cores: ALL_CORES,
    config: configOf(workers, nodePort, kind),
  })
  return { ...process, port: process.port(kind), token: process.token }
}

function configOf(workers: number, nodePort: number, kind: Interface): string {
  const scheme = kind === 'ws' ? 'ws' : 'http'
  return [
    '[metrics]\nlisten = "127.0.0.1:0"',
    `[bundle]\nworkers = ${workers}`,
    ...['rpc', 'ws', 'grpc'].map((name) => `[bundle.${name}]\nlisten = "127.0.0.1:0"`),
    // The nodes of this bench respond to every call alike, also to probes.
    '[upstreams]\nhealth = { probeMs = 60000 }',
    `[[upstreams.nodes]]\nname = "bench"\nallowPrivate = true\n${kind} = "${scheme}://127.0.0.1:${nodePort}"`,
    kind === 'ws' ? `rpc = "http://127.0.0.1:${nodePort}"` : '',
  ].join('\n')
}

const MEASURES: Readonly<Record<Interface, (proxy: Proxy, nodePort: number, share: number) => Promise<Figures>>> = {
  async rpc(proxy, _nodePort, share) {
    const { port, token } = proxy
    const load = { core: ALL_CORES, port, token, body: CALL, connections: RPC_CONNECTIONS * share }
    await runWrk({ ...load, seconds: WARM_UP_SECONDS })
    const before = proxy.cpuMicros()
    const { perSecond, requests, failed } = await runWrk({ ...load, seconds })
    if (failed > 0) throw new Error(`${failed} of ${requests} calls failed`)
    return figuresOf(perSecond, proxy.cpuMicros() - before, requests)
  },
  async ws(proxy, nodePort, share) {
    await using load = await startWsReaders({
      program: compileC(folder, 'ws-readers'),
      core: ALL_CORES,
      port: proxy.port,
      path: '/',
      token: proxy.token,
      subscribe: SUBSCRIBE,
      clients: WS_CLIENTS * share,
      measureMs: seconds * 1000,
    })
    await fetch(`http://127.0.0.1:${nodePort}/start`).then((response) => response.text())
    await pause(WARM_UP_SECONDS * 1000)
    const before = proxy.cpuMicros()
    const { messages, seconds: took } = await load.measure()
    return figuresOf(messages / took, proxy.cpuMicros() - before, messages)
  },
  async grpc(proxy, _nodePort, share) {
    const script = join(import.meta.dirname, 'support/grpc-clients-process.ts')
    const args = [proxy.port, proxy.token, GRPC_STREAMS * share, seconds * 1000, WARM_UP_SECONDS * 1000].map(String)
    await using load = startPinned(ALL_CORES, process.execPath, [script, ...args])
    let before = 0
    for await (const line of createInterface({ input: load.child.stdout as NodeJS.ReadableStream })) {
      const message = JSON.parse(line) as 'begin' | { messages: number; seconds: number }
      if (message === 'begin') before = proxy.cpuMicros()
      else return figuresOf(message.messages / message.seconds, proxy.cpuMicros() - before, message.messages)
    }
    throw new Error('the clients ended without a result')
  },
}

/** Resident memory at rest by number of gateway threads. */
async function measureMemory(): Promise<void> {
  const rssMb: Record<number, number> = {}
  for (const workers of MEMORY_WORKERS) {
    await using node = await startNode('rpc')
    await using proxy = await startSluice('rpc', node.port, workers)
    await pause(REST_MS)
    rssMb[workers] = Math.round(proxy.rssBytes() / 1e6)
  }
  const [few = 1, , many = 4] = MEMORY_WORKERS
  report({
    bench: 'workers-memory',
    rssMb,
    perWorkerMb: Math.round(((rssMb[many] ?? 0) - (rssMb[few] ?? 0)) / (many - few)),
    goal: 'at most 40 MB for each further thread',
  })
}

function figuresOf(perSecond: number, cpuMicros: number, count: number): Figures {
  return { perSecond: Math.round(perSecond), cpuMicros: Number((cpuMicros / count).toFixed(2)) }
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

const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-workers-'))
let started = 0
try {
  for (const kind of ['rpc', 'ws', 'grpc'] as const) if (wanted.includes(kind)) await compare(kind, 'all')
  for (const kind of ['rpc', 'ws', 'grpc'] as const) if (wanted.includes(`${kind}-each`)) await compare(kind, 'each')
  for (const kind of ['ws', 'grpc'] as const) if (wanted.includes(`${kind}-full`)) await compare(kind, 'full')
  if (wanted.includes('memory')) await measureMemory()
} finally {
  await rm(folder, { recursive: true, force: true })
}
