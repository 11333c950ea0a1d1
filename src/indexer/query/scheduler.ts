import { QueryError } from './error.ts'

/** A query that may run in the database process now: beside others, or exclusively. */
export type ScheduledQuery = Disposable & {
  readonly isExclusive: boolean
  /** Ends the exclusive time: others may start from now on. */
  share(): void
}

/**
 * Schedules the queries of all customers fairly: they start in order of arrival. A query that needs the process exclusively waits for the running
 * ones and holds back all later ones, so none waits for ever. Of adjacent exclusive queries in the queue the shortest starts first.
 */
export type QueryScheduler = {
  /** `exclusiveMs` is how long the query is to run exclusively; 0 for beside others. Rejects with QueryError when the client disconnects first. */
  start(exclusiveMs: number, disconnected: AbortSignal): Promise<ScheduledQuery>
}

type Waiting = { readonly exclusiveMs: number; start(): void }

export function createQueryScheduler(): QueryScheduler {
  const queue: Waiting[] = []
  let running = 0
  let isExclusiveRunning = false

  function startNext(): void {
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      if (isExclusiveRunning || (next.exclusiveMs > 0 && running > 0)) return
      queue.shift()
      next.start()
    }
  }

  function enqueue(waiting: Waiting): void {
    let at = queue.length
    if (waiting.exclusiveMs > 0) while ((queue[at - 1]?.exclusiveMs ?? 0) > waiting.exclusiveMs) at--
    queue.splice(at, 0, waiting)
  }

  function begin(exclusiveMs: number): ScheduledQuery {
    let isExclusive = exclusiveMs > 0
    let isOver = false
    running++
    if (isExclusive) isExclusiveRunning = true
    const share = (): void => {
      if (!isExclusive) return
      isExclusive = false
      isExclusiveRunning = false
      startNext()
    }
    return {
      get isExclusive() {
        return isExclusive
      },
      share,
      [Symbol.dispose]() {
        if (isOver) return
        isOver = true
        running--
        share()
        startNext()
      },
    }
  }

  return {
    start(exclusiveMs, disconnected) {
      return new Promise((resolve, reject) => {
        const onDisconnect = (): void => {
          queue.splice(queue.indexOf(waiting), 1)
          reject(new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.'))
          startNext()
        }
        const waiting: Waiting = {
          exclusiveMs,
          start() {
            disconnected.removeEventListener('abort', onDisconnect)
            resolve(begin(exclusiveMs))
          },
        }
        enqueue(waiting)
        if (disconnected.aborted) return onDisconnect()
        disconnected.addEventListener('abort', onDisconnect, { once: true })
        startNext()
      })
    },
  }
}
