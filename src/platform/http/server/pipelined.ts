import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Writes `100 Continue` after the responses to earlier requests of the connection. The runtime writes it at once, for a pipelined request into the
 * middle of another response. A response that has begun by then needs no interim one.
 */
export function continueInTurn(http: Server, isRefused: (request: IncomingMessage) => boolean): void {
  http.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (!isRefused(request)) {
      if (response.socket !== null) response.writeContinue()
      else
        response.once('socket', () => {
          if (!response.headersSent) response.writeContinue()
        })
    }
    http.emit('request', request, response)
  })
}

/** Delays an upgrade until the responses to earlier requests of its connection are sent. The runtime hands the socket over at once. */
export function upgradeInTurn(
  http: Server,
  take: (request: IncomingMessage, socket: Duplex, head: Buffer) => void,
): void {
  const last = new WeakMap<Duplex, ServerResponse>()
  http.on('request', (request: IncomingMessage, response: ServerResponse) => last.set(request.socket, response))
  http.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', ignore)
    const earlier = last.get(socket)
    if (earlier === undefined || earlier.closed) return take(request, socket, head)
    earlier.once('close', () => {
      if (earlier.writableFinished && earlier.shouldKeepAlive && !socket.destroyed) take(request, socket, head)
      else socket.destroy()
    })
  })
}

function ignore(): void {}
