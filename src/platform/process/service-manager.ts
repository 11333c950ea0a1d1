import { writeSync } from 'node:fs'
import type { Clock, Timer } from '../../core/clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import { LINUX, loadUdpCalls } from '../udp/system-calls.ts'

/** Who started this process and waits to hear how it is: systemd with `Type=notify`, or another that speaks sd_notify(3). */
export type Supervisor = Disposable & {
  /** The doors are open. */
  ready(): void
  /** It is on its way out in good order. */
  stopping(): void
}

export type SupervisorDeps = {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
  readonly clock: Clock
  readonly log: Logger
}

const AF_UNIX = 1
/** sun_path of sockaddr_un(7), without its ending zero. */
const PATH_BYTES_MAX = 107
/** The kernel keeps some ten messages for a supervisor that does not read. The next waits this long and is then lost: it never holds up the loop. */
const WAIT_MS = 100
/** That the process is ready must not be lost: the supervisor would end it as one that never started. */
const READY_AGAIN_MS = 1000
const SILENT: Supervisor = { ready() {}, stopping() {}, [Symbol.dispose]() {} }

/**
 * Opens the line that the environment names; without one nobody listens and nothing is said. Where the supervisor keeps a watchdog, which begins when the process
 * is ready, it is told twice in each of its periods that the loop still turns.
 */
export async function openSupervisor({ env, pid, clock, log }: SupervisorDeps): Promise<Supervisor> {
  const path = env['NOTIFY_SOCKET']
  if (path === undefined || path === '') return SILENT
  const line = await connectTo(path).catch((err: unknown) => {
    log.warn({ err }, 'the supervisor cannot be told that this process is ready')
    return undefined
  })
  if (line === undefined) return SILENT
  const { calls, socket } = line

  /** False when the supervisor has not read for so long that there is no room. */
  function report(text: string): boolean {
    try {
      writeSync(socket, text)
      return true
    } catch (err) {
      log.warn({ err }, 'the supervisor does not listen')
      return (err as NodeJS.ErrnoException).code !== 'EAGAIN'
    }
  }
  const periodMs = watchdogMs(env, pid)
  let next: Timer | undefined
  let isStopping = false

  function ready(): void {
    if (isStopping) return
    if (!report('READY=1')) next = clock.setTimer(READY_AGAIN_MS, ready)
    else if (periodMs !== undefined) next = clock.setRepeating(periodMs / 2, () => report('WATCHDOG=1'))
    next?.unref?.()
  }
  return {
    ready,
    stopping() {
      isStopping = true
      report('STOPPING=1')
    },
    [Symbol.dispose]() {
      next?.cancel()
      calls.close(socket)
    },
  }
}

/** Node has no datagram sockets of this family: the socket is made by the system's own calls. What is written to it leaves as one message. */
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
  throw new Error(`the socket of the supervisor answers with error ${-result}`)
}

/** A path, or with `@` in front a name in the kernel's own space, which begins with a zero byte. */
function addressOf(path: string): Uint8Array {
  const name = Buffer.from(path.replace(/^@/, '\0'))
  if (name.length > PATH_BYTES_MAX) throw new Error(`NOTIFY_SOCKET is longer than ${PATH_BYTES_MAX} bytes`)
  const family = Buffer.alloc(2)
  family.writeUInt16LE(AF_UNIX)
  return Buffer.concat([family, name, Buffer.alloc(path.startsWith('@') ? 0 : 1)])
}

function watchdogMs(env: SupervisorDeps['env'], pid: number): number | undefined {
  const ms = Number(env['WATCHDOG_USEC']) / 1000
  const isForUs = env['WATCHDOG_PID'] === undefined || env['WATCHDOG_PID'] === String(pid)
  return ms > 0 && isForUs ? ms : undefined
}
