import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { createHeldMemory, HeldAmounts } from '../../../core/held-amounts.ts'
import { peerKey } from '../../net/connection-caps.ts'

/** A head of up to so many bytes is not counted: the number of connections limits these. */
const FREE_BYTES = 16 * 1024
/** Bytes of heads that have begun and are not complete: of all peers, and of one. */
const TOTAL_BYTES = 64 * 1024 * 1024
const PEER_BYTES = 8 * 1024 * 1024
/** Peers with such a head at a time. */
const PEERS_MAX = 4096

/**
 * Limits the memory of large heads while they are incomplete: nothing is known of their sender, and the runtime holds what has come. Calls `refuse`
 * for a connection whose head is beyond the limit. Behind a proxy all connections have one peer, which may hold as much as all peers.
 */
export function limitLargeHeads(
  http: Server,
  { isBehindProxy, refuse }: { readonly isBehindProxy: boolean; refuse(socket: Socket): void },
): void {
  const maxima = { total: TOTAL_BYTES, key: isBehindProxy ? TOTAL_BYTES : PEER_BYTES }
  const held = new HeldAmounts(createHeldMemory({ threads: 1, keysMax: PEERS_MAX }), 0)
  const newest = new WeakMap<Socket, IncomingMessage>()
  http.on('request', (request: IncomingMessage) => newest.set(request.socket, request))
  http.on('connection', (socket: Socket) => {
    const key = peerKey(socket.remoteAddress ?? '')
    let previous: IncomingMessage | undefined
    let isInBody = false
    let bytes = 0
    let heldBytes = 0

    function release(): void {
      if (heldBytes > 0) held.release(key, heldBytes)
      bytes = heldBytes = 0
    }

    // The runtime's own listener was added before: it has parsed the chunk by now.
    function onData(chunk: Buffer): void {
      const request = newest.get(socket)
      const isHead = request === previous && !isInBody
      previous = request
      isInBody = request?.complete === false
      if (!isHead) return release()
      bytes += chunk.length
      if (bytes <= FREE_BYTES) return
      const more = bytes - heldBytes
      if (held.take(key, more, maxima) === undefined) heldBytes = bytes
      else {
        socket.off('data', onData)
        refuse(socket)
      }
    }

    socket.on('data', onData)
    socket.once('close', release)
  })
}
