import { closeSync, writeSync } from 'node:fs'
import { loadUdpCalls } from './system-calls.ts'

/**
 * An eventfd(2): a write by any thread ends the sleep of a UDP port that was opened with its descriptor. The thread that opens it closes it, after the
 * threads that use it have ended, so that no thread writes to a descriptor that means something else by then.
 */
export type WakeEvent = Disposable & { readonly fd: number }

/** Undefined where the system calls cannot be made. */
export async function openWakeEvent(): Promise<WakeEvent | undefined> {
  const calls = await loadUdpCalls().catch(() => undefined)
  const fd = calls?.eventFd() ?? -1
  return fd < 0 ? undefined : { fd, [Symbol.dispose]: () => closeSync(fd) }
}

/** Adds one to the counter of an eventfd. */
const ONE = new Uint8Array(BigUint64Array.of(1n).buffer)

export function wake(fd: number): void {
  writeSync(fd, ONE)
}
