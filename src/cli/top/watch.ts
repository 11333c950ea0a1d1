import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import type { RunningProcess } from '../operations/running-process.ts'

/** The response of the process, or why there is none. */
export type Poll<T> = { readonly response: T } | { readonly failure: string }

const POLL_MS = 1000

/**
 * Asks the process every second. The first call must succeed; later it waits while the process is down, to watch across a restart.
 */
export async function* pollEachSecond<T>(
  open: () => Promise<RunningProcess>,
  ask: (process: RunningProcess) => Promise<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): AsyncGenerator<Poll<T>> {
  let client: RunningProcess | undefined = await open()
  try {
    let isFirst = true
    while (!signal.aborted) {
      const startedMs = clock.monotonicMs()
      try {
        client ??= await open()
        yield { response: await ask(client) }
      } catch (error) {
        client?.[Symbol.dispose]()
        client = undefined
        if (isFirst) throw error
        yield { failure: messageOf(error) }
      }
      isFirst = false
      const restMs = Math.max(0, startedMs + POLL_MS - clock.monotonicMs())
      await pause(clock, restMs, signal)
    }
  } finally {
    client?.[Symbol.dispose]()
  }
}

/** Ends early on the signal, and leaves no listener on it: this runs once a second as long as the command does. */
function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const end = (): void => {
      timer.cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = clock.setTimer(delayMs, end)
    signal.addEventListener('abort', end)
  })
}
