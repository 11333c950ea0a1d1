import type { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { sendRaw } from '../http/server/reply.ts'
import type { ConnectionRefusal } from './connection-caps.ts'

/** Connections that get a response at a time, since each takes of the scarce resource. Others are reset. */
const OPEN_MAX = 8
/** How long a client has to send a request and read the response. */
const RESPONSE_MS = 500
/** The same for a client at a limit, which may have to complete a TLS handshake first. */
const LIMIT_RESPONSE_MS = 2000

/** Why a connection is refused: the machine runs short of something, or a limit of connections with its size. */
export type RefusedConnection = 'descriptors' | 'memory' | { readonly reason: ConnectionRefusal; readonly size: number }

/** Responds on the connection, or on what `secure` makes of it where the port speaks TLS, and closes it. */
export type OverloadResponse = (
  connection: Socket,
  refused: RefusedConnection,
  secure?: (connection: Socket) => Socket,
) => void

type HttpRefusal = { readonly status: number; readonly body: object; readonly retryAfter: string }

/** Responds to whatever an HTTP client requests on a connection that is refused: 503 for a shortage, 429 with the limit of its address. */
export function createOverloadResponse(clock: Clock): OverloadResponse {
  let open = 0
  return (connection, refused, secure) => {
    if (open >= OPEN_MAX) return void connection.resetAndDestroy()
    open += 1
    const socket = secure?.(connection) ?? connection
    const timer = clock.setTimer(typeof refused === 'string' ? RESPONSE_MS : LIMIT_RESPONSE_MS, () => socket.destroy())
    socket.on('error', ignore)
    socket.once('close', () => {
      open -= 1
      timer.cancel()
    })
    // Not before the client has sent something: HTTP clients drop a response without a request.
    socket.once('data', () => {
      const { status, body, retryAfter } = responseTo(refused)
      sendRaw(socket, status, JSON.stringify(body), { 'retry-after': retryAfter })
    })
    socket.once('end', () => socket.end())
  }
}

const ADDRESS_LIMITS = {
  'address-connections': { limit: 'addressConnectionsMax', noun: 'open connections', retryAfter: '5' },
  'address-rate': { limit: 'addressConnectionsPerSecond', noun: 'new connections per second', retryAfter: '1' },
} as const

const SHORTAGES = {
  descriptors: 'the server has no free file descriptors; retry',
  memory: 'the server is at its memory limit; retry',
} as const

function responseTo(refused: RefusedConnection): HttpRefusal {
  if (typeof refused === 'string')
    return { status: 503, body: { error: `no-${refused}`, message: SHORTAGES[refused] }, retryAfter: '1' }
  const { reason, size } = refused
  if (reason === 'connections') {
    const message = `limit reached: ${size} open connections of this port`
    return { status: 503, body: { error: 'overloaded', message, limit: 'connections', size }, retryAfter: '5' }
  }
  const { limit, noun, retryAfter } = ADDRESS_LIMITS[reason]
  const message = `limit reached: ${size} ${noun} of one address`
  return { status: 429, body: { error: 'rate-limited', message, limit, size }, retryAfter }
}

function ignore(): void {}
