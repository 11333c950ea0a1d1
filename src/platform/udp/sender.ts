import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'

/** A socket that sends to one destination and receives nothing. */
export type UdpSender = AsyncDisposable & { send(packet: Uint8Array): void }

export function openUdpSender(to: { readonly ip: string; readonly port: number }): Promise<UdpSender> {
  const socket = createSocket(isIPv6(to.ip) ? 'udp6' : 'udp4')
  // A closed port causes an ICMP error, which is ignored: UDP is unreliable anyway.
  socket.on('error', () => {})
  socket.unref()
  const { promise, resolve } = Promise.withResolvers<UdpSender>()
  socket.connect(to.port, to.ip, () =>
    resolve({
      send: (packet) => socket.send(packet, () => {}),
      async [Symbol.asyncDispose]() {
        await new Promise<void>((closed) => void socket.close(() => closed()))
      },
    }),
  )
  return promise
}
