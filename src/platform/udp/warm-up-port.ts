import type { Clock } from '../../core/clock.ts'
import { openUdpBatchPort } from './batch-port.ts'
import { CELL_BYTES, type UdpPort, type UdpPortOptions } from './port.ts'
import { LINUX, type UdpCalls } from './system-calls.ts'

/** Bytes of struct mmsghdr, and where it has the address and the length of the control message, and the length of the received packet. */
const MMSGHDR = 64
const H_CONTROL = 32
const H_LENGTH = 56
/** A control message with the time of receipt: its type and its struct timespec. */
const CONTROL_TYPE = 12
const CONTROL_TIME = 16

export type WarmUpPortDeps = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The packets of the next batch. */
  next(): readonly Uint8Array[]
  /**
   * V8 compiles a function that is always the same one into its caller, and undoes that at the first other one. So the rounds of a warm-up have functions of
   * two kinds.
   */
  readonly isSecondKind: boolean
}

/**
 * A port over the code of the engine `sendmmsg` that makes no system call: it receives what `next` returns, and sends nothing. Code that has run on it is
 * compiled before the first packet of the network comes. The source of all packets is 0.0.0.0.
 */
export function openUdpWarmUpPort(
  options: Omit<UdpPortOptions, 'sources'>,
  { clock, next, isSecondKind }: WarmUpPortDeps,
): UdpPort {
  let bytes = new Uint8Array(0)
  let words = new Int32Array(0)

  /** Writes the clock as a struct timespec, of a day whose seconds are as long as today's. */
  function writeTime(at: number): void {
    const ms = clock.monotonicMs()
    words[at >> 2] = FIRST_SECOND + Math.floor(ms / 1000)
    words[(at + 4) >> 2] = 0
    words[(at + 8) >> 2] = Math.floor((ms % 1000) * 1e6)
  }

  function receive(headers: number): number {
    const packets = next()
    for (const [cell, packet] of packets.entries()) {
      bytes.set(packet, cell * CELL_BYTES)
      const header = headers + cell * MMSGHDR
      words[(header + H_LENGTH) >> 2] = packet.length
      // Addresses are positions in the buffer.
      const control = words[(header + H_CONTROL) >> 2] as number
      words[(control + CONTROL_TYPE) >> 2] = LINUX.SO_TIMESTAMPNS
      writeTime(control + CONTROL_TIME)
    }
    return packets.length
  }

  function readClock(into: number): number {
    writeTime(into)
    return 0
  }

  // In the order of the real calls, so that both objects have the same shape.
  const calls: UdpCalls = {
    addressOf(memory) {
      bytes = new Uint8Array(memory)
      words = new Int32Array(memory)
      return 0
    },
    socket: () => 0,
    bind: () => 0,
    connect: () => 0,
    socketName(_fd, into) {
      into[0] = LINUX.AF_INET
      return 0
    },
    setOption: () => 0,
    getOption: () => 0,
    recvmmsg: isSecondKind ? (_fd, headers) => receive(headers) : (_fd, headers) => receive(headers),
    sendmmsg: isSecondKind ? (_fd, _headers, count) => count : (_fd, _headers, count) => count,
    poll: isSecondKind ? () => 1 : () => 0,
    read: isSecondKind ? () => 8 : () => 0,
    eventFd: () => -1,
    realTime: isSecondKind ? (into) => readClock(into) : readClock,
    close() {},
  }
  return openUdpBatchPort({ ...options, sources: ['0.0.0.0'] }, { calls, clock })
}

const FIRST_SECOND = 1_800_000_000
