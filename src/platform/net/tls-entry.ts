import type { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'

export type TlsEntryDeps = {
  readonly clock: Clock
  /** How long a client may take to send its first byte. */
  readonly firstByteMs: number
  /** Receives the connections that do not begin as HTTP, with what was read put back. */
  readonly onTls: (socket: Socket) => void
  readonly onRefused: () => void
}

/** How long a client may take to read the response and close. */
const RESPONSE_MS = 1000
/** Responses in flight at a time. Further clients are closed without one. */
const RESPONSES_MAX = 64
const [A, Z] = [0x41, 0x5a]
const BODY = JSON.stringify({
  error: 'tls-required',
  message: 'this port speaks TLS, and the request came without it',
  fix: 'Use https:// instead of http://, wss:// instead of ws://, and TLS credentials for gRPC.',
})
const HEAD = `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(BODY)}\r\nconnection: close\r\n`

/**
 * The first bytes of a connection to a TLS port. One that begins as an HTTP request in plain text gets a response that says so: the handshake would fail,
 * and the client would see an empty reply. A TLS record never begins with a letter.
 */
export function createTlsEntry({ clock, firstByteMs, onTls, onRefused }: TlsEntryDeps): {
  begin(socket: Socket): void
} {
  let responses = 0

  function respond(socket: Socket): void {
    if (responses >= RESPONSES_MAX) return void socket.destroy()
    responses += 1
    const timer = clock.setTimer(RESPONSE_MS, () => socket.destroy())
    socket.once('close', () => {
      responses -= 1
      timer.cancel()
    })
    // What follows of the request is discarded: a close with unread bytes would reset the connection and with it the response.
    socket.resume()
    socket.end(`${HEAD}date: ${new Date(clock.nowMs()).toUTCString()}\r\n\r\n${BODY}`)
  }

  return {
    begin(socket) {
      const timer = clock.setTimer(firstByteMs, () => socket.destroy())
      const onClosed = () => {
        timer.cancel()
        onRefused()
      }
      const onEnd = () => socket.destroy()
      socket.once('close', onClosed)
      socket.once('end', onEnd)
      socket.once('data', (chunk: Buffer) => {
        timer.cancel()
        socket.off('close', onClosed)
        const first = chunk[0] ?? 0
        if (first >= A && first <= Z) {
          onRefused()
          respond(socket)
          return
        }
        socket.off('end', onEnd)
        socket.pause()
        socket.unshift(chunk)
        onTls(socket)
      })
    },
  }
}
