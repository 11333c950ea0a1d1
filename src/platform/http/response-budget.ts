import type { Clock, Timer } from '../../core/clock.ts'

/** The limits, by the name that a refusal gives them. */
export type HeldBytesLimit = 'heldBytes' | 'heldBytesPerSubscription'

export type ResponseBudgetOptions = {
  /** Bytes of requests and responses that the process holds at once. */
  readonly bytesMax: number
  /** The same for one owner: a subscription, or a peer that has not authenticated. */
  readonly ownerBytesMax: number
  /** How long a response waits for room before it is given up. */
  readonly waitMs: number
}

/** Bytes of requests and responses that have arrived and cannot leave yet: one count for the process, and one for each owner. */
export type ResponseBudget = {
  readonly limits: Readonly<Record<HeldBytesLimit, number>>
  readonly heldBytes: number
  /** The limit that so many more bytes would exceed. Changes nothing. */
  exceeded(owner: string, bytes: number): HeldBytesLimit | undefined
  /** Takes the bytes, or nothing where that would exceed a limit. */
  acquire(owner: string, bytes: number): boolean
  release(owner: string, bytes: number): void
  /** Calls `onRoom` once: with true when the bytes are taken, with false when there was no room in time. */
  acquireLater(owner: string, bytes: number, onRoom: (isTaken: boolean) => void): { cancel(): void }
}

type Waiter = {
  readonly owner: string
  readonly bytes: number
  readonly timer: Timer
  readonly onRoom: (isTaken: boolean) => void
}

export function createResponseBudget(
  { bytesMax, ownerBytesMax, waitMs }: ResponseBudgetOptions,
  clock: Pick<Clock, 'setTimer'>,
): ResponseBudget {
  /** Owners that hold anything. */
  const owners = new Map<string, number>()
  /** In order of arrival. One whose owner is at its own limit does not hold up the others. */
  const waiters = new Set<Waiter>()
  let heldBytes = 0
  let isLookDue = false

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

  /** Not within `release`: its caller is in the middle of something. One look serves all releases of a turn. */
  function lookLater(): void {
    if (isLookDue || waiters.size === 0) return
    isLookDue = true
    setImmediate(() => {
      isLookDue = false
      for (const waiter of waiters) if (acquire(waiter.owner, waiter.bytes)) settle(waiter, true)
    })
  }

  function settle(waiter: Waiter, isTaken: boolean): void {
    waiters.delete(waiter)
    waiter.timer.cancel()
    waiter.onRoom(isTaken)
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
      const left = (owners.get(owner) ?? 0) - bytes
      if (left > 0) owners.set(owner, left)
      else owners.delete(owner)
      lookLater()
    },
    acquireLater(owner, bytes, onRoom) {
      const waiter: Waiter = { owner, bytes, onRoom, timer: clock.setTimer(waitMs, () => settle(waiter, false)) }
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
