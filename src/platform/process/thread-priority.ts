import { readdirSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** Threads of this process by their numbers; none where the kernel does not tell of them. */
export function threadsOfThisProcess(): ReadonlySet<number> {
  try {
    return new Set(readdirSync('/proc/self/task').map(Number))
  } catch {
    return new Set()
  }
}

/**
 * Lets threads yield to all others where several want the processor: one of them counts a tenth of an ordinary one (sched(7), nice 10), so that on a
 * busy machine it still gets on. On Linux a thread has a priority of its own. Gives how many were lowered.
 */
export function lowerThreads(threads: Iterable<number>): number {
  let lowered = 0
  for (const thread of threads) {
    try {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL)
      lowered++
    } catch {
      // Gone meanwhile, or not allowed here: it competes as before.
    }
  }
  return lowered
}
