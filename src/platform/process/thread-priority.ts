import { readdirSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** Thread ids of this process; empty where /proc is not available. */
export function threadsOfThisProcess(): ReadonlySet<number> {
  try {
    return new Set(readdirSync('/proc/self/task').map(Number))
  } catch {
    return new Set()
  }
}

/**
 * Lowers the priority of threads to nice 10, about a tenth of the usual CPU share under contention (sched(7)). On Linux each thread has its own
 * priority. Returns how many threads were lowered.
 */
export function lowerThreads(threads: Iterable<number>): number {
  let lowered = 0
  for (const thread of threads) {
    try {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL)
      lowered++
    } catch {
      // The thread has ended, or the change is not permitted: its priority stays.
    }
  }
  return lowered
}
