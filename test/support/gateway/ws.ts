import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import type { Plans } from '../../../src/access/plan.ts'
import { createConnections } from '../../../src/gateway/account/connections.ts'
import { gatewayMetrics } from '../../../src/gateway/metrics.ts'
import { startWsServer, type WsServer, type WsServerOptions } from '../../../src/gateway/pubsub/ws.ts'
import { createForward } from '../../../src/gateway/rpc/forward.ts'
import { createHeldBytes, type HeldBytesOptions } from '../../../src/platform/http/held-bytes.ts'
import { createAuthTarpit } from '../../../src/platform/net/auth-tarpit.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { until } from '../../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { type NodeOptionsInput, parseUpstreamsOptions } from '../../../src/upstreams/options.ts'
import { startUpstreams, type Upstreams } from '../../../src/upstreams/service.ts'
import { type Gateway, startGateway } from './start.ts'

export type Refused = { readonly status: number; readonly headers: IncomingMessage['headers']; readonly body: string }

export type TestClient = {
  readonly socket: WebSocket
  /** Received texts that were not read yet. */
  readonly texts: string[]
  /** The next text. */
  text(): Promise<string>
  next(): Promise<never>
  /** Sends a request and returns the next text as JSON. */
  call(method: string, params?: unknown, id?: unknown): Promise<never>
  closed(): Promise<{ code: number; reason: string }>
}

export type WsGateway = AsyncDisposable & {
  readonly gateway: Gateway
  readonly server: WsServer
  readonly upstreams: Upstreams
  /** Metrics of the server and its upstreams. */
  readonly registry: MetricsRegistry
  readonly url: string
  /** With the token as `x-token`. */
  open(token: string, query?: string): Promise<TestClient>
  connect(query: string, headers: Record<string, string>): Promise<TestClient>
  /** The response to a handshake that must be refused. */
  refusal(query: string, headers: Record<string, string>): Promise<Refused>
}

/** Fake nodes have no new slots, which on a busy machine could count as a stall. */
const NO_STALL = { stallMs: 60_000 }

/** A real WebSocket server over real access and real upstreams. */
export async function startWsGateway(
  nodes: NodeOptionsInput[],
  options: Partial<WsServerOptions> = {},
  plans?: Plans,
  heldBytes: Partial<HeldBytesOptions> = {},
): Promise<WsGateway> {
  await using opening = new AsyncDisposableStack()
  const gateway = opening.use(await startGateway(nodes, plans))
  const deps = { log: silentLogger, clock: systemClock, random: secureRandom }
  const registry = opening.use(createMetricsRegistry())
  const upstreams = opening.use(
    await startUpstreams(parseUpstreamsOptions({ nodes, allowPrivate: true, health: NO_STALL }), {
      ...deps,
      registry,
      env: {},
    }),
  )
  const server = opening.use(
    await startWsServer(
      { listen: { host: '127.0.0.1', port: 0 }, ...options },
      {
        ...deps,
        access: gateway.access,
        upstreams,
        forward: createForward(upstreams),
        heldBytes: createHeldBytes({ bytesMax: 1e9, ownerBytesMax: 1e9, waitMs: 1000, ...heldBytes }, deps.clock),
        connections: createConnections(deps),
        tarpit: createAuthTarpit({ failuresMax: Number.POSITIVE_INFINITY }, deps.clock),
        metrics: gatewayMetrics(registry),
        onRefused() {},
        onNotAfter() {},
      },
    ),
  )
  const sockets: WebSocket[] = []
  opening.defer(() => {
    for (const socket of sockets) socket.terminate()
  })
  await until('a node has a WebSocket', () => upstreams.status().some(({ wsConnections }) => wsConnections > 0))
  const url = `ws://127.0.0.1:${server.address.port}/`
  const opened = opening.move()

  async function connect(query: string, headers: Record<string, string>): Promise<TestClient> {
    const socket = new WebSocket(url + query, { headers })
    sockets.push(socket)
    const client = clientOf(socket)
    await once(socket, 'open')
    return client
  }

  return {
    gateway,
    server,
    upstreams,
    registry,
    url,
    connect,
    open: (token, query = '') => connect(query, { 'x-token': token }),
    async refusal(query, headers) {
      const socket = new WebSocket(url + query, { headers })
      socket.on('error', () => {})
      const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
      let body = ''
      for await (const chunk of response) body += String(chunk)
      return { status: response.statusCode ?? 0, headers: response.headers, body }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function clientOf(socket: WebSocket): TestClient {
  const texts: string[] = []
  const closing = Promise.withResolvers<{ code: number; reason: string }>()
  let wake = () => {}
  let nextId = 1
  socket.on('error', () => {})
  socket.on('message', (data: Buffer) => {
    texts.push(data.toString())
    wake()
  })
  socket.on('close', (code, reason) => {
    closing.resolve({ code, reason: reason.toString() })
    wake()
  })
  async function text(): Promise<string> {
    while (texts.length === 0) {
      assert.equal(socket.readyState, WebSocket.OPEN, 'the connection ended while a text was waited for')
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      await promise
    }
    return texts.shift() as string
  }
  const next = async () => JSON.parse(await text()) as never
  return {
    socket,
    texts,
    text,
    next,
    call(method, params, id = nextId++) {
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }))
      return next()
    },
    closed: () => closing.promise,
  }
}
