import type { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { sendRaw } from '../http/server/reply.ts'

/** So many are answered at a time: each takes of what there is hardly any left. Others are reset at once. */
const RESPONDED_MAX = 8
/** To send a request and take the answer. */
const RESPONSE_MS = 500

/** Tells HTTP clients for whom there is no room to come again, in answer to whatever they ask. */
export function createOverloadResponse(clock: Clock): (socket: Socket, want: 'descriptors' | 'memory') => void {
  let open = 0
  return (socket, want) => {
    if (open >= RESPONDED_MAX) return void socket.resetAndDestroy()
    open += 1
    const timer = clock.setTimer(RESPONSE_MS, () => socket.destroy())
    socket.on('error', ignore)
    socket.once('close', () => {
      open -= 1
      timer.cancel()
    })
    // Not before the client has spoken: an answer to no question is none.
    socket.once('data', () => sendRaw(socket, 503, `{"error":"no-${want}"}`, { 'retry-after': '1' }))
    socket.once('end', () => socket.end())
  }
}

function ignore(): void {}
