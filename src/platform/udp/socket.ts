import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { listenError } from '../net/listener.ts'

type Endpoint = { readonly ip: string; readonly port: number }

/** A UDP socket for a few packets in both directions. */
export type UdpSocket = Disposable & {
  readonly address: { readonly host: string; readonly port: number }
  /** Sends one packet, without a guarantee that it arrives. */
  send(packet: Uint8Array, to: Endpoint): void
}

export type UdpSocketOptions = {
  readonly listen: { readonly host: string; readonly port: number }
  readonly receiveBufferBytes?: number | undefined
}

/** Binds a socket exclusively. Network errors for single packets are ignored: an unhandled one would end the process. */
export async function bindUdp(listen: UdpSocketOptions['listen']): Promise<Socket> {
  const socket = createSocket(isIPv6(listen.host) ? 'udp6' : 'udp4')
  try {
    socket.bind({ address: listen.host, port: listen.port, exclusive: true })
    await once(socket, 'listening')
  } catch (error) {
    socket.close()
    throw listenError(error as NodeJS.ErrnoException, listen)
  }
  socket.on('error', () => {})
  return socket
}

export async function openUdpSocket(
  { listen, receiveBufferBytes }: UdpSocketOptions,
  onPacket: (packet: Buffer, from: Endpoint) => void,
): Promise<UdpSocket> {
  const socket = await bindUdp(listen)
  socket.on('message', (packet, from) => onPacket(packet, { ip: unmapped(from.address), port: from.port }))
  if (receiveBufferBytes !== undefined) {
    try {
      socket.setRecvBufferSize(receiveBufferBytes)
    } catch {
      // The system's own size stays.
    }
  }
  const { address, port } = socket.address()
  return {
    address: { host: address, port },
    send: (packet, to) => socket.send(packet, to.port, to.ip, () => {}),
    [Symbol.dispose]: () => void socket.close(),
  }
}

/** The IP addresses of this machine. */
export function ownAddresses(): Set<string> {
  return new Set(Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []))
}

function unmapped(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}
