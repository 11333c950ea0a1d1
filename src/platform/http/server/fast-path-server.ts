import type { Socket } from 'node:net'
import type { Clock } from '../../../core/clock.ts'
import { createTurnWrites } from '../../net/write-batching.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { PlainConnection, type PlainHub } from './fast-path-connection.ts'
import { createPlainAnswers } from './fast-path-response.ts'
import type { PostHandler } from './post.ts'

export type PlainServerOptions = {
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
  readonly keepAliveMs: number
  readonly requestsPerConnectionMax: number
  /** What clients may send ahead of their turn, all connections together. */
  readonly pendingBytesMax?: number | undefined
}

const PENDING_BYTES_MAX = 64 * 1024 * 1024

export type PlainServerDeps = {
  readonly handler: PostHandler
  readonly clock: Clock
  readonly log: Logger
  isDraining(): boolean
  /** The complete parser, which goes on with a connection where plain reading ends. */
  handOver(socket: Socket): void
}

export type PlainServer = {
  take(socket: Socket): void
  /** Ends the connections on which nothing is under way. */
  closeIdle(): void
  /** Ends those whose time is over; called by the server's own clockwork. */
  sweep(): void
}

/** The quick way in: connections are read plainly as long as all that comes is plain. */
export function createPlainServer(options: PlainServerOptions, deps: PlainServerDeps): PlainServer {
  const { handler, clock, log } = deps
  const connections = new Set<PlainConnection>()
  const hub: PlainHub & { nowMs: number } = {
    ...options,
    pending: { bytes: 0, bytesMax: options.pendingBytesMax ?? PENDING_BYTES_MAX },
    handler,
    answers: createPlainAnswers({ ...options, headers: handler.headers }, clock),
    writes: createTurnWrites(),
    nowMs: clock.monotonicMs(),
    isDraining: deps.isDraining,
    handOver(connection, socket) {
      connections.delete(connection)
      deps.handOver(socket)
    },
    onGone: (connection) => void connections.delete(connection),
    onError: (error, requestId) => log.error({ err: error, request_id: requestId }, 'request handler failed'),
  }
  return {
    take: (socket) => void connections.add(new PlainConnection(socket, hub)),
    closeIdle() {
      for (const connection of connections) if (connection.isIdle) connection.close()
    },
    sweep() {
      hub.nowMs = clock.monotonicMs()
      for (const connection of connections) if (connection.deadlineAtMs <= hub.nowMs) connection.expire()
    },
  }
}
