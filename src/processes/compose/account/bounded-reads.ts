import type { Clock, Timer } from '../../../core/clock.ts'

export type BoundedReads = {
  /**
   * The result of the task, or `busy` where too many wait, or `late` after the deadline. A task that is late keeps its place until it ends, so that a store
   * that does not respond is not asked more and more.
   */
  run<Result>(task: () => Promise<Result>): Promise<Read<Result> | NotRead>
}

type Read<Result> = { readonly ok: true; readonly value: Result }
type NotRead = { readonly ok: false; readonly reason: 'busy' | 'late' }

type BoundedReadsOptions = {
  readonly runningMax: number
  readonly waitingMax: number
  /** From the call to the result, the time in the queue included. */
  readonly deadlineMs: number
}

type Waiting = { start(): void }

export function createBoundedReads(
  { runningMax, waitingMax, deadlineMs }: BoundedReadsOptions,
  clock: Pick<Clock, 'setTimer'>,
): BoundedReads {
  const waiting = new Set<Waiting>()
  let running = 0

  function startNext(): void {
    const [next] = waiting
    if (next === undefined || running >= runningMax) return
    waiting.delete(next)
    next.start()
  }

  return {
    run<Result>(task: () => Promise<Result>) {
      if (running >= runningMax && waiting.size >= waitingMax)
        return Promise.resolve<NotRead>({ ok: false, reason: 'busy' })
      const { promise, resolve, reject } = Promise.withResolvers<Read<Result> | NotRead>()
      const entry: Waiting = {
        start() {
          running += 1
          task()
            .then((value) => resolve({ ok: true, value }), reject)
            .finally(() => {
              timer.cancel()
              running -= 1
              startNext()
            })
        },
      }
      const timer: Timer = clock.setTimer(deadlineMs, () => {
        waiting.delete(entry)
        resolve({ ok: false, reason: 'late' })
      })
      waiting.add(entry)
      startNext()
      return promise
    },
  }
}
