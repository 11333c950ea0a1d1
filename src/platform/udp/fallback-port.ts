import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import {
  BATCH_PACKETS,
  CELL_BYTES,
  RECONNECT_MS,
  TICK_MS,
  type UdpDestination,
  type UdpFault,
  type UdpPort,
  type UdpPortOptions,
} from './port.ts'
import { bindUdp } from './socket.ts'
import { createSourceFilter } from './source-filter.ts'

/** Bytes that may wait in a socket; further batches are dropped, as the kernel would do. */
const QUEUE_BYTES_MAX = 256 * 1024

/** The port over Node's own sockets: works everywhere, at about a tenth of the rate of sendmmsg. */
export async function openUdpFallbackPort(
  options: UdpPortOptions,
  { clock }: { readonly clock: Pick<Clock, 'monotonicMs'> },
): Promise<UdpPort> {
  const socket = await bindUdp(options.listen)
  setBuffer(() => socket.setRecvBufferSize(options.receiveBufferBytes))

  const cellCount = BATCH_PACKETS + (options.spareCells ?? 0)
  const buffer = new ArrayBuffer(cellCount * CELL_BYTES)
  const arena = {
    bytes: new Uint8Array(buffer),
    words: new Int32Array(buffer),
    lengths: new Int32Array(cellCount),
    sources: new Int8Array(cellCount),
    arrivals: new Float64Array(cellCount),
    timeMicros: new Float64Array(1),
  }
  const filter = createSourceFilter(options.sources)
  const staged: Staged = { packets: [], first: 0 }

  function readTime(): void {
    arena.timeMicros[0] = clock.monotonicMs() * 1000
  }

  return {
    engine: 'dgram',
    address: { host: socket.address().address, port: socket.address().port },
    arena,
    // Linux returns twice the requested size, and Node does not correct that.
    receiveBufferBytes: socket.getRecvBufferSize() / (process.platform === 'linux' ? 2 : 1),
    async run(handlers) {
      let count = 0
      let isDue = false
      const runIdle = () => {
        if (handlers.isIdleDue?.() === true) handlers.onIdle?.()
      }
      const flush = () => {
        isDue = false
        const taken = count
        count = 0
        if (taken > 0) handlers.onBatch(taken)
        runIdle()
      }
      const take = (packet: Buffer, from: { address: string }) => {
        const length = Math.min(packet.length, CELL_BYTES)
        arena.bytes.set(packet.subarray(0, length), count * CELL_BYTES)
        arena.lengths[count] = length
        arena.sources[count] = filter.ofText(from.address)
        readTime()
        arena.arrivals[count] = arena.timeMicros[0] as number
        count += 1
        if (count === BATCH_PACKETS) flush()
        else if (!isDue) {
          isDue = true
          setImmediate(flush)
        }
      }
      socket.on('message', take)
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setInterval(() => {
        if (!handlers.onTick()) resolve()
        runIdle()
      }, TICK_MS)
      await promise
      clearInterval(timer)
      socket.off('message', take)
    },
    stage(cells, first, second) {
      // A copy in new memory: a busy socket still holds it when the cells are overwritten.
      const joined = Buffer.allocUnsafeSlow(first.count * first.bytes + second.count * second.bytes)
      staged.packets.length = 0
      staged.first = first.count
      let end = 0
      for (let i = 0; i < first.count + second.count; i++) {
        const from = (cells[i] as number) * CELL_BYTES
        const length = i < first.count ? first.bytes : second.bytes
        joined.set(arena.bytes.subarray(from, from + length), end)
        // Buffers, because a socket converts anything else to one.
        staged.packets.push(joined.subarray(end, end + length))
        end += length
      }
    },
    hasKernelTimes: false,
    readTime,
    connect: (to) => openFallbackDestination(to, options.sendBufferBytes, { staged, clock }),
    overruns: () => 0,
    [Symbol.dispose]: () => void socket.close(),
  }
}

/** The packets of both groups, and how many the first one has. */
type Staged = { readonly packets: Buffer[]; first: number }

function openFallbackDestination(
  to: { readonly ip: string; readonly port: number },
  sendBufferBytes: number,
  { staged, clock }: { readonly staged: Staged; readonly clock: Pick<Clock, 'monotonicMs'> },
): UdpDestination {
  let state: 'connecting' | 'connected' | 'failed' | 'closed' = 'connecting'
  let triedMs = 0
  let fault: UdpFault | undefined
  let socket = connect()

  function connect(): Socket {
    state = 'connecting'
    triedMs = clock.monotonicMs()
    const opened = createSocket(isIPv6(to.ip) ? 'udp6' : 'udp4')
    opened.on('error', (error: NodeJS.ErrnoException) => {
      fault = faultOf(error.code)
      if (state === 'connecting') state = 'failed'
    })
    // An error of the call itself, such as a missing route, comes to the callback only.
    opened.connect(to.port, to.ip, (error?: Error | null) => {
      if (state === 'closed') return
      state = error ? 'failed' : 'connected'
      if (error) fault = 'unreachable'
      else setBuffer(() => opened.setSendBufferSize(sendBufferBytes))
    })
    return opened
  }

  function reconnect(): void {
    fault = 'unreachable'
    if (clock.monotonicMs() - triedMs < RECONNECT_MS) return
    socket.close()
    socket = connect()
  }

  return {
    send(first, second) {
      if (state === 'failed') reconnect()
      if (state !== 'connected') {
        fault ??= 'buffer-full'
        return 0
      }
      if (socket.getSendQueueSize() > QUEUE_BYTES_MAX) {
        fault = 'buffer-full'
        return 0
      }
      const { packets, first: secondAt } = staged
      for (let i = 0; i < first; i++) socket.send(packets[i] as Buffer)
      for (let i = 0; i < second; i++) socket.send(packets[secondAt + i] as Buffer)
      return first + second
    },
    takeFault() {
      const taken = fault
      fault = undefined
      return taken
    },
    // Node emits errors itself.
    poll() {},
    close() {
      if (state === 'closed') return
      state = 'closed'
      socket.close()
    },
  }
}

function faultOf(code: string | undefined): UdpFault {
  switch (code) {
    case 'ECONNREFUSED':
      return 'refused'
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EHOSTDOWN':
    case 'ENETDOWN':
      return 'unreachable'
    case 'EAGAIN':
    case 'ENOBUFS':
    case 'ENOMEM':
      return 'buffer-full'
    case 'EMSGSIZE':
      return 'too-big'
    default:
      return 'other'
  }
}

/** The system may refuse the requested size; its own then stays. */
function setBuffer(set: () => void): void {
  try {
    set()
  } catch {
    // `receiveBufferBytes` returns the actual size.
  }
}
