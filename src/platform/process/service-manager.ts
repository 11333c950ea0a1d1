import { writeSync } from 'node:fs'
import type { Clock, Timer } from '../../core/clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import { LINUX, loadUdpCalls } from '../udp/system-calls.ts'

/** Reports the state of this process to the service manager that started it: systemd with `Type=notify`, or another with sd_notify(3). */
export type ServiceManager = Disposable & {
  /** The listeners are open. */
  ready(): void
  /** The process is shutting down in order. */
  stopping(): void
}

export type ServiceManagerDeps = {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  readonly clock: Clock
  readonly log: Logger
}

const AF_UNIX = 1
/** sun_path of sockaddr_un(7), without its ending zero. */
const PATH_BYTES_MAX = 107
/** The kernel queues about ten messages for a service manager that does not read. The next one waits this long and is then dropped. */
const WAIT_MS = 100
/** READY=1 is sent again until it is queued: without it the service manager would end the process as one that never started. */
const READY_AGAIN_MS = 1000
const SILENT: ServiceManager = { ready() {}, stopping() {}, [Symbol.dispose]() {} }

/**
 * Connects to NOTIFY_SOCKET; without it every call does nothing. With a watchdog (WATCHDOG_USEC), which begins when the process is ready, sends WATCHDOG=1
 * from the event loop twice per period.
 */
export async function openServiceManager({ env, pid, clock, log }: ServiceManagerDeps): Promise<ServiceManager> {
  const path = env['NOTIFY_SOCKET']
  if (path === undefined || path === '') return SILENT
  const line = await connectTo(path).catch((err: unknown) => {
    log.warn({ err }, 'cannot connect to NOTIFY_SOCKET; the service manager is not notified')
    return undefined
  })
  if (line === undefined) return SILENT
  const { calls, socket } = line

  /** False when the queue of the service manager is full. */
  function notify(text: string): boolean {
    try {
      writeSync(socket, text)
      return true
    } catch (err) {
      log.warn({ err }, 'the service manager cannot be notified')
      return (err as NodeJS.ErrnoException).code !== 'EAGAIN'
    }
  }
  const periodMs = watchdogMs(env, pid)
  let next: Timer | undefined
  let isStopping = false

  function ready(): void {
    if (isStopping) return
    if (!notify('READY=1')) next = clock.setTimer(READY_AGAIN_MS, ready)
    else if (periodMs !== undefined) next = clock.setRepeating(periodMs / 2, () => notify('WATCHDOG=1'))
    next?.unref?.()
  }
  return {
    ready,
    stopping() {
      isStopping = true
      notify('STOPPING=1')
    },
    [Symbol.dispose]() {
      next?.cancel()
      calls.close(socket)
    },
  }
}

/** Node has no unix datagram sockets, so the socket is opened by system calls. Each write is one message. */
async function connectTo(path: string) {
  const calls = await loadUdpCalls()
  const socket = calls.socket(AF_UNIX)
  const result = socket < 0 ? socket : calls.connect(socket, addressOf(path))
  if (result >= 0) {
    // struct timeval: seconds, microseconds.
    const wait = BigInt64Array.of(0n, BigInt(WAIT_MS * 1000))
    calls.setOption(socket, LINUX.SOL_SOCKET, LINUX.SO_SNDTIMEO, new Uint8Array(wait.buffer))
    return { calls, socket }
  }
  if (socket >= 0) calls.close(socket)
  throw new Error(`NOTIFY_SOCKET cannot be opened (error ${-result})`)
}

/** A path, or with `@` in front a name in the abstract namespace, which begins with a zero byte. */
function addressOf(path: string): Uint8Array {
  const name = Buffer.from(path.replace(/^@/, '\0'))
  if (name.length > PATH_BYTES_MAX) throw new Error(`NOTIFY_SOCKET is longer than ${PATH_BYTES_MAX} bytes`)
  const family = Buffer.alloc(2)
  family.writeUInt16LE(AF_UNIX)
  return Buffer.concat([family, name, Buffer.alloc(path.startsWith('@') ? 0 : 1)])
}

function watchdogMs(env: ServiceManagerDeps['env'], pid: number): number | undefined {
  const ms = Number(env['WATCHDOG_USEC']) / 1000
  const isForUs = env['WATCHDOG_PID'] === undefined || env['WATCHDOG_PID'] === String(pid)
  return ms > 0 && isForUs ? ms : undefined
}
