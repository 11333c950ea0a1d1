import { isIPv6 } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { listenError } from '../net/listener.ts'
import { openBatchDestination } from './batch-destination.ts'
import { type BatchMemory, createBatchMemory } from './batch-memory.ts'
import type { DescriptorList } from './descriptor-list.ts'
import { BATCH_PACKETS, TICK_MS, type UdpHandlers, type UdpPort, type UdpPortOptions } from './port.ts'
import { decodeSocketAddress, encodeSocketAddress, ipv6Text } from './socket-address.ts'
import { createSourceFilter, type SourceFilter } from './source-filter.ts'
import { ERRNO, LINUX, type UdpCalls } from './system-calls.ts'

/** Index of the dropped packets in SO_MEMINFO (linux/sock_diag.h, SK_MEMINFO_DROPS). */
const MEMINFO_DROPS = 8
const MEMINFO_COUNT = 9

type BatchDeps = {
  readonly calls: UdpCalls
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The open sockets of a thread that may be terminated. */
  readonly descriptors?: DescriptorList | undefined
}

/**
 * The port over recvmmsg and sendmmsg. `run` blocks its thread, which sleeps in the kernel until a packet comes or a tick is due: it needs a thread of
 * its own.
 */
export function openUdpBatchPort(options: UdpPortOptions, { calls, clock, descriptors }: BatchDeps): UdpPort {
  const { listen } = options
  const family = isIPv6(listen.host) ? LINUX.AF_INET6 : LINUX.AF_INET
  const fd = calls.socket(family)
  if (fd < 0) throw listenError(errorOf(-fd), listen)
  descriptors?.add(fd)
  const close = (): void => {
    descriptors?.remove(fd)
    calls.close(fd)
  }
  const bound = calls.bind(fd, encodeSocketAddress({ ip: listen.host, port: listen.port }))
  if (bound < 0) {
    close()
    throw listenError(errorOf(-bound), listen)
  }
  setNumber(calls, fd, LINUX.SO_RCVBUF, options.receiveBufferBytes)
  // Only a privileged process may exceed the system's limit; for others this call fails without effect.
  setNumber(calls, fd, LINUX.SO_RCVBUFFORCE, options.receiveBufferBytes)
  // struct timeval: seconds and microseconds, 64 bits each.
  calls.setOption(fd, LINUX.SOL_SOCKET, LINUX.SO_RCVTIMEO, bytesOf(BigInt64Array.of(0n, BigInt(TICK_MS * 1000))))

  const hasKernelTimes = setNumber(calls, fd, LINUX.SO_TIMESTAMPNS, 1) >= 0
  const { busyPollMicros = 0, wakeFd = -1 } = options
  // More than net.core.busy_read needs a privilege; without it the loop below still looks for packets before it sleeps.
  if (busyPollMicros > 0) setNumber(calls, fd, LINUX.SO_BUSY_POLL, busyPollMicros)

  const memory = createBatchMemory(calls, options.spareCells)
  const { timeMicros, receiveHeaders } = memory
  const pollList = memory.pollList(fd, wakeFd)
  const filter = createSourceFilter(options.sources)
  const markSources = family === LINUX.AF_INET ? markV4Sources : markV6Sources
  const name = new Uint8Array(family === LINUX.AF_INET ? 16 : 28)
  calls.socketName(fd, name)

  function readTime(): void {
    calls.realTime(memory.timespec)
    memory.readTimespec()
  }

  /** The packets that are there, without waiting. */
  function receiveNow(): number {
    return calls.recvmmsg(fd, receiveHeaders, BATCH_PACKETS, LINUX.MSG_DONTWAIT)
  }

  /** Looks for packets for up to `busyPollMicros`, then sleeps. */
  function receiveNext({ isIdleDue, onIdle }: UdpHandlers): number {
    if (isIdleDue?.() === true) {
      const count = receiveNow()
      if (count > 0) return count
      onIdle?.()
    }
    if (busyPollMicros > 0) {
      readTime()
      for (
        const endMicros = (timeMicros[0] as number) + busyPollMicros;
        (timeMicros[0] as number) < endMicros;
        readTime()
      ) {
        const count = receiveNow()
        if (count > 0) return count
      }
    }
    return calls.recvmmsg(fd, receiveHeaders, BATCH_PACKETS, LINUX.MSG_WAITFORONE)
  }

  /** Sleeps until there are packets or another thread has written to `wakeFd`. */
  function receiveOrWake({ isIdleDue, onIdle }: UdpHandlers): number {
    const count = receiveNow()
    if (count > 0) return count
    if (isIdleDue?.() === true) onIdle?.()
    if (calls.poll(pollList, 2, TICK_MS) > 0) calls.read(wakeFd, memory.scratch, 8)
    return receiveNow()
  }

  return {
    engine: 'sendmmsg',
    address: decodeSocketAddress(name),
    arena: memory,
    // The kernel doubles the requested size for its own bookkeeping, and returns the doubled one.
    receiveBufferBytes: getNumber(calls, fd, LINUX.SO_RCVBUF) / 2,
    async run(handlers) {
      let nextTickMs = 0
      for (;;) {
        const isWaiting = wakeFd >= 0 && handlers.isWaiting?.() === true
        const count = isWaiting ? receiveOrWake(handlers) : receiveNext(handlers)
        if (isWaiting) handlers.onWake?.()
        if (count > 0) {
          readTime()
          memory.readBatch(count)
          markSources(memory, filter, count)
          handlers.onBatch(count)
        }
        const nowMs = clock.monotonicMs()
        if (nowMs < nextTickMs) continue
        nextTickMs = nowMs + TICK_MS
        if (!handlers.onTick()) return
      }
    },
    hasKernelTimes,
    readTime,
    stage: memory.stage,
    connect: (to) =>
      openBatchDestination({ to, sendBufferBytes: options.sendBufferBytes }, { calls, clock, memory, descriptors }),
    overruns() {
      const meminfo = new Uint32Array(MEMINFO_COUNT)
      calls.getOption(fd, LINUX.SOL_SOCKET, LINUX.SO_MEMINFO, bytesOf(meminfo))
      return meminfo[MEMINFO_DROPS] as number
    },
    [Symbol.dispose]: close,
  }
}

