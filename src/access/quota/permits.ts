import type { Limits } from '../../contract/limits.ts'

/** What a subscription holds open, each with a limit of that name. */
export const PERMIT_NAMES = ['wsConnections', 'wsSubscriptions', 'grpcStreams'] as const satisfies (keyof Limits)[]
export type PermitName = (typeof PERMIT_NAMES)[number]
export type PermitsAcquired = Readonly<Record<PermitName, number>>

export type Permit = Disposable & {
  readonly ok: true
  /** Frees the seat; once is enough, more do nothing. */
  release(): void
}

export type NoPermit = {
  readonly ok: false
  readonly reason: 'over-limit'
  readonly limitName: PermitName
  readonly limitSize: number
}

export type Permits = {
  /** A seat of the subscription, to be released when what it stands for closes. */
  acquire(subscriptionId: string, name: PermitName, limits: Limits): Permit | NoPermit
  taken(subscriptionId: string): PermitsAcquired
  /** Of all subscriptions together. */
  total(): PermitsAcquired
}

type Counts = Record<PermitName, number>

const none = (): Counts => ({ wsConnections: 0, wsSubscriptions: 0, grpcStreams: 0 })

/**
 * Seats of this process. A limit lowered below what is taken closes nothing: no further seat is given until enough were released.
 * Counts of a subscription without any open seat are not kept.
 */
export function createPermits(): Permits {
  const bySubscription = new Map<string, Counts>()
  const all = none()

  class AcquiredPermit implements Permit {
    readonly ok = true
    readonly #subscriptionId: string
    readonly #name: PermitName
    #isTaken = true

    constructor(subscriptionId: string, name: PermitName) {
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
      if (PERMIT_NAMES.every((name) => counts[name] === 0)) bySubscription.delete(this.#subscriptionId)
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
      return new AcquiredPermit(subscriptionId, name)
    },
    taken: (subscriptionId) => ({ ...(bySubscription.get(subscriptionId) ?? none()) }),
    total: () => ({ ...all }),
  }
}
