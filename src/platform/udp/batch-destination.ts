import { isIPv6 } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import type { BatchMemory } from './batch-memory.ts'
import type { DescriptorList } from './descriptor-list.ts'
import { RECONNECT_MS, type UdpDestination, type UdpFault } from './port.ts'
import { encodeSocketAddress } from './socket-address.ts'
import { ERRNO, LINUX, type UdpCalls } from './system-calls.ts'

type DestinationDeps = {
  readonly calls: UdpCalls
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly memory: BatchMemory
  readonly descriptors: DescriptorList | undefined
}

/**
 * A path that does not support segmented sends (its MTU is smaller than a packet, or its device cannot compute the checksums) is sent to packet by packet
 * for this long; then segments are tried again.
 */
const UNSEGMENTED_MS = 30_000
/** A send may return the error of an earlier packet and send nothing, so it is repeated up to this often. */
const ATTEMPTS_MAX = 4
const FLAGS: number = LINUX.MSG_DONTWAIT | LINUX.MSG_NOSIGNAL

const CANNOT_SEGMENT: readonly number[] = [ERRNO.EINVAL, ERRNO.EMSGSIZE, ERRNO.EIO, ERRNO.ENOPROTOOPT]

export function openBatchDestination(
  { to, sendBufferBytes }: { to: { readonly ip: string; readonly port: number }; sendBufferBytes: number },
  { calls, clock, memory, descriptors }: DestinationDeps,
): UdpDestination {
  let fd = -1
  let isConnected = false
  let isClosed = false
  let triedMs = Number.NEGATIVE_INFINITY
  let fault: UdpFault | undefined
  let unsegmentedUntilMs = 0

  /** There may be no free descriptor or no route now. A socket that is not connected cannot send, even when there is a route. */
  function connect(): boolean {
    const nowMs = clock.monotonicMs()
    if (!isClosed && nowMs - triedMs >= RECONNECT_MS) {
      triedMs = nowMs
      if (fd < 0) fd = openSocket()
      isConnected = fd >= 0 && calls.connect(fd, encodeSocketAddress(to)) >= 0
    }
    if (!isConnected) fault = fd < 0 ? 'other' : 'unreachable'
    return isConnected
  }

  function openSocket(): number {
    const opened = calls.socket(isIPv6(to.ip) ? LINUX.AF_INET6 : LINUX.AF_INET)
    if (opened < 0) return opened
    descriptors?.add(opened)
    const value = new Uint8Array(Int32Array.of(sendBufferBytes).buffer)
    calls.setOption(opened, LINUX.SOL_SOCKET, LINUX.SO_SNDBUF, value)
    calls.setOption(opened, LINUX.SOL_SOCKET, LINUX.SO_SNDBUFFORCE, value)
    return opened
  }

  function sendSegments(first: number, second: number): number {
    memory.setCounts(first, second)
    const [firstHeader, secondHeader] = memory.segmentHeaders
    let sent = 0
    let isFirstSent = first === 0
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const count = (isFirstSent ? 0 : 1) + (second > 0 ? 1 : 0)
      const result = calls.sendmmsg(fd, isFirstSent ? secondHeader : firstHeader, count, FLAGS)
      if (result === count) return first + second
      if (result > 0) {
        isFirstSent = true
        sent = first
        continue
      }
      if (CANNOT_SEGMENT.includes(-result)) {
        unsegmentedUntilMs = clock.monotonicMs() + UNSEGMENTED_MS
        return sent + sendUnsegmented(isFirstSent ? 0 : first, second)
      }
      fault = faultOf(-result)
      if (fault !== 'refused') return sent
    }
    return sent
  }

  function sendUnsegmented(first: number, second: number): number {
    return sendRange(0, first) + sendRange(memory.secondStart(), second)
  }

  function sendRange(from: number, count: number): number {
    let sent = 0
    for (let attempt = 0; attempt < ATTEMPTS_MAX && sent < count; attempt++) {
      const result = calls.sendmmsg(fd, memory.packetHeader(from + sent), count - sent, FLAGS)
      if (result > 0) sent += result
      else fault = faultOf(-result)
      if (result <= 0 && fault !== 'refused') break
    }
    return sent
  }

  connect()
  return {
    send(first, second) {
      if (first + second === 0) return 0
      if (!isConnected && !connect()) return 0
      if (unsegmentedUntilMs === 0) return sendSegments(first, second)
      if (clock.monotonicMs() >= unsegmentedUntilMs) {
        unsegmentedUntilMs = 0
        return sendSegments(first, second)
      }
      return sendUnsegmented(first, second)
    },
    takeFault() {
      const taken = fault
      fault = undefined
      return taken
    },
    poll() {
      const error = new Int32Array(1)
      if (fd >= 0) calls.getOption(fd, LINUX.SOL_SOCKET, LINUX.SO_ERROR, new Uint8Array(error.buffer))
      if (error[0] !== 0) fault = faultOf(error[0] as number)
    },
    close() {
      if (fd >= 0) {
        descriptors?.remove(fd)
        calls.close(fd)
      }
      fd = -1
      isConnected = false
      isClosed = true
    },
  }
}

function faultOf(errno: number): UdpFault {
  switch (errno) {
    case ERRNO.ECONNREFUSED:
      return 'refused'
    case ERRNO.EHOSTUNREACH:
    case ERRNO.ENETUNREACH:
    case ERRNO.EHOSTDOWN:
    case ERRNO.ENETDOWN:
      return 'unreachable'
    case ERRNO.EAGAIN:
    case ERRNO.ENOBUFS:
    case ERRNO.ENOMEM:
      return 'buffer-full'
    case ERRNO.EMSGSIZE:
      return 'too-big'
    default:
      return 'other'
  }
}
