import type { Limits } from '../../contract/limits.ts'

/** What a subscription holds open, each with a limit of that name. */
export const SEAT_NAMES = ['wsConnections', 'wsSubscriptions', 'grpcStreams'] as const satisfies (keyof Limits)[]
export type SeatName = (typeof SEAT_NAMES)[number]
export type SeatsTaken = Readonly<Record<SeatName, number>>

export type Seat = Disposable & {
  readonly ok: true
  /** Frees the seat; once is enough, more do nothing. */
  release(): void
}

export type NoSeat = {
  readonly ok: false
  readonly reason: 'over-limit'
  readonly limitName: SeatName
  readonly limitSize: number
}

export type Slots = {
  /** A seat of the subscription, to be released when what it stands for closes. */
  acquire(subscriptionId: string, name: SeatName, limits: Limits): Seat | NoSeat
  taken(subscriptionId: string): SeatsTaken
  /** Of all subscriptions together. */
  total(): SeatsTaken
}

type Counts = Record<SeatName, number>

const none = (): Counts => ({ wsConnections: 0, wsSubscriptions: 0, grpcStreams: 0 })

/**
 * Seats of this process. A limit lowered below what is taken closes nothing: no further seat is given until enough were released.
 * Counts of a subscription without any open seat are not kept.
 */
export function createSlots(): Slots {
  const bySubscription = new Map<string, Counts>()
  const all = none()

  class TakenSeat implements Seat {
    readonly ok = true
    readonly #subscriptionId: string
    readonly #name: SeatName
    #isTaken = true

    constructor(subscriptionId: string, name: SeatName) {
      this.#subscriptionId = subscriptionId
      this.#name = name
    }

    release(): void {
      if (!this.#isTaken) return
      this.#isTaken = false
      all[this.#name] -= 1
      const counts = bySubscription.get(this.#subscriptionId)
      if (counts === undefined) return
      counts[this.#name] -= 1
      if (SEAT_NAMES.every((name) => counts[name] === 0)) bySubscription.delete(this.#subscriptionId)
    }

    [Symbol.dispose](): void {
      this.release()
    }
  }

  return {
    acquire(subscriptionId, name, limits) {
      const counts = bySubscription.get(subscriptionId) ?? none()
      const limitSize = limits[name]
      if (limitSize !== null && counts[name] >= limitSize) {
        return { ok: false, reason: 'over-limit', limitName: name, limitSize }
      }
      counts[name] += 1
      all[name] += 1
      bySubscription.set(subscriptionId, counts)
      return new TakenSeat(subscriptionId, name)
    },
    taken: (subscriptionId) => ({ ...(bySubscription.get(subscriptionId) ?? none()) }),
    total: () => ({ ...all }),
  }
}
