import type { Clock, Timer } from '../../../core/clock.ts'

export type BoundedReads = {
  /**
   * The result of the task, or `busy` where too many wait, of all or of this owner, or `late` after the deadline. A task that is late keeps its place until
   * it ends, so that a store that does not respond is not asked more and more.
   */
  run<Result>(owner: string, task: () => Promise<Result>): Promise<Read<Result> | NotRead>
}

type Read<Result> = { readonly ok: true; readonly value: Result }
type NotRead = { readonly ok: false; readonly reason: 'busy' | 'late' }

type BoundedReadsOptions = {
  readonly runningMax: number
  readonly waitingMax: number
  /** Reads of one owner, running and waiting; the rest of the places is for other owners. */
  readonly perOwnerMax: number
  /** From the call to the result, the time in the queue included. */
  readonly deadlineMs: number
}

type Waiting = { start(): void }

export function createBoundedReads(
  { runningMax, waitingMax, perOwnerMax, deadlineMs }: BoundedReadsOptions,
  clock: Pick<Clock, 'setTimer'>,
): BoundedReads {
  const waiting = new Set<Waiting>()
  const places = new Map<string, number>()
  let running = 0

  function addPlaces(owner: string, change: 1 | -1): void {
    const taken = (places.get(owner) ?? 0) + change
    if (taken === 0) places.delete(owner)
    else places.set(owner, taken)
  }

  function startNext(): void {
    const [next] = waiting
    if (next === undefined || running >= runningMax) return
    waiting.delete(next)
    next.start()
  }

  return {
    run<Result>(owner: string, task: () => Promise<Result>) {
      const isFull = running >= runningMax && waiting.size >= waitingMax
      if (isFull || (places.get(owner) ?? 0) >= perOwnerMax)
        return Promise.resolve<NotRead>({ ok: false, reason: 'busy' })
      addPlaces(owner, 1)
      const { promise, resolve, reject } = Promise.withResolvers<Read<Result> | NotRead>()
      const entry: Waiting = {
        start() {
          running += 1
          task()
            .then((value) => resolve({ ok: true, value }), reject)
            .finally(() => {
              timer.cancel()
              running -= 1
              addPlaces(owner, -1)
              startNext()
            })
        },
      }
      const timer: Timer = clock.setTimer(deadlineMs, () => {
        if (waiting.delete(entry)) addPlaces(owner, -1)
        resolve({ ok: false, reason: 'late' })
      })
      waiting.add(entry)
      startNext()
      return promise
    },
  }
}
