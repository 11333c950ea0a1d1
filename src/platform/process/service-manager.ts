import { writeSync } from 'node:fs'
import type { Clock, Timer } from '../../core/clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import { LINUX, loadUdpCalls } from '../udp/system-calls.ts'

/** Reports the state of this process to the service manager that started it: systemd with `Type=notify`, or another with sd_notify(3). */
export type ServiceManager = Disposable & {
  /** The start is under way: it may take longer than the service manager waits, for example while a large store is migrated. */
  starting(): void
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
/**
 * A start may take so much longer after each message. One step of a migration may hold the event loop, so the time is much longer than that between two
 * messages.
 */
const EXTENSION_MS = 300_000
const EXTEND_EVERY_MS = 30_000
/** A start that has not ended by then hangs, and the service manager ends the process. */
const EXTENDED_MAX_MS = 3_600_000
const SILENT: ServiceManager = { starting() {}, ready() {}, stopping() {}, [Symbol.dispose]() {} }

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
  let extending: Timer | undefined
  let isStopping = false

  function starting(): void {
    const startedMs = clock.monotonicMs()
    extending = clock.setRepeating(EXTEND_EVERY_MS, () => {
      if (clock.monotonicMs() - startedMs + EXTENSION_MS > EXTENDED_MAX_MS) extending?.cancel()
      else notify(`EXTEND_TIMEOUT_USEC=${EXTENSION_MS * 1000}`)
    })
    extending.unref?.()
  }

  function ready(): void {
    extending?.cancel()
    if (isStopping) return
    if (!notify('READY=1')) next = clock.setTimer(READY_AGAIN_MS, ready)
    else if (periodMs !== undefined) next = clock.setRepeating(periodMs / 2, () => notify('WATCHDOG=1'))
    next?.unref?.()
  }
  return {
    starting,
    ready,
    stopping() {
      if (isStopping) return
      isStopping = true
      // From here on it would be the time to stop that is extended.
      extending?.cancel()
      notify('STOPPING=1')
    },
    [Symbol.dispose]() {
      extending?.cancel()
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
