import { BUILT_IN_PLANS, type Plans } from '../../src/access/plan.ts'
import type { SubscriptionInput } from '../../src/access/provisioning/subscriptions.ts'
import type { Localnet } from '../../src/localnet/service.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import type { MetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import type { UpstreamsOptionsInput } from '../../src/upstreams/options.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'

const LISTENERS = ['rpc', 'ws', 'grpc'] as const
type Server = (typeof LISTENERS)[number]

/** One node of the chain, with a fault proxy for each of its endpoints. */
export type FaultyNode = AsyncDisposable & {
  readonly name: string
  readonly options: { readonly name: string; readonly rpc: string; readonly ws: string; readonly grpc: string }
} & Readonly<Record<Server, FaultProxy>>

export type FaultRig = AsyncDisposable & {
  readonly chain: Localnet
  readonly nodes: readonly FaultyNode[]
  readonly gateway: Gateway
  readonly token: string
  /** One JSON-RPC call through the gateway, with how long it took. */
  call(method?: string, params?: unknown[], id?: unknown): Promise<RigResponse>
  /** State of a node as the gateway sees it. */
  stateOf(name: string): string | undefined
}

export type RigResponse = {
  readonly status: number
  readonly text: string
  readonly ms: number
  readonly headers: Headers
}

export async function throughProxies(name: string, chain: Localnet): Promise<FaultyNode> {
  await using opening = new AsyncDisposableStack()
  const open = async (server: Server) =>
    opening.use(await startFaultProxy({ target: { host: chain[server].host, port: chain[server].port } }))
  const [rpc, ws, grpc] = [await open('rpc'), await open('ws'), await open('grpc')]
  const opened = opening.move()
  const at = (scheme: string, { port }: FaultProxy) => `${scheme}://127.0.0.1:${port}`
  return {
    name,
    rpc,
    ws,
    grpc,
    options: { name, rpc: at('http', rpc), ws: at('ws', ws), grpc: at('http', grpc) },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** A gateway over several nodes of one chain, each behind a fault proxy. */
export async function startFaultRig(
  names: readonly string[] = ['a', 'b'],
  given: { upstreams?: UpstreamsOptionsInput; plans?: Plans; subscription?: Partial<SubscriptionInput> } = {},
): Promise<FaultRig> {
  await using opening = new AsyncDisposableStack()
  const chain = opening.use(await startQuickLocalnet({ votes: { enabled: true } }))
  const nodes: FaultyNode[] = []
  for (const name of names) nodes.push(opening.use(await throughProxies(name, chain)))
  const options = nodes.map((node) => node.options)
  const gateway = opening.use(
    await startGateway(options, given.plans ?? BUILT_IN_PLANS, { upstreams: given.upstreams ?? {} }),
  )
  const { token } = await gateway.subscribe({ overrides: { unitsPerSecond: null }, ...given.subscription })
  await until('every node is known and has a WebSocket', () =>
    gateway.upstreams.status().every(({ slot, wsConnections }) => slot > 0 && wsConnections > 0),
  )
  const opened = opening.move()
  return {
    chain,
    nodes,
    gateway,
    token,
    call: (method = 'getBlockHeight', params = [], id = 1) => callGateway(gateway.url, token, { method, params, id }),
    stateOf: (name) => gateway.upstreams.status().find((node) => node.name === name)?.state,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

export async function callGateway(
  url: string,
  token: string,
  { method, params = [], id = 1 }: { method: string; params?: unknown; id?: unknown },
): Promise<RigResponse> {
  const fromMs = performance.now()
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-token': token },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
  })
  const text = await response.text()
  return { status: response.status, text, ms: performance.now() - fromMs, headers: response.headers }
}

/** One metric over all its labels. */
export async function sumOf(registry: MetricsRegistry, name: string): Promise<number> {
  const lines = (await registry.text())
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

/** The value below which this share of the figures lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? 0
}

/** Prints a measured figure, and asserts a loose bound for busy machines; the full check asserts the figure itself. */
export const onBusyMachine = (figure: number, loose: number) => (process.env['SLUICE_FULL'] === '1' ? figure : loose)
