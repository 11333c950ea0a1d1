import { endianness } from 'node:os'

/**
 * The Linux system calls for batches of packets, through the foreign-function interface. Addresses are numbers: user space is below 2^48. A negative
 * result is minus the error number, as in the kernel.
 */
export type UdpCalls = {
  addressOf(buffer: ArrayBuffer): number
  socket(family: number): number
  bind(fd: number, address: Uint8Array): number
  connect(fd: number, address: Uint8Array): number
  /** The address a socket is bound to, into `into`. */
  socketName(fd: number, into: Uint8Array): number
  setOption(fd: number, level: number, name: number, value: Uint8Array): number
  getOption(fd: number, level: number, name: number, into: Uint8Array): number
  recvmmsg(fd: number, headers: number, count: number, flags: number): number
  sendmmsg(fd: number, headers: number, count: number, flags: number): number
  /** Waits until one of the descriptors of a list of struct pollfd is readable. */
  poll(list: number, count: number, timeoutMs: number): number
  read(fd: number, into: number, bytes: number): number
  /** An eventfd(2) that never blocks. */
  eventFd(): number
  /** The wall clock as a struct timespec at the address `into`. */
  realTime(into: number): number
  close(fd: number): void
}

// Values of the kernel's headers, the same on x64 and arm64.
export const LINUX = {
  AF_INET: 2,
  AF_INET6: 10,
  SOCK_DGRAM: 2,
  SOCK_CLOEXEC: 0x80000,
  SOL_SOCKET: 1,
  SO_REUSEADDR: 2,
  SO_ERROR: 4,
  SO_SNDBUF: 7,
  SO_RCVBUF: 8,
  SO_RCVTIMEO: 20,
  SO_SNDTIMEO: 21,
  SO_SNDBUFFORCE: 32,
  SO_RCVBUFFORCE: 33,
  SO_TIMESTAMPNS: 35,
  SO_BUSY_POLL: 46,
  SO_MEMINFO: 55,
  IPPROTO_IPV6: 41,
  IPV6_V6ONLY: 26,
  SOL_UDP: 17,
  UDP_SEGMENT: 103,
  MSG_DONTWAIT: 0x40,
  MSG_NOSIGNAL: 0x4000,
  MSG_WAITFORONE: 0x10000,
  POLLIN: 1,
  CLOCK_REALTIME: 0,
  EFD_CLOEXEC: 0x80000,
  EFD_NONBLOCK: 0x800,
} as const

export const ERRNO = {
  EPERM: 1,
  EINTR: 4,
  EIO: 5,
  EAGAIN: 11,
  ENOMEM: 12,
  EACCES: 13,
  EINVAL: 22,
  EMFILE: 24,
  ENOPROTOOPT: 92,
  EMSGSIZE: 90,
  EADDRINUSE: 98,
  EADDRNOTAVAIL: 99,
  ENETDOWN: 100,
  ENETUNREACH: 101,
  ENOBUFS: 105,
  ECONNREFUSED: 111,
  EHOSTDOWN: 112,
  EHOSTUNREACH: 113,
} as const

/** Throws on another system, and on a byte order or word size that the layouts are not made for. */
export async function loadUdpCalls(): Promise<UdpCalls> {
  if (process.platform !== 'linux' || endianness() !== 'LE' || !['x64', 'arm64'].includes(process.arch)) {
    throw new Error(`${process.platform} on ${process.arch} has no sendmmsg`)
  }
  const { default: koffi } = await import('koffi')
  const libc = koffi.load(null)
  const socket = libc.func('int socket(int, int, int)')
  const bind = libc.func('int bind(int, void *, uint32_t)')
  const connect = libc.func('int connect(int, void *, uint32_t)')
  const getsockname = libc.func('int getsockname(int, void *, void *)')
  const setsockopt = libc.func('int setsockopt(int, int, int, void *, uint32_t)')
  const getsockopt = libc.func('int getsockopt(int, int, int, void *, void *)')
  const recvmmsg = libc.func('int recvmmsg(int, uintptr_t, uint32_t, int, uintptr_t)')
  const sendmmsg = libc.func('int sendmmsg(int, uintptr_t, uint32_t, int)')
  const poll = libc.func('int poll(uintptr_t, uint64_t, int)')
  const eventfd = libc.func('int eventfd(uint32_t, int)')
  const read = libc.func('int read(int, uintptr_t, size_t)')
  const clockGettime = libc.func('int clock_gettime(int, uintptr_t)')
  const close = libc.func('int close(int)')
  const checked = (result: number): number => (result < 0 ? -koffi.errno() : result)
  const lengthOf = (bytes: Uint8Array) => Uint32Array.of(bytes.length)
  return {
    addressOf: (buffer) => Number(koffi.address(buffer)),
    socket: (family) => checked(socket(family, LINUX.SOCK_DGRAM | LINUX.SOCK_CLOEXEC, 0)),
    bind: (fd, address) => checked(bind(fd, address, address.length)),
    connect: (fd, address) => checked(connect(fd, address, address.length)),
    socketName: (fd, into) => checked(getsockname(fd, into, lengthOf(into))),
    setOption: (fd, level, name, value) => checked(setsockopt(fd, level, name, value, value.length)),
    getOption: (fd, level, name, into) => checked(getsockopt(fd, level, name, into, lengthOf(into))),
    recvmmsg(fd, headers, count, flags) {
      const result: number = recvmmsg(fd, headers, count, flags, 0)
      return result < 0 ? -koffi.errno() : result
    },
    sendmmsg(fd, headers, count, flags) {
      const result: number = sendmmsg(fd, headers, count, flags)
      return result < 0 ? -koffi.errno() : result
    },
    poll: (list, count, timeoutMs) => checked(poll(list, count, timeoutMs)),
    read: (fd, into, bytes) => checked(read(fd, into, bytes)),
    eventFd: () => checked(eventfd(0, LINUX.EFD_CLOEXEC | LINUX.EFD_NONBLOCK)),
    realTime: (into) => clockGettime(LINUX.CLOCK_REALTIME, into),
    close: (fd) => void close(fd),
  }
}
