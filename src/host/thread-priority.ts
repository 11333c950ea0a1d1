import { readdirSync, readFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** The name that Node gives to the threads of its pool, and that threads started by native code on them have too. */
const POOL_THREAD = 'libuv-worker'

/**
 * Lets the threads of the pool yield to the main thread where both want the processor: one of them counts a tenth of it. They exist from the first use of the pool on. On Linux a
 * thread has a priority of its own; elsewhere, and where the kernel does not tell of threads, nothing happens. Gives how many were lowered.
 */
export function lowerPoolThreads(): number {
  let lowered = 0
  for (const thread of threadsOfThisProcess()) {
    if (nameOf(thread) !== POOL_THREAD) continue
    try {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL)
      lowered++
    } catch {
      // Gone meanwhile, or not allowed here: it competes as before.
    }
  }
  return lowered
}

function threadsOfThisProcess(): number[] {
  try {
    return readdirSync('/proc/self/task').map(Number)
  } catch {
    return []
  }
}

function nameOf(thread: number): string {
  try {
    return readFileSync(`/proc/self/task/${thread}/comm`, 'latin1').trimEnd()
  } catch {
    return ''
  }
}
