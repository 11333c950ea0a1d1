import { QueryError } from './query-error.ts'

/** The right to run in the database process: beside others, or alone. */
export type QueryTurn = Disposable & {
  readonly isAlone: boolean
  /** Lets others in from now on. */
  share(): void
}

/** Who runs beside whom. In order of arrival: who waits to be alone holds back all that come later, so nobody waits for ever. */
export type QueryTurns = {
  /** Rejects with QueryError when the client leaves before its turn. */
  enter(mode: 'shared' | 'alone', left: AbortSignal): Promise<QueryTurn>
}

type Waiting = { readonly mode: 'shared' | 'alone'; grant(): void }

export function createQueryTurns(): QueryTurns {
  const queue: Waiting[] = []
  let running = 0
  let isSomebodyAlone = false

  function grantNext(): void {
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      if (isSomebodyAlone || (next.mode === 'alone' && running > 0)) return
      queue.shift()
      next.grant()
    }
  }

  function open(mode: Waiting['mode']): QueryTurn {
    let isAlone = mode === 'alone'
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
    enter(mode, left) {
      return new Promise((resolve, reject) => {
        const onLeft = (): void => {
          queue.splice(queue.indexOf(waiting), 1)
          reject(new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.'))
          grantNext()
        }
        const waiting: Waiting = {
          mode,
          grant() {
            left.removeEventListener('abort', onLeft)
            resolve(open(mode))
          },
        }
        queue.push(waiting)
        if (left.aborted) return onLeft()
        left.addEventListener('abort', onLeft, { once: true })
        grantNext()
      })
    },
  }
}
