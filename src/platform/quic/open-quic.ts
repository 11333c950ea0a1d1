import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { QuicConnection } from './connection.ts'
import { QUIC_DEFAULTS, type QuicEnd, type QuicOptions } from './connection-options.ts'
import type { Seal } from './keys.ts'

export type OpenQuicOptions = Pick<QuicOptions, 'alpn' | 'serverName'> &
  Partial<QuicOptions> & {
    readonly to: { readonly ip: string; readonly port: number }
  }

export type OpenQuicDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly seal?: Seal | undefined
  isPeer(publicKey: Uint8Array): boolean
  onOpen?(): void
  onEnd?(end: QuicEnd): void
}

/** A connection over its own socket, which is closed with the connection. */
export function openQuic({ to, ...options }: OpenQuicOptions, deps: OpenQuicDeps): QuicConnection {
  const socket = createSocket(isIPv6(to.ip) ? 'udp6' : 'udp4')
  let state: 'connecting' | 'connected' | 'over' = 'connecting'
  const early: Uint8Array[] = []
  // A closed port causes an ICMP error. Such errors can be forged, so they are ignored: the timeout decides.
  socket.on('error', () => {})
  socket.on('message', (datagram) => connection.receive(datagram))
  socket.unref()
  // An error of the call itself, such as a missing route, comes to the callback only.
  socket.connect(to.port, to.ip, (error?: Error | null) => {
    if (state === 'over') return
    state = error ? 'over' : 'connected'
    const datagrams = early.splice(0)
    if (error) connection.abandon(error.message)
    else for (const datagram of datagrams) socket.send(datagram)
  })
  const connection: QuicConnection = new QuicConnection(
    { ...QUIC_DEFAULTS, ...options },
    {
      clock: deps.clock,
      seal: deps.seal,
      randomBytes: (count) => deps.random.bytes(count),
      send(datagram) {
        // Without a callback a failed send is dropped, and costs nothing more: the loss is detected as any other.
        if (state === 'connected') socket.send(datagram)
        else if (state === 'connecting') early.push(datagram)
      },
      soon: queueMicrotask,
      isPeer: deps.isPeer,
      onOpen: () => deps.onOpen?.(),
      onEnd: (end) => deps.onEnd?.(end),
      onGone() {
        state = 'over'
        socket.close()
      },
    },
  )
  return connection
}
