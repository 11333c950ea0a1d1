import type { Clock, Timer } from '../../core/clock.ts'

/** The limits, by their name in a refusal. */
export type HeldBytesLimit = 'heldBytes' | 'heldBytesPerSubscription'

export type ResponseBudgetOptions = {
  /** Bytes of requests and responses that the process holds at once. */
  readonly bytesMax: number
  /** The same for one owner: a subscription, or a peer that has not authenticated. */
  readonly ownerBytesMax: number
  /** How long a response waits for the budget before it is dropped. */
  readonly waitMs: number
}

/** Counts the bytes of requests and responses that are held in memory: over the process, and by owner. */
export type ResponseBudget = {
  readonly limits: Readonly<Record<HeldBytesLimit, number>>
  readonly heldBytes: number
  /** The limit that so many more bytes would exceed. Changes nothing. */
  exceeded(owner: string, bytes: number): HeldBytesLimit | undefined
  /** Takes the bytes; false where that would exceed a limit. */
  acquire(owner: string, bytes: number): boolean
  release(owner: string, bytes: number): void
  /** Calls `onSettled` once: with true when the bytes are taken, with false when `waitMs` has passed. */
  acquireLater(owner: string, bytes: number, onSettled: (isTaken: boolean) => void): { cancel(): void }
}

type Waiter = {
  readonly owner: string
  readonly bytes: number
  readonly timer: Timer
  readonly onSettled: (isTaken: boolean) => void
}

export function createResponseBudget(
  { bytesMax, ownerBytesMax, waitMs }: ResponseBudgetOptions,
  clock: Pick<Clock, 'setTimer'>,
): ResponseBudget {
  /** Held bytes by owner, without zeros. */
  const owners = new Map<string, number>()
  /** In order of arrival. One whose owner is at its own limit does not block the others. */
  const waiters = new Set<Waiter>()
  let heldBytes = 0
  let isRetryDue = false

  function exceeded(owner: string, bytes: number): HeldBytesLimit | undefined {
    if (heldBytes + bytes > bytesMax) return 'heldBytes'
    return (owners.get(owner) ?? 0) + bytes > ownerBytesMax ? 'heldBytesPerSubscription' : undefined
  }

  function acquire(owner: string, bytes: number): boolean {
    if (exceeded(owner, bytes) !== undefined) return false
    heldBytes += bytes
    owners.set(owner, (owners.get(owner) ?? 0) + bytes)
    return true
  }

  /** Not within `release`, whose caller is not finished; and once for all releases of a turn. */
  function retryWaiters(): void {
    if (isRetryDue || waiters.size === 0) return
    isRetryDue = true
    setImmediate(() => {
      isRetryDue = false
      for (const waiter of waiters) if (acquire(waiter.owner, waiter.bytes)) settle(waiter, true)
    })
  }

  function settle(waiter: Waiter, isTaken: boolean): void {
    waiters.delete(waiter)
    waiter.timer.cancel()
    waiter.onSettled(isTaken)
  }

  return {
    limits: { heldBytes: bytesMax, heldBytesPerSubscription: ownerBytesMax },
    get heldBytes() {
      return heldBytes
    },
    exceeded,
    acquire,
    release(owner, bytes) {
      heldBytes -= bytes
      const ownerBytes = (owners.get(owner) ?? 0) - bytes
      if (ownerBytes > 0) owners.set(owner, ownerBytes)
      else owners.delete(owner)
      retryWaiters()
    },
    acquireLater(owner, bytes, onSettled) {
      const waiter: Waiter = { owner, bytes, onSettled, timer: clock.setTimer(waitMs, () => settle(waiter, false)) }
      waiters.add(waiter)
      return {
        cancel() {
          waiters.delete(waiter)
          waiter.timer.cancel()
        },
      }
    },
  }
}
