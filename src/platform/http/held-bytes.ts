import type { Clock, Timer } from '../../core/clock.ts'
import { createHeldMemory, HeldAmounts } from '../../core/held-amounts.ts'

/** The limits, by their name in a refusal. */
export type HeldBytesLimit = 'heldBytes' | 'heldBytesPerSubscription'

export type HeldBytesOptions = {
  /** Bytes of requests and responses that the process holds at once. */
  readonly bytesMax: number
  /** The same for one owner: a subscription, or a peer that has not authenticated. */
  readonly ownerBytesMax: number
  /** How long a response waits for free bytes before it is dropped. */
  readonly waitMs: number
}

/** Counts the bytes of requests and responses that are held in memory: over the process, and by owner. */
export type HeldBytes = {
  readonly limits: Readonly<Record<HeldBytesLimit, number>>
  /** Over all threads of the process. */
  readonly total: number
  /** Of this thread. */
  readonly own: number
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

/** Another thread's release is no event here, so waiters are tried again after this time. */
const RETRY_MS = 20

/** Without `held` the bytes are those of this thread alone. */
export function createHeldBytes(
  { bytesMax, ownerBytesMax, waitMs }: HeldBytesOptions,
  clock: Pick<Clock, 'setTimer'>,
  held: HeldAmounts = new HeldAmounts(createHeldMemory({ threads: 1 }), 0),
): HeldBytes {
  const maxima = { total: bytesMax, key: ownerBytesMax }
  /** In order of arrival. One whose owner is at its own limit does not block the others. */
  const waiters = new Set<Waiter>()
  let isRetryDue = false
  let poll: Timer | undefined

  function acquire(owner: string, bytes: number): boolean {
    return held.take(owner, bytes, maxima) === undefined
  }

  function tryWaiters(): void {
    for (const waiter of waiters) if (acquire(waiter.owner, waiter.bytes)) settle(waiter, true)
  }

  /** Tries the waiters again and again, where other threads release bytes too. */
  function startPoll(): void {
    if (!held.isShared || poll !== undefined || waiters.size === 0) return
    poll = clock.setTimer(RETRY_MS, () => {
      poll = undefined
      tryWaiters()
      startPoll()
    })
  }

  function remove(waiter: Waiter): void {
    waiters.delete(waiter)
    waiter.timer.cancel()
    if (waiters.size > 0) return
    poll?.cancel()
    poll = undefined
  }

  /** Not within `release`, whose caller is not finished; and once for all releases of a turn. */
  function retryWaiters(): void {
    if (isRetryDue || waiters.size === 0) return
    isRetryDue = true
    setImmediate(() => {
      isRetryDue = false
      tryWaiters()
    })
  }

  function settle(waiter: Waiter, isTaken: boolean): void {
    remove(waiter)
    waiter.onSettled(isTaken)
  }

  return {
    limits: { heldBytes: bytesMax, heldBytesPerSubscription: ownerBytesMax },
    get total() {
      return held.total
    },
    get own() {
      return held.own
    },
    exceeded(owner, bytes) {
      const excess = held.exceeds(owner, bytes, maxima)
      return excess && LIMITS[excess]
    },
    acquire,
    release(owner, bytes) {
      held.release(owner, bytes)
      retryWaiters()
    },
    acquireLater(owner, bytes, onSettled) {
      const waiter: Waiter = { owner, bytes, onSettled, timer: clock.setTimer(waitMs, () => settle(waiter, false)) }
      waiters.add(waiter)
      startPoll()
      return { cancel: () => remove(waiter) }
    },
  }
}

const LIMITS = { total: 'heldBytes', key: 'heldBytesPerSubscription' } as const

/** The bytes of one body as it is received. They are held until it is disposed. */
export class HeldBody {
  readonly #heldBytes: HeldBytes
  readonly #owner: string
  #bytes = 0
  /** The limit that refused bytes. */
  exceeded: HeldBytesLimit | undefined

  constructor(heldBytes: HeldBytes, owner: string) {
    this.#heldBytes = heldBytes
    this.#owner = owner
  }

  readonly take = (bytes: number): boolean => {
    const isTaken = this.#heldBytes.acquire(this.#owner, bytes)
    if (isTaken) this.#bytes += bytes
    else this.exceeded = this.#heldBytes.exceeded(this.#owner, bytes) ?? 'heldBytes'
    return isTaken
  };

  [Symbol.dispose](): void {
    if (this.#bytes > 0) this.#heldBytes.release(this.#owner, this.#bytes)
    this.#bytes = 0
  }
}
