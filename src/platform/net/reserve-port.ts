import { createServer, type ListenOptions, type Server } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import { delay, systemClock } from '../process/clock.ts'
import { listenError } from './listener.ts'

/** A port that this process may listen on with `reusePort`. Dispose it when the threads listen. */
export type PortReservation = AsyncDisposable & { readonly host: string; readonly port: number }

/** How long a start waits for another process that has reserved the same port number. */
const RESERVED_WAIT_MS = 10_000
const RETRY_MS = 50
/** Ports that the system may choose before the reservation gives up. */
const CHOICES_MAX = 10

/**
 * Reserves a port for the threads of this process, which then listen on it with `reusePort`; port 0 becomes a number. With `reusePort` the kernel would
 * let a second process of the same user listen too and give it a part of the connections. So the port is first bound without it, which fails with
 * `address-in-use` where any other socket listens, also one with `reusePort`.
 *
 * Between this check and the first thread that listens, the port is free. Two processes that start at the same time would both pass. A lock for the port
 * number closes the gap: an abstract Unix socket, which exists in the network namespace of the port and ends with the process.
 */
export async function reservePort(
  { host, port }: { readonly host: string; readonly port: number },
  { clock = systemClock }: { readonly clock?: Clock | undefined } = {},
): Promise<PortReservation> {
  for (let choice = 1; ; choice++) {
    await using opening = new AsyncDisposableStack()
    if (port !== 0) opening.use(await lockWithin(port, RESERVED_WAIT_MS, clock))
    const bound = await listenOn({ host, port, exclusive: true }).catch((error: NodeJS.ErrnoException) => {
      throw listenError(error, { host, port })
    })
    await using _bound = { [Symbol.asyncDispose]: () => close(bound) }
    const chosen = (bound.address() as { port: number }).port
    if (port === 0) {
      // Another process may have reserved the number that the system has chosen.
      const lock = await tryLock(chosen)
      if (lock === undefined && choice < CHOICES_MAX) continue
      if (lock !== undefined) opening.use(lock)
    }
    const opened = opening.move()
    return { host, port: chosen, [Symbol.asyncDispose]: () => opened.disposeAsync() }
  }
}

/** A lock that is held for too long is ignored: any user of the machine can take it, and the check of the port is still made. */
async function lockWithin(port: number, waitMs: number, clock: Clock): Promise<AsyncDisposable> {
  const endMs = clock.monotonicMs() + waitMs
  for (;;) {
    const lock = await tryLock(port)
    if (lock !== undefined) return lock
    if (clock.monotonicMs() >= endMs) return { async [Symbol.asyncDispose]() {} }
    await delay(clock, RETRY_MS)
  }
}

async function tryLock(port: number): Promise<AsyncDisposable | undefined> {
  try {
    const server = await listenOn({ path: portLockPath(port) })
    return { [Symbol.asyncDispose]: () => close(server) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined
    // Where abstract sockets are not available the check of the port has to do.
    return { async [Symbol.asyncDispose]() {} }
  }
}

/** The kernel shares a port between processes of one user only, so each user has its own locks. */
export function portLockPath(port: number): string {
  return `\0sluice-port-${process.geteuid?.() ?? 0}-${port}`
}

function listenOn(options: ListenOptions): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', reject)
    server.listen(options, () => resolve(server))
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => void server.close(() => resolve()))
}
