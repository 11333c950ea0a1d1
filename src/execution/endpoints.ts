import { isExecutionMetric } from '../contract/execution-routes.ts'
import { createClientAddress } from '../platform/net/client-address.ts'
import type { ConnectionCapsOptions } from '../platform/net/connection-caps.ts'
import { createCors } from './api/cors.ts'
import { startHttpEndpoint } from './api/http.ts'
import type { Views } from './api/views.ts'
import { createWorkBudget } from './api/work-budget.ts'
import type { ExecutionDeps, ExecutionSettings } from './deps.ts'
import { createHistoryDocument } from './history/document.ts'
import type { RpcReadings } from './metrics.ts'
import type { Blocks } from './rpc/blocks.ts'
import { createRpc } from './rpc/rpc.ts'
import type { Liveness } from './source/liveness.ts'
import type { Source } from './source/message.ts'
import type { StreamHub } from './stream/hub.ts'
import type { MessageHandler } from './stream/message-handler.ts'
import { createWsEndpoint } from './stream/ws.ts'

/** What the endpoints serve. */
export type ServedParts = {
  readonly hub: StreamHub
  readonly views: Views
  readonly blocks: Blocks
  readonly liveness: Liveness
  readonly messageHandler: Pick<MessageHandler, 'position'>
  readonly source: Source
}

export type Endpoints = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  /** Open WebSockets. */
  readonly connections: number
  readonly waitingFrames: number
  readonly rpcReadings: RpcReadings
  beginLameDuck(): void
  /** Closes WebSockets with 1012, finishes responses in flight, closes the listener. */
  drain(deadlineMs: number): Promise<void>
}

/** Connections for HTTP, besides WebSockets. */
const HTTP_CONNECTIONS_MAX = 10_000
const HTTP_CONNECTIONS_PER_ADDRESS_MAX = 200

/** The limits of the port: above what the limits of WebSockets allow, so that those decide. */
export function listenerCaps({
  connectionsMax,
  connectionsPerAddress,
}: Pick<ExecutionSettings, 'connectionsMax' | 'connectionsPerAddress'>): ConnectionCapsOptions {
  return {
    connectionsMax: connectionsMax + HTTP_CONNECTIONS_MAX,
    perAddressMax: connectionsPerAddress + HTTP_CONNECTIONS_PER_ADDRESS_MAX,
  }
}

/** WebSocket, JSON-RPC, REST, metrics and the page on one listener. All of them take their work from one budget per client. */
export async function startEndpoints(
  options: ExecutionSettings,
  deps: ExecutionDeps,
  parts: ServedParts,
): Promise<Endpoints> {
  const { clock, log, random, metrics, archive, history, refusals } = deps
  const { hub, views, blocks, liveness, messageHandler, source } = parts
  await using opening = new AsyncDisposableStack()
  const policy = { access: options.auth === 'token' ? deps.access : undefined, clock, docsUrl: deps.docsUrl }
  const clientAddress = createClientAddress(options.trustedProxies)
  const budget = createWorkBudget(options.work, clock)
  const ws = opening.use(
    createWsEndpoint(
      {
        connectionsMax: options.connectionsMax,
        connectionsPerAddress: options.connectionsPerAddress,
        connectionsPerSubscription: options.connectionsPerSubscription,
        pingMs: options.client.pingMs,
        pingsMissedMax: options.client.pingsMissedMax,
        isDeflateOffered: options.wsCompression,
        ...options.ws,
      },
      { ...policy, hub, rules: hub.options.rules, clientAddress, metrics, budget, random, refusals },
    ),
  )
  const rpc = createRpc(options.rpc, {
    clock,
    log,
    metrics,
    blocks,
    budget,
    chainId: () => views.chainId ?? archive?.chainId ?? null,
    clientVersion: `Sluice/v${deps.version}`,
  })
  const { isSimulated } = source
  const http = opening.use(
    await startHttpEndpoint(
      { listen: options.listen, caps: listenerCaps(options) },
      {
        ...policy,
        log,
        random,
        refusals,
        onRefused: deps.onRefused,
        onNotAfter: deps.onNotAfter,
        page: deps.page,
        documents: deps.documents,
        onUpgrade: ws.upgrade,
        isSimulated,
        history: createHistoryDocument({ clock, history, isSimulated: () => isSimulated }),
        lookups: { history, blocks, names: deps.names ?? new Map(), held: () => blocks.ranges },
        runWork: rpc.run,
        routes: {
          views,
          history,
          liveness,
          window: () => hub.window,
          connections: () => ws.connections,
          ringSeqno: () => messageHandler.position.seqno,
          held: () => blocks.ranges,
        },
        rpcPost: rpc.post,
        budget,
        clientAddress,
        cors: createCors(options.corsOrigins),
        onLimit: (limit) => metrics.limits.inc({ limit }),
        metricsText: async (format) => ({
          text: await deps.registry.text(format, isExecutionMetric),
          type: deps.registry.contentType(format),
        }),
      },
    ),
  )
  const opened = opening.move()
  return {
    address: http.address,
    get connections() {
      return ws.connections
    },
    get waitingFrames() {
      return ws.waitingFrames
    },
    rpcReadings: rpc.readings,
    beginLameDuck: () => http.beginLameDuck(),
    async drain(deadlineMs) {
      const endMs = clock.monotonicMs() + deadlineMs
      await ws.drain(deadlineMs)
      await http.drain(Math.max(0, endMs - clock.monotonicMs()))
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
