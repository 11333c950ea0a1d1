import type { Socket } from 'node:net'
import type { Clock } from '../../../core/clock.ts'
import { createWriteBatching } from '../../net/write-batching.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { FastPathConnection, type FastPathContext } from './fast-path-connection.ts'
import { createFastPathResponses } from './fast-path-response.ts'
import type { PostHandler } from './post.ts'

export type FastPathServerOptions = {
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveMs: number
  readonly requestsPerConnectionMax: number
  /** Bytes that clients may pipeline, all connections together. */
  readonly pendingBytesMax?: number | undefined
}

const PENDING_BYTES_MAX = 64 * 1024 * 1024

export type FastPathServerDeps = {
  readonly handler: PostHandler
  readonly clock: Clock
  readonly log: Logger
  isDraining(): boolean
  /** Gives a connection to the complete parser. */
  handOver(socket: Socket): void
}

export type FastPathServer = {
  handleConnection(socket: Socket): void
  /** Closes the connections without a request under way. */
  closeIdle(): void
  /** Closes those past their deadline; called once a second by the server. */
  sweep(): void
}

/** The fast path: its connections stay on it as long as every request has the form of `FastPathHead`. */
export function createFastPathServer(options: FastPathServerOptions, deps: FastPathServerDeps): FastPathServer {
  const { handler, clock, log } = deps
  const connections = new Set<FastPathConnection>()
  const context: FastPathContext & { nowMs: number } = {
    ...options,
    pending: { bytes: 0, bytesMax: options.pendingBytesMax ?? PENDING_BYTES_MAX },
    handler,
    responses: createFastPathResponses({ ...options, headers: handler.headers }, clock),
    writes: createWriteBatching(),
    nowMs: clock.monotonicMs(),
    isDraining: deps.isDraining,
    handOver(connection, socket) {
      connections.delete(connection)
      deps.handOver(socket)
    },
    onClosed: (connection) => void connections.delete(connection),
    onError: (error, requestId) => log.error({ err: error, request_id: requestId }, 'request handler failed'),
  }
  return {
    handleConnection: (socket) => void connections.add(new FastPathConnection(socket, context)),
    closeIdle() {
      for (const connection of connections) if (connection.isIdle) connection.close()
    },
    sweep() {
      context.nowMs = clock.monotonicMs()
      for (const connection of connections) if (connection.deadlineAtMs <= context.nowMs) connection.expire()
    },
  }
}
