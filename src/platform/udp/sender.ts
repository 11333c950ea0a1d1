import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { ServiceError } from '../../core/error.ts'
import { printAddressPort } from '../net/ip-range.ts'

/** A socket that sends to one destination and receives nothing. */
export type UdpSender = AsyncDisposable & { send(packet: Uint8Array): void }

/** Fails when there is no route to the destination. */
export function openUdpSender(to: { readonly ip: string; readonly port: number }): Promise<UdpSender> {
  const socket = createSocket(isIPv6(to.ip) ? 'udp6' : 'udp4')
  const { promise, resolve, reject } = Promise.withResolvers<UdpSender>()
  function fail(error: Error): void {
    const message = `cannot send to ${printAddressPort(to.ip, to.port)}: ${error.message}`
    reject(new ServiceError('address-unavailable', message, { fields: to, cause: error }))
  }
  // Without effect once it is open. A closed port then causes an ICMP error, which is ignored: UDP is unreliable anyway.
  socket.on('error', fail)
  socket.unref()
  // An error of the call itself, such as a missing route, comes to the callback only.
  socket.connect(to.port, to.ip, (error?: Error | null) => {
    if (error) {
      socket.close()
      return fail(error)
    }
    resolve({
      send: (packet) => socket.send(packet, () => {}),
      async [Symbol.asyncDispose]() {
        await new Promise<void>((closed) => void socket.close(() => closed()))
      },
    })
  })
  return promise
}
