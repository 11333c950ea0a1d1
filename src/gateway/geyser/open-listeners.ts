import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { ListenerMetrics } from '../../platform/net/listener-metrics.ts'
import type { SharedLimits } from '../limits.ts'
import type { GatewayMetrics } from '../metrics.ts'
import type { DecodedSource } from './decoded/source.ts'
import { createDecodedStreams, type DecodedStreamsOptions } from './decoded/streams.ts'
import { type GrpcServer, type GrpcServerDeps, startGeyserServer } from './grpc.ts'

export type GeyserListenersOptions = {
  readonly grpc: ListenerOptions & { readonly healthPerSecond: number }
  /** A listener for shredstream.ShredstreamProxy alone. */
  readonly entries?: ListenerOptions | undefined
  /** Bounds of the streams of decoded shreds. */
  readonly decoded?: DecodedStreamsOptions | undefined
}

export type GeyserListenersDeps = Omit<GrpcServerDeps, 'decoded' | keyof ListenerMetrics> & {
  readonly limits: SharedLimits
  readonly metrics: Pick<GatewayMetrics, 'grpc' | 'resumes' | 'decoded'>
  readonly listenerMetrics: (server: 'grpc' | 'entries') => ListenerMetrics
  /** Decoded shreds; without it the methods that serve them are forwarded to the nodes. */
  readonly decodedSource: DecodedSource | undefined
}

export type GeyserListeners = AsyncDisposable & {
  readonly grpc: GrpcServer
  /** Undefined where it is not configured. */
  readonly entries: GrpcServer | undefined
}

const DECODED_DEFAULTS: DecodedStreamsOptions = { filtersMax: 64, pendingBytesMax: 4 * 2 ** 20 }

/** The listeners of gRPC. Both serve the same streams of decoded shreds. */
export async function openGeyserListeners(
  options: GeyserListenersOptions,
  deps: GeyserListenersDeps,
): Promise<GeyserListeners> {
  const { clock, limits, metrics, listenerMetrics, decodedSource: source } = deps
  const { healthPerSecond, ...listen } = options.grpc
  await using opening = new AsyncDisposableStack()
  const decoded =
    source &&
    opening.use(createDecodedStreams(options.decoded ?? DECODED_DEFAULTS, { source, clock, meter: metrics.decoded }))
  const grpc = opening.use(
    await startGeyserServer(
      { listen: { ...listen, connectionCounts: limits.connections.grpc }, healthPerSecond },
      { ...deps, decoded, ...listenerMetrics('grpc') },
    ),
  )
  const entries =
    options.entries &&
    opening.use(
      await startGeyserServer(
        {
          listen: { ...options.entries, connectionCounts: limits.connections.entries },
          healthPerSecond,
          serves: 'entries',
        },
        { ...deps, decoded, ...listenerMetrics('entries') },
      ),
    )
  const opened = opening.move()
  return { grpc, entries, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}