/** Consecutive packets mostly have the same address, so the filter is called only when it changes. */
function markV4Sources({ words, bytes, sources, nameWordAt }: BatchMemory, filter: SourceFilter, count: number): void {
  let lastAddress = 0
  let source = -1
  for (let cell = 0; cell < count; cell++) {
    const wordAt = nameWordAt(cell) + 1
    const address = words[wordAt] as number
    if (cell === 0 || address !== lastAddress) {
      lastAddress = address
      const at = wordAt * 4
      source = filter.ofV4(
        ((bytes[at] as number) << 24) |
          ((bytes[at + 1] as number) << 16) |
          ((bytes[at + 2] as number) << 8) |
          (bytes[at + 3] as number),
      )
    }
    sources[cell] = source
  }
}

function markV6Sources({ bytes, sources, nameWordAt }: BatchMemory, filter: SourceFilter, count: number): void {
  for (let cell = 0; cell < count; cell++) sources[cell] = filter.ofText(ipv6Text(bytes, nameWordAt(cell) * 4 + 8))
}

function setNumber(calls: UdpCalls, fd: number, option: number, value: number): number {
  return calls.setOption(fd, LINUX.SOL_SOCKET, option, bytesOf(Int32Array.of(value)))
}

function getNumber(calls: UdpCalls, fd: number, option: number): number {
  const value = new Int32Array(1)
  calls.getOption(fd, LINUX.SOL_SOCKET, option, bytesOf(value))
  return value[0] as number
}

function bytesOf(numbers: ArrayBufferView): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength)
}

/** An error as Node's own sockets throw it. */
function errorOf(number: number): NodeJS.ErrnoException {
  const name = Object.entries(ERRNO).find(([, value]) => value === number)?.[0] ?? `error ${number}`
  return Object.assign(new Error(name), { code: name, errno: -number })
}
