import { QueryError } from './error.ts'

/** The right to run in the database process: beside others, or alone. */
export type QueryTurn = Disposable & {
  readonly isAlone: boolean
  /** Lets others in from now on. */
  share(): void
}

/**
 * Who runs beside whom. In order of arrival: who waits to be alone holds back all that come later, so nobody waits for ever. Of those that wait to be
 * alone one behind another, the shortest is first.
 */
export type QueryTurns = {
  /** `aloneMs` is how long it is to be alone; 0 for beside others. Rejects with QueryError when the client leaves before its turn. */
  enter(aloneMs: number, left: AbortSignal): Promise<QueryTurn>
}

type Waiting = { readonly aloneMs: number; grant(): void }

export function createQueryTurns(): QueryTurns {
  const queue: Waiting[] = []
  let running = 0
  let isSomebodyAlone = false

  function grantNext(): void {
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      if (isSomebodyAlone || (next.aloneMs > 0 && running > 0)) return
      queue.shift()
      next.grant()
    }
  }

  function enqueue(waiting: Waiting): void {
    let at = queue.length
    if (waiting.aloneMs > 0) while ((queue[at - 1]?.aloneMs ?? 0) > waiting.aloneMs) at--
    queue.splice(at, 0, waiting)
  }

  function open(aloneMs: number): QueryTurn {
    let isAlone = aloneMs > 0
    let isOver = false
    running++
    if (isAlone) isSomebodyAlone = true
    const share = (): void => {
      if (!isAlone) return
      isAlone = false
      isSomebodyAlone = false
      grantNext()
    }
    return {
      get isAlone() {
        return isAlone
      },
      share,
      [Symbol.dispose]() {
        if (isOver) return
        isOver = true
        running--
        share()
        grantNext()
      },
    }
  }

  return {
    enter(aloneMs, left) {
      return new Promise((resolve, reject) => {
        const onLeft = (): void => {
          queue.splice(queue.indexOf(waiting), 1)
          reject(new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.'))
          grantNext()
        }
        const waiting: Waiting = {
          aloneMs,
          grant() {
            left.removeEventListener('abort', onLeft)
            resolve(open(aloneMs))
          },
        }
        enqueue(waiting)
        if (left.aborted) return onLeft()
        left.addEventListener('abort', onLeft, { once: true })
        grantNext()
      })
    },
  }
}
