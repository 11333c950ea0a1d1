import type { Clock } from '../../core/clock.ts'
import { sendText } from '../../platform/http/server/reply.ts'
import { startHttpServer } from '../../platform/http/server/server.ts'
import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { createWsServer } from '../../platform/ws/server.ts'
import type { Chain } from '../chain/model.ts'
import { createRpcContext } from '../rpc/context.ts'
import type { Json } from '../rpc/json.ts'
import { clusterMethods } from '../rpc/methods/cluster.ts'
import { createAnnouncer } from './announce.ts'
import { servePubSub } from './connection.ts'
import { Registry, SUBSCRIPTIONS_MAX } from './registry.ts'

export type PubSubServerOptions = {
  readonly listen: ListenerOptions
  readonly subscriptionsMax?: number
  readonly connectionsMax?: number
  /** Bytes queued for one client before it is closed as too slow. */
  readonly pendingBytesMax?: number
  readonly pingMs?: number
  /** The two subscriptions a validator offers only under a flag. */
  readonly blockSubscribe?: boolean
  readonly voteSubscribe?: boolean
}

export type PubSubServerDeps = { readonly chain: Chain; readonly log: Logger; readonly clock: Clock }

export type PubSubServer = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  readonly subscriptions: number
  /** Closes every connection with 1012, so that clients reconnect, and closes the port. */
  drain(deadlineMs: number): Promise<void>
}

/** Agave's limit, of one frame and of one message. */
const MESSAGE_BYTES_MAX = 4096
/** A block as JSON takes megabytes; Agave queues 256 MiB for all its clients together. */
const PENDING_BYTES_MAX = 64 * 1024 * 1024
/** A client may take this long for one large backlog before it is closed. */
const STALL_MS = 30_000

/** PubSub: JSON-RPC over WebSocket with Agave's rules. */
export async function startPubSubServer(overrides: PubSubServerOptions, deps: PubSubServerDeps): Promise<PubSubServer> {
  const options = {
    subscriptionsMax: SUBSCRIPTIONS_MAX,
    pendingBytesMax: PENDING_BYTES_MAX,
    blockSubscribe: true,
    voteSubscribe: true,
    ...overrides,
  }
  const { chain, clock } = deps
  const log = deps.log.child({ part: 'localnet-pubsub' })
  const registry = new Registry(options.subscriptionsMax)
  const { announce, announcePast } = createAnnouncer({ chain, registry, nowMs: () => clock.nowMs() })

  const context = createRpcContext({ chain, clock, log })
  // The only method of the HTTP server that is also served here; it returns synchronously.
  const getVersion = (params: string | undefined) => clusterMethods['getVersion']?.(context, params) as Json

  await using opening = new AsyncDisposableStack()
  opening.defer(chain.subscribe(announce))
  const ws = createWsServer(
    {
      messageBytesMax: MESSAGE_BYTES_MAX,
      pendingBytesMax: options.pendingBytesMax,
      stallMs: STALL_MS,
      ...(options.connectionsMax === undefined ? {} : { connectionsMax: options.connectionsMax }),
      ...(options.pingMs === undefined ? {} : { pingMs: options.pingMs }),
    },
    {
      clock,
      onConnection: (connection) =>
        servePubSub(connection, {
          registry,
          announcePast,
          isEnabled: (kind) =>
            (kind !== 'block' || options.blockSubscribe) && (kind !== 'vote' || options.voteSubscribe),
          getVersion,
          log,
        }),
    },
  )
  const http = opening.use(
    await startHttpServer(
      { listen: options.listen },
      {
        log,
        clock,
        onRequest: (_, response) => sendText(response, 426, 'WebSocket only\n', { upgrade: 'websocket' }),
        onUpgrade: ws.upgrade,
      },
    ),
  )
  opening.use(ws)
  const opened = opening.move()

  return {
    address: http.address,
    get subscriptions() {
      return registry.size
    },
    async drain(deadlineMs) {
      await ws.drain(deadlineMs)
      await opened.disposeAsync()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
