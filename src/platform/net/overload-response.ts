import type { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { sendRaw } from '../http/server/reply.ts'

/** Connections that get a response at a time, since each takes of the scarce resource. Others are reset. */
const OPEN_MAX = 8
/** How long a client has to send a request and read the response. */
const RESPONSE_MS = 500

/** Responds 503 with Retry-After to whatever an HTTP client requests when descriptors or memory run short. */
export function createOverloadResponse(clock: Clock): (socket: Socket, shortage: 'descriptors' | 'memory') => void {
  let open = 0
  return (socket, shortage) => {
    if (open >= OPEN_MAX) return void socket.resetAndDestroy()
    open += 1
    const timer = clock.setTimer(RESPONSE_MS, () => socket.destroy())
    socket.on('error', ignore)
    socket.once('close', () => {
      open -= 1
      timer.cancel()
    })
    // Not before the client has sent something: HTTP clients drop a response without a request.
    socket.once('data', () => sendRaw(socket, 503, `{"error":"no-${shortage}"}`, { 'retry-after': '1' }))
    socket.once('end', () => socket.end())
  }
}

function ignore(): void {}
