import type { Clock } from '../../core/clock.ts'
import type { StoreProcess } from '../store/process.ts'

/** Time for a query to end after its interrupt was delivered. */
export const GRACE_MS = 5_000
/** A large batch may block the event loop of the database process for some time. */
const UNRESPONSIVE_MS = 30_000

/** `time`: the query goes on after its interrupt. `unresponsive`: its process does not respond to the interrupt. */
export type StuckReason = 'time' | 'unresponsive'

export type WatchRunOptions = {
  readonly store: Pick<StoreProcess, 'ask'>
  readonly id: number
  readonly secondsMax: number
  readonly disconnected: AbortSignal
  onStuck(reason: StuckReason): void
}

/** Interrupts a query when its client disconnects, and at its time limit, which begins now. Calls `onStuck` if it does not end then. */
export function watchRun(
  { store, id, secondsMax, disconnected, onStuck }: WatchRunOptions,
  clock: Pick<Clock, 'setTimer'>,
): Disposable {
  let isOver = false
  let timer = clock.setTimer(secondsMax * 1000, () => {
    timer = clock.setTimer(UNRESPONSIVE_MS, () => onStuck('unresponsive'))
    store.ask({ kind: 'interrupt', id, reason: 'timeout' }).then(
      () => {
        timer.cancel()
        if (!isOver) timer = clock.setTimer(GRACE_MS, () => onStuck('time'))
      },
      () => {},
    )
  })
  const leave = (): void => void store.ask({ kind: 'interrupt', id, reason: 'cancelled' }).catch(() => {})
  disconnected.addEventListener('abort', leave, { once: true })
  if (disconnected.aborted) leave()
  return {
    [Symbol.dispose]() {
      isOver = true
      timer.cancel()
      disconnected.removeEventListener('abort', leave)
    },
  }
}
