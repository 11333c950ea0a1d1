import type { Clock } from '../../core/clock.ts'
import { openUdpBatchPort } from './batch-port.ts'
import { CELL_BYTES, type UdpPort, type UdpPortOptions } from './port.ts'
import type { UdpCalls } from './system-calls.ts'

/** Bytes of struct mmsghdr, and where the length of the received packet is in it. */
const MMSGHDR = 64
const H_LENGTH = 56

/**
 * A port over the code of the engine `sendmmsg` that makes no system call: it receives what `next` returns, and sends nothing. Code that has run on it is
 * compiled before the first packet of the network comes. The source of all packets is 0.0.0.0.
 */
export function openUdpRehearsalPort(
  options: Omit<UdpPortOptions, 'sources'>,
  deps: { readonly clock: Pick<Clock, 'monotonicMs'>; next(): readonly Uint8Array[] },
): UdpPort {
  let buffer = new ArrayBuffer(0)
  const calls: UdpCalls = {
    // Addresses are positions in the buffer.
    addressOf(memory) {
      buffer = memory
      return 0
    },
    recvmmsg(_fd, headers) {
      const packets = deps.next()
      packets.forEach((packet, cell) => {
        new Uint8Array(buffer).set(packet, cell * CELL_BYTES)
        new Int32Array(buffer)[(headers + cell * MMSGHDR + H_LENGTH) >> 2] = packet.length
      })
      return packets.length
    },
    sendmmsg: (_fd, _headers, count) => count,
    socketName(_fd, into) {
      into[0] = 2
      return 0
    },
    socket: () => 0,
    bind: () => 0,
    connect: () => 0,
    setOption: () => 0,
    getOption: () => 0,
    poll: () => 0,
    read: () => 0,
    eventFd: () => -1,
    realTime: () => 0,
    close() {},
  }
  return openUdpBatchPort({ ...options, sources: ['0.0.0.0'] }, { calls, clock: deps.clock })
}
