import type { Limits } from '../../contract/limits.ts'

/** What needs a permit while it is open; each has a limit of the same name. */
export const PERMIT_NAMES = ['wsConnections', 'wsSubscriptions', 'grpcStreams'] as const satisfies (keyof Limits)[]
export type PermitName = (typeof PERMIT_NAMES)[number]
export type PermitCounts = Readonly<Record<PermitName, number>>

export type Permit = Disposable & {
  readonly ok: true
  /** Releases the permit; further calls have no effect. */
  release(): void
}

export type NoPermit = {
  readonly ok: false
  readonly reason: 'over-limit'
  readonly limitName: PermitName
  readonly limitSize: number
}

export type Permits = {
  /** Acquires a permit of the subscription, to be released when the connection, subscription or stream closes. */
  acquire(subscriptionId: string, name: PermitName, limits: Limits): Permit | NoPermit
  taken(subscriptionId: string): PermitCounts
  /** Of all subscriptions together. */
  total(): PermitCounts
}

type Counts = Record<PermitName, number>

const none = (): Counts => ({ wsConnections: 0, wsSubscriptions: 0, grpcStreams: 0 })

/**
 * Connection limits of this process. A limit lowered below the current count closes nothing, but no further permit is given until enough are
 * released. Subscriptions without a permit are not held in memory.
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
