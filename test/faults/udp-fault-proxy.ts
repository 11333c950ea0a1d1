import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { Clock } from '../../src/core/clock.ts'
import { createSeededRandom, type Random, randomInt } from '../../src/core/random.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { createUdpPath, type UdpFaults, type UdpPath } from './udp-faults.ts'

type Position = { readonly host: string; readonly port: number }
export type UdpFaultProxyOptions = {
  readonly target: Position
  /** In both directions, until `set` changes them. */
  readonly faults?: UdpFaults
}
export type UdpFaultProxyDeps = { readonly clock?: Clock; readonly random?: Random }

/** Counts of one direction. `passed` counts the packets that left the proxy, copies included. */
export type UdpCounts = {
  received: number
  passed: number
  lost: number
  duplicated: number
  reordered: number
  damaged: number
}

/**
 * A UDP proxy on loopback. Every sender gets a port of its own towards the target, so that replies reach it and the target can distinguish senders
 * apart as it would on a network. With the same seed and the same packets in the same order, the same packets are hit.
 */
export type UdpFaultProxy = AsyncDisposable & {
  readonly host: string
  readonly port: number
  /** Replaces the faults: from the sender to the target (`upstream`), back (`downstream`), or both. Held packets are not affected. */
  set(faults: UdpFaults, way?: 'upstream' | 'downstream'): void
  readonly counts: { readonly upstream: UdpCounts; readonly downstream: UdpCounts }
  /** Packets held in the proxy. */
  readonly held: number
}

/** Packets of further senders are dropped; a test has no use for more. */
const SENDERS_MAX = 256

type Sender = { readonly socket: Socket; readonly up: UdpPath; readonly down: UdpPath }

export async function startUdpFaultProxy(
  { target, faults = {} }: UdpFaultProxyOptions,
  { clock = systemClock, random = createSeededRandom(1) }: UdpFaultProxyDeps = {},
): Promise<UdpFaultProxy> {
  const current = { upstream: faults, downstream: faults }
  const counts = { upstream: noCounts(), downstream: noCounts() }
  const senders = new Map<string, Sender>()
  const server = await openSocket()
  server.on('message', (packet, from) => senderOf(from)?.up.receive(packet))

  function senderOf(from: RemoteInfo): Sender | undefined {
    const name = `${from.address}:${from.port}`
    const known = senders.get(name)
    if (known !== undefined || senders.size >= SENDERS_MAX) return known
    const socket = createSocket('udp4')
    // A closed port responds with an ICMP error; on a network the sender would get nothing.
    socket.on('error', () => {})
    // One generator per direction, so that packets of one direction do not change the faults of the other.
    const ownRandom = () => createSeededRandom(randomInt(random, 2 ** 31))
    const sender = {
      socket,
      up: createUdpPath(
        { clock, random: ownRandom(), faults: () => current.upstream, counts: counts.upstream },
        (packet) => socket.send(packet, target.port, target.host, () => {}),
      ),
      down: createUdpPath(
        { clock, random: ownRandom(), faults: () => current.downstream, counts: counts.downstream },
        (packet) => server.send(packet, from.port, from.address, () => {}),
      ),
    }
    socket.on('message', (packet) => sender.down.receive(packet))
    senders.set(name, sender)
    return sender
  }

  const address = server.address()
  return {
    host: address.address,
    port: address.port,
    set(given, way) {
      if (way !== 'downstream') current.upstream = given
      if (way !== 'upstream') current.downstream = given
    },
    counts,
    get held() {
      return [...senders.values()].reduce((sum, { up, down }) => sum + up.held() + down.held(), 0)
    },
    async [Symbol.asyncDispose]() {
      for (const { socket, up, down } of senders.values()) {
        up.stop()
        down.stop()
        socket.close()
      }
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

async function openSocket(): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  socket.on('error', () => {})
  return socket
}

function noCounts(): UdpCounts {
  return { received: 0, passed: 0, lost: 0, duplicated: 0, reordered: 0, damaged: 0 }
}
